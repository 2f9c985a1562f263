/** @file Einsum: a product with a weight by Einstein's summation (praxis/layers/einsum.py). */
import { z } from 'zod';
import { type Tensor, tf } from '../compiler/index.js';
import { BaseLayer } from './core/base.js';
import { constantInit } from './core/weightInit.js';
import type { Theta } from './core/weights.js';

/** An equation of two operands: `...d,df->...f`; the weight's axes are all named. */
const EQUATION = /^((?:\.\.\.)?[a-zA-Z]*),([a-zA-Z]+)->((?:\.\.\.)?[a-zA-Z]*)$/;

/**
 * Einsum of the inputs and a weight `w`, and a bias `b` of the output's own axes. Axes of the inputs that the output lacks are
 * the weight's fan-in, axes of the output that the inputs lack its fan-out; a bias needs these at the end of the output.
 */
export class Einsum extends BaseLayer.with({
  eqn: z
    .string()
    .refine((text) => EQUATION.test(text), "expected an equation like '...d,df->...f'")
    .describe('The equation.'),
  wShape: z.array(z.int().positive()).describe('Shape of the weight.'),
  useBias: z.boolean().default(false).describe('Whether a bias is added.'),
}) {
  declare readonly theta: Theta<'w' | 'b'>;
  /** Ellipses stand for the axes in front, which are one axis of this name where the product is computed. */
  #equation = '';
  #leading = false;
  /** Axes of the inputs that the product sums over, in the order of the weight's; counted from the inputs' end. */
  #summed: readonly number[] = [];

  protected override setup(): void {
    const { eqn, wShape, useBias } = this.hp;
    const [, x, w, out] = EQUATION.exec(eqn) as unknown as [string, string, string, string];
    if (w.length !== wShape.length)
      throw this.error(
        `eqn '${eqn}' gives the weight ${w.length} axes, and wShape [${wShape.join(', ')}] has ${wShape.length}.`,
      );
    const [leadsIn, leadsOut] = [x, out].map((side) => side.startsWith('...'));
    if (leadsIn !== leadsOut) throw this.error(`eqn '${eqn}' has '...' on one side alone.`);
    const unknown = [...out.replace('...', '')].filter((axis) => !x.includes(axis) && !w.includes(axis));
    if (unknown.length > 0)
      throw this.error(`eqn '${eqn}': no operand has the output's axis '${unknown[0]}'.`);
    const axesOf = (names: readonly string[]): number[] =>
      names
        .map((axis) => w.indexOf(axis))
        .filter((axis) => axis >= 0)
        .sort();
    const added = [...out].filter((axis) => axis !== '.' && !x.includes(axis));
    const contracting = axesOf([...x].filter((axis) => axis !== '.' && !out.includes(axis)));
    this.createVariable('w', {
      shape: wShape,
      ...(contracting.length > 0 && { contracting }),
      fanInAxes: contracting,
      fanOutAxes: axesOf(added),
    });
    if (useBias) {
      if (!out.endsWith(added.join('')))
        throw this.error(
          `eqn '${eqn}': a bias needs the axes that the weight adds, '${added.join("', '")}', at the output's end.`,
        );
      this.createVariable('b', {
        shape: added.map((axis) => wShape[w.indexOf(axis)]!),
        init: constantInit(0),
      });
    }
    const leading = [...'abcdefghijklmnopqrstuvwxyz'].find((letter) => !eqn.includes(letter))!;
    this.#leading = leadsIn!;
    this.#summed = contracting.map((axis) => x.indexOf(w[axis]!) - x.length);
    this.#equation = eqn.replaceAll('...', leading);
  }

  /** Inputs of the equation's first operand to its output. */
  fprop(inputs: Tensor): Tensor {
    const { w, b } = this.theta;
    const named = this.#equation.indexOf(',') - (this.#leading ? 1 : 0);
    const leading = inputs.shape.slice(0, inputs.rank - named);
    if (inputs.rank < named || (!this.#leading && leading.length > 0))
      throw this.error(`eqn '${this.hp.eqn}' does not fit inputs [${inputs.shape.join(', ')}].`);
    const flat = this.#leading ? tf.reshape(inputs, [-1, ...inputs.shape.slice(leading.length)]) : inputs;
    const summed = this.#summed.map((axis) => flat.rank + axis);
    const product = tf.einsum(this.#equation, this.factors(flat, 'w', summed), w) as Tensor;
    const outputs = this.#leading ? tf.reshape(product, [...leading, ...product.shape.slice(1)]) : product;
    return this.hp.useBias ? tf.add(outputs, b) : outputs;
  }
}

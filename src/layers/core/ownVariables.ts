/** @file Variables of one layer, and their values in the context of a forward pass. */
import type { Tensor } from '../../compiler/index.js';
import { didYouMean } from '../../hparams/index.js';
import type { LayerContext } from './context.js';
import { oneRepetition, type Theta, type Variable, WeightCollection } from './weights.js';

/** The part of a layer that its variables need. */
interface Owner {
  readonly context: LayerContext;
  error(detail: string): Error;
}

/** Variables by name; values are checked against their shapes. */
export class OwnVariables {
  /** In order of declaration. */
  readonly byName = new Map<string, Variable>();
  /** The caller's values of the present pass, by name. */
  readonly theta: Theta = {};

  constructor(private readonly owner: Owner) {}

  declare(name: string, variable: Variable): void {
    const bad = variable.shape.find((dim) => !Number.isInteger(dim) || dim <= 0);
    if (bad !== undefined) {
      throw this.owner.error(
        `variable '${name}' has shape [${variable.shape.join(', ')}]; dimensions are positive integers.`,
      );
    }
    this.byName.set(name, variable);
    // Not enumerable, so that printing a layer reads no values.
    Object.defineProperty(this.theta, name, { get: () => this.given(variable) });
  }

  /** The value from `updateVar` in this pass, else from the caller. */
  present(name: string): Tensor {
    const variable = this.named(name);
    return this.owner.context.updatedVars[variable.path] ?? this.given(variable);
  }

  update(name: string, value: Tensor): void {
    const variable = this.named(name);
    if (!variable.collections.includes(WeightCollection.NON_TRAINABLE)) {
      throw this.owner.error(`updateVar('${name}'): the variable is trained; declare it in NON_TRAINABLE.`);
    }
    this.checkShape(variable, value, 'updateVar gives');
    this.owner.context.updatedVars[variable.path] = value;
  }

  private given(variable: Variable): Tensor {
    const value = this.owner.context.theta[variable.path];
    if (!value) throw this.owner.error(`the context's theta has no value for '${variable.path}'.`);
    this.checkShape(variable, value, 'theta has');
    return value;
  }

  private named(name: string): Variable {
    const variable = this.byName.get(name);
    if (variable) return variable;
    const names = [...this.byName.keys()];
    throw this.owner.error(
      `has no variable '${name}'.${didYouMean(name, names)} It has: ${names.join(', ') || 'none'}.`,
    );
  }

  private checkShape(variable: Variable, value: Tensor, source: string): void {
    const { path, shape } = oneRepetition(variable);
    if (value.shape.length === shape.length && value.shape.every((dim, i) => dim === shape[i])) return;
    const isWhole = variable.repeatPrefix.length > 0 && value.shape.join() === variable.shape.join();
    throw this.owner.error(
      `${source} shape [${value.shape.join(', ')}] for '${path}', declared as [${shape.join(', ')}].` +
        (isWhole
          ? ' A layer above repeats it, and stacks its variables: it works within that layer alone.'
          : ''),
    );
  }
}

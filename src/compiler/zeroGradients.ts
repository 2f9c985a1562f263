/**
 * @file Gradients that are zeros whatever the operation: of and by integers and truth values, and of what has no elements.
 * tfjs asks the operation all the same, fails where it gets integers or where an empty result was broadcast, and lets a
 * gradient through a cast to an integer.
 */
import * as tfjs from '@tensorflow/tfjs-core';
import type { TapeKeeper } from './tape.js';

const hasSlope = ({ dtype, size }: tfjs.Tensor): boolean => dtype === 'float32' && size > 0;

/** Has tfjs's engine ask an operation only for gradients that may be others. */
function knowZeros(): void {
  const engine = tfjs.engine() as unknown as TapeKeeper;
  const original = engine.addTapeNode.bind(engine);
  engine.addTapeNode = (name, inputs, outputs, ...rest) => {
    original(name, inputs, outputs, ...rest);
    const isFlat = !outputs.some(hasSlope);
    const flat = Object.entries(inputs).filter(([, input]) => isFlat || !hasSlope(input));
    if (flat.length === 0) return;
    const node = engine.state.activeTape.findLast((node) => node.outputs === outputs)!;
    const { gradient } = node;
    if (gradient === undefined && !isFlat) return;
    // `zeros` makes them on the host, however many they are: `fill` is an operation.
    const zeros = flat.map(([name, { shape }]) => [name, () => tfjs.fill(shape, 0)]);
    node.gradient = (dys) => ({ ...(isFlat ? {} : gradient!(dys)), ...Object.fromEntries(zeros) });
  };
}

knowZeros();

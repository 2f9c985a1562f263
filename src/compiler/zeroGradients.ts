/**
 * @file Gradients that are always zero: of and by integers and booleans, and of empty tensors. tfjs asks the operation
 * anyway, fails for integers and for broadcasts to empty results, and lets gradients pass through casts to integers.
 */
import * as tfjs from '@tensorflow/tfjs-core';
import type { TapeKeeper } from './tape.js';

const hasSlope = ({ dtype, size }: tfjs.Tensor): boolean => dtype === 'float32' && size > 0;

/** Makes tfjs's engine ask operations only for gradients that may be nonzero. */
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
    // `zeros` would allocate on the host; `fill` is an operation.
    const zeros = flat.map(([name, { shape }]) => [name, () => tfjs.fill(shape, 0)]);
    node.gradient = (dys) => ({ ...(isFlat ? {} : gradient!(dys)), ...Object.fromEntries(zeros) });
  };
}

knowZeros();

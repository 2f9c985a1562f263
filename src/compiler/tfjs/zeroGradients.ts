/**
 * @file Gradients that are always zero: of and by integers and booleans that stand for choices (what a comparison, a
 * rounding or a search makes of floats, and indices), and of empty tensors. tfjs asks the operation anyway, fails for
 * many of them, and lets gradients pass through casts to integers. Integers that are differentiated count as numbers, as in
 * tfjs. Optional inputs that a call leaves out have no gradient.
 */
import * as tfjs from '@tensorflow/tfjs-core';
import type { TapeKeeper } from './tape.js';

const SLOPED = ['float32', 'complex64'];

const isFloat = ({ dtype }: tfjs.Tensor): boolean => SLOPED.includes(dtype);

/** Integers and booleans that were computed from floats. */
const choices = new WeakSet<tfjs.Tensor>();

/** Makes tfjs's engine ask operations only for gradients that may be nonzero. */
function knowZeros(): void {
  const engine = tfjs.engine() as unknown as TapeKeeper;
  const original = engine.addTapeNode.bind(engine);
  engine.addTapeNode = (name, inputs, outputs, ...rest) => {
    original(name, inputs, outputs, ...rest);
    const isOfFloats = Object.values(inputs).some((input) => isFloat(input) || choices.has(input));
    const hasSlope = (tensor: tfjs.Tensor): boolean => tensor.size > 0 && (isFloat(tensor) || !isOfFloats);
    if (isOfFloats) for (const output of outputs) if (!isFloat(output)) choices.add(output);
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

/** Optional inputs that a call leaves out; tfjs saves and follows them as if they were there, and fails. */
function leaveOutMissing(): void {
  const engine = tfjs.engine() as unknown as TapeKeeper & {
    saveTensorsForBackwardMode(tensors: readonly (tfjs.Tensor | undefined)[]): tfjs.Tensor[];
  };
  const addTapeNode = engine.addTapeNode.bind(engine);
  const save = engine.saveTensorsForBackwardMode.bind(engine);
  engine.addTapeNode = (name, inputs, ...rest) => {
    const given = Object.entries(inputs).filter(([, input]) => input !== undefined && input !== null);
    addTapeNode(name, Object.fromEntries(given), ...rest);
  };
  engine.saveTensorsForBackwardMode = (tensors) => save(tensors.filter((tensor) => tensor !== undefined));
}

knowZeros();
leaveOutMissing();

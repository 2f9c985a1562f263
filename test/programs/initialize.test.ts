/** @file What training starts from is the same whichever engine writes it. */
import { describe, expect, test } from 'vitest';
import type { Engine, FlatArray } from '../../src/compiler/index.js';
import { build } from '../../src/hparams/index.js';
import { AdamW, Learner } from '../../src/learners/index.js';
import { gpt2Lm, LanguageModel } from '../../src/models/index.js';
import { beginToInitialize, trainStateOf } from '../../src/programs/taskState.js';
import { SingleTask, Train } from '../../src/tasks/index.js';
import { hasCompiler } from '../compiler/native/compilerSupport.js';

/** Large enough that other threads write it. */
const lmTpl = gpt2Lm({ vocabSize: 256, modelDims: 128, numLayers: 2, numHeads: 2, maxSeqLength: 64 });

async function initialized(engine: Engine) {
  const optimizer = AdamW.config({ learningRate: 1e-3, emaDecay: 0.9 });
  const model = LanguageModel.config({ lmTpl });
  const task = build(
    SingleTask.config({ model, train: Train.config({ learner: Learner.config({ optimizer }) }) }),
  );
  const state = trainStateOf(task);
  const { done } = await beginToInitialize({ engine }, task, state);
  await done;
  return state;
}

const bytes = ({ buffer, byteOffset, byteLength }: FlatArray): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength);
const isZero = (values: FlatArray): boolean => values.every((value) => value === 0);

describe('initial states', () => {
  test.skipIf(!hasCompiler)('machine code gives the same bits', async () => {
    const [here, there] = [await initialized('onnx'), await initialized('native')];
    expect(here.params.length).toBeGreaterThan(1 << 17);
    expect(bytes(there.params).equals(bytes(here.params))).toBe(true);
  });

  const engines: Engine[] = hasCompiler ? ['onnx', 'native'] : ['onnx'];
  test.each(engines)('%s: the average is that of the parameters; all else is zero', async (engine) => {
    const { params, slots, grads } = await initialized(engine);
    const { ema, ...others } = slots;
    expect(isZero(params)).toBe(false);
    expect(bytes(ema!).equals(bytes(params))).toBe(true);
    expect([...Object.values(others), grads].map(isZero)).toEqual([true, true, true]);
  });
});

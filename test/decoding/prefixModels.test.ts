/** @file Decoding of prefix models: prompts whose tokens see each other, and what continues them, as in training. */
import { afterAll, expect, test } from 'vitest';
import { prngKey, type Tensor, tf } from '../../src/compiler/index.js';
import {
  BaseDecoder,
  type DecodeOutput,
  type DecodeRequest,
  GreedyDecoder,
  SampleDecoder,
  Stepper,
  type StepperOptions,
} from '../../src/decoding/index.js';
import { build } from '../../src/hparams/index.js';
import { FRnn, listVariables, runInContext } from '../../src/layers/index.js';
import { gpt2Lm, LanguageModel } from '../../src/models/index.js';
import { engines } from '../compiler/engines.js';
import { stateOf } from '../layers/helpers.js';
import { randomParams, randomPrompts } from './randomModels.js';

const [V, SEQLEN] = [11, 72];
/** One of them is longer than a block of a prompt that has parts; one is as long as the output. */
const LENGTHS = [3, 1, 67, 72];

function prefixModel(): LanguageModel {
  const lmTpl = gpt2Lm({ vocabSize: V, modelDims: 8, numLayers: 2, numHeads: 2, maxSeqLength: SEQLEN });
  lmTpl.modelType = 'prefix';
  return build(LanguageModel.config({ lmTpl }));
}

const model = prefixModel();
const params = randomParams(model, 2, 3);
const prompts = randomPrompts(LENGTHS, V);

const opened: Stepper[] = [];
afterAll(() => Promise.all(opened.map((stepper) => stepper.dispose())));

async function decode(
  decoder: GreedyDecoder | SampleDecoder | LastTokens,
  engine: string,
  options: Partial<StepperOptions> = {},
): Promise<DecodeOutput> {
  const stepper = await Stepper.create({
    ...{ model, params, rows: decoder.numRows(LENGTHS.length), seqlen: SEQLEN, rule: decoder.rule },
    compileOptions: (name) => ({ name, engine: engine as 'native', numThreads: 2 }),
    ...options,
  });
  opened.push(stepper);
  stepper.reset();
  return decoder.decode({ ...prompts, ...stepper.calls, key: prngKey(4) });
}

/** Log-probabilities [T, V] of the tokens after each of a row's, as they are trained: inputs are labels before the last token. */
function trained(ids: Int32Array, prefix: number): Float32Array {
  const row = tf.tensor2d(ids, [1, ids.length], 'int32') as Tensor;
  const indicator = tf.tensor2d([Array.from(ids, (_, t) => (t < prefix ? 1 : 0))]) as Tensor;
  const theta = Object.fromEntries(
    params.layout.entries.map(({ name, shape }) => [
      name,
      tf.tensor(params.views[name] as Float32Array, shape as number[]),
    ]),
  );
  const batch = { ids: row, labels: row, weights: tf.onesLike(indicator), inputsIndicator: indicator };
  return runInContext({ theta, doEval: true }, () =>
    tf.logSoftmax(model.computePredictions(batch).logits),
  ).dataSync() as Float32Array;
}

/** Expects that each drawn token has the log-probability that training gives it. */
function expectTrained(output: DecodeOutput, isGreedy: boolean): void {
  const rows = output.decodeLengths.data.length;
  const samples = rows / LENGTHS.length;
  for (let row = 0; row < rows; row++) {
    const prefix = LENGTHS[Math.floor(row / samples)]!;
    const length = output.decodeLengths.data[row]!;
    const ids = output.outputIds.data.slice(row * SEQLEN, row * SEQLEN + length);
    if (length === prefix) continue;
    const logprobs = trained(ids, prefix - 1);
    for (let t = prefix; t < length; t++) {
      const own = logprobs.subarray((t - 1) * V, t * V);
      expect(output.logprobs.data[row * SEQLEN + t]).toBeCloseTo(own[ids[t]!]!, 4);
      if (isGreedy) expect(own[ids[t]!]).toBe(Math.max(...own));
    }
  }
}

const greedy = GreedyDecoder.config({ seqlen: SEQLEN, eosId: [], maxDecodeSteps: 6 });

for (const [title, { engine, available }] of engines.filter(([, { engine }]) => engine !== 'eager'))
  test.skipIf(!available)(`greedy and sampled tokens are those of training, on ${title}`, async () => {
    const output = await decode(build(greedy), engine);
    expect([...output.decodeLengths.data]).toEqual([9, 7, 72, 72]);
    expectTrained(output, true);
    // Logits in place of drawn tokens give the same.
    const byLogits = await decode(build(greedy), engine, { rule: null });
    expect(byLogits.outputIds).toEqual(output.outputIds);
    const sampler = build(
      SampleDecoder.config({ seqlen: SEQLEN, eosId: [], maxDecodeSteps: 5, numSamples: 2 }),
    );
    const sampled = await decode(sampler, engine);
    expect([...sampled.decodeLengths.data]).toEqual([8, 8, 6, 6, 72, 72, 72, 72]);
    expectTrained(sampled, false);
  });

/** Draws the likeliest first token, by a step of rows at positions of their own. */
class LastTokens extends BaseDecoder {
  override async decode(request: DecodeRequest): Promise<DecodeOutput> {
    const { ids, positions } = await this.takePrompts(request);
    const logits = await request.extendRows!(ids, positions);
    const firsts = Array.from(positions, (at, row) => {
      if (at === SEQLEN - 1) return [{ ids: [], logprobs: [] }];
      const own = logits.subarray(row * V, (row + 1) * V);
      const shifted = own.map(Math.exp).reduce((a, b) => a + b);
      const id = own.indexOf(Math.max(...own));
      return [{ ids: [id], logprobs: [own[id]! - Math.log(shifted)] }];
    });
    return this.outputOf(request, firsts);
  }
}

test('decoders that call the steps of rows themselves get the same', async () => {
  const output = await decode(build(LastTokens.config({ seqlen: SEQLEN })), 'eager', { rule: null });
  expect([...output.decodeLengths.data]).toEqual([4, 2, 68, 72]);
  expectTrained(output, true);
});

test('prompts whose tokens see each other need a prefix model, and mixers that see ahead', () => {
  const lmTpl = gpt2Lm({ vocabSize: V, modelDims: 8, numLayers: 1, numHeads: 2, maxSeqLength: SEQLEN });
  const args = { timeStep: tf.scalar(0, 'int32'), prefix: tf.tensor1d([1], 'int32') };
  const extend = () => {
    const other = build(LanguageModel.config({ lmTpl }));
    const entries = listVariables(other).map(({ path, shape }) => [path, tf.zeros([...shape])]);
    const [theta, decodeState] = [Object.fromEntries(entries), stateOf(other.initialDecodeState(1, 4))];
    const ids = tf.tensor2d([[1, 2]], [1, 2], 'int32') as Tensor;
    return runInContext({ theta, doEval: true, decodeState }, () => other.extendStep(ids, args));
  };
  expect(extend).toThrow(
    "lm (TransformerLm): expected modelType 'prefix' for tokens that see each other, got 'causal'.",
  );
  lmTpl.modelType = 'prefix';
  lmTpl.stackedTransformerTpl.transformerLayerParamsTpl.mixerTpl = FRnn.config();
  expect(extend).toThrow(
    "lm/transformer/x_layers_0/mixer (FRnn): goes from token to token, and cannot keep to 'prefix' of the visibility: " +
      'expected an attention in its place.',
  );
});

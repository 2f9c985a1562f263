/** @file State of decodes that is shared by samples, moved between rows, and kept in rings, on every engine. */
import { afterAll, expect, test } from 'vitest';
import { prngKey } from '../../src/compiler/index.js';
import { type GREEDY, SampleDecoder, Stepper } from '../../src/decoding/index.js';
import { build } from '../../src/hparams/index.js';
import { StackedTransformerRepeated, WindowCache } from '../../src/layers/index.js';
import { gpt2Lm, LanguageModel } from '../../src/models/index.js';
import { engines } from '../compiler/engines.js';
import { randomIds, randomParams, randomPrompts } from './randomModels.js';

const [V, D, SEQLEN, WINDOW] = [23, 16, 90, 7];

/** Models by the state that they keep. */
const models = {
  full: (dtype: 'float32' | 'bfloat16') => {
    const lmTpl = gpt2Lm({ vocabSize: V, modelDims: D, numLayers: 1, numHeads: 2, maxSeqLength: SEQLEN });
    return build(LanguageModel.config({ fpropDtype: dtype, lmTpl }));
  },
  ring: (dtype: 'float32' | 'bfloat16') => {
    const lmTpl = gpt2Lm({ vocabSize: V, modelDims: D, numLayers: 2, numHeads: 2, maxSeqLength: SEQLEN });
    const attention = lmTpl.stackedTransformerTpl.transformerLayerParamsTpl.trAttenTpl;
    attention.windowSize = WINDOW;
    attention.cacheTpl = WindowCache.config();
    return build(LanguageModel.config({ fpropDtype: dtype, lmTpl }));
  },
  // Rows are the second axis of its state.
  'stacked over repetitions': (dtype: 'float32' | 'bfloat16') => {
    const lmTpl = gpt2Lm({ vocabSize: V, modelDims: D, numLayers: 2, numHeads: 2, maxSeqLength: SEQLEN });
    const { hiddenDims, numHeads, transformerLayerParamsTpl } = lmTpl.stackedTransformerTpl;
    lmTpl.stackedTransformerTpl = StackedTransformerRepeated.config({
      ...{ hiddenDims, numHeads, transformerLayerParamsTpl, xTimes: 2, unrollInDecode: false },
    });
    return build(LanguageModel.config({ fpropDtype: dtype, lmTpl }));
  },
};

const opened: Stepper[] = [];
afterAll(() => Promise.all(opened.map((stepper) => stepper.dispose())));

async function stepperOf(
  model: LanguageModel,
  rows: number,
  engine: string,
  rule = null as typeof GREEDY | null,
) {
  const stepper = await Stepper.create({
    ...{ model, params: randomParams(model, 1), rows, seqlen: SEQLEN, rule },
    compileOptions: (name) => ({ name, engine: engine as 'native', numThreads: 2 }),
  });
  opened.push(stepper);
  return stepper;
}

for (const [kind, modelOf] of Object.entries(models)) {
  for (const [title, { engine, available }] of engines) {
    test.skipIf(!available)(
      `${kind}, on ${title}: samples share their prompt, as token by token`,
      async () => {
        const model = modelOf('float32');
        const [prompts, samples, _longest] = [2, 3, 80];
        const request = {
          // More than a block of prefill, in the last block of the sequence.
          ...randomPrompts([70, 80], V),
          key: prngKey(4),
        };
        const decoder = build(SampleDecoder.config({ seqlen: SEQLEN, eosId: [], numSamples: samples, k: 5 }));
        const stepper = await stepperOf(model, prompts * samples, engine, decoder.rule);
        const shared = await decoder.decode({ ...request, ...stepper.calls });
        stepper.reset();
        const { prefill: _, ...stepwise } = stepper.calls;
        const expected = await decoder.decode({ ...request, ...stepwise });
        expect([...shared.outputIds.data]).toEqual([...expected.outputIds.data]);
        for (const [i, logprob] of expected.logprobs.data.entries())
          expect(shared.logprobs.data[i]).toBeCloseTo(logprob, 3);
      },
    );

    test.skipIf(!available)(
      `${kind}, on ${title}: rows that are moved go on as they would have`,
      async () => {
        const model = modelOf('float32');
        const stepper = await stepperOf(model, 3, engine);
        const ids = Int32Array.from(randomIds(3 * 20, V));
        // Prompts of 20, 9 and 1 tokens but for their last.
        await stepper.prefill(ids, 20, Int32Array.of(19, 8, 0));
        const at = (row: number, t: number) => ids[row * 20 + t]!;
        const last = Int32Array.of(at(0, 19), at(1, 8), at(2, 0));
        const positions = Int32Array.of(19, 8, 0);
        const before = (await stepper.extendRows(last, positions)).slice();
        stepper.reset();
        await stepper.prefill(ids, 20, Int32Array.of(19, 8, 0));
        const origins = [2, 0, 0];
        stepper.reorder(origins);
        const moved = (values: Int32Array) => Int32Array.from(origins, (row) => values[row]!);
        const after = await stepper.extendRows(moved(last), moved(positions));
        for (const [row, origin] of origins.entries())
          for (let id = 0; id < V; id++) expect(after[row * V + id]).toBeCloseTo(before[origin * V + id]!, 4);
        expect(Math.abs(before[0]! - before[V]!)).toBeGreaterThan(1e-3);
      },
    );
  }
}

test('a ring in bfloat16 draws what the eager oracle draws', async () => {
  const model = models.ring('bfloat16');
  const request = {
    ...randomPrompts([30], V),
    key: prngKey(4),
  };
  const decoder = build(SampleDecoder.config({ seqlen: 40, eosId: [], temperature: 0 }));
  const drawn = [];
  for (const engine of ['auto', 'eager']) {
    const stepper = await stepperOf(model, 1, engine, engine === 'auto' ? decoder.rule : null);
    drawn.push([...(await decoder.decode({ ...request, ...stepper.calls })).outputIds.data]);
  }
  expect(drawn[0]).toEqual(drawn[1]);
});

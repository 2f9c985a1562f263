/** @file The founding document's table of MaxText's names and Pax's, against the translation and the experiment. */
import { expect, test } from 'vitest';
import { effectiveConstants } from '../../src/experiment/index.js';
import { type MaxTextConstants, translateMaxText } from '../../src/models/index.js';
import { configured } from './zoo.js';

/** MaxText's side of the table "Pax C4Spmd22BAdam2xv4_128 | MaxText 2xv4-128.sh". */
const table = {
  scale: 3,
  base_num_decoder_layers: 16,
  base_emb_dim: 2048,
  base_mlp_dim: 8192,
  base_num_heads: 8,
  head_dim: 256,
  per_device_batch_size: 16,
  max_target_length: 1024,
  vocab_size: 32768,
  dtype: 'bfloat16',
  ici_fsdp_parallelism: 64,
  dcn_data_parallelism: 2,
};

/** Pax's side: USE_REPEATED_LAYER has no counterpart here, and MaxText none for SUMMARY_INTERVAL_STEPS. */
const pax: MaxTextConstants = {
  numLayers: 48,
  modelDims: 6144,
  hiddenDims: 24576,
  numHeads: 24,
  dimsPerHead: 256,
  percoreBatchSize: 16,
  maxSeqLen: 1024,
  vocabSize: 32768,
  fpropDtype: 'bfloat16',
  iciMeshShape: [1, 64, 1],
  dcnMeshShape: [2, 1, 1],
};

const constantsOf = async (name: string): Promise<Record<string, unknown>> =>
  Object.fromEntries(
    effectiveConstants((await configured(name)).experiment).map(({ name: constant, value }) => [
      constant,
      value,
    ]),
  );

test('the table translates as it says', () => {
  expect(translateMaxText(table)).toEqual(pax);
});

test('they are the constants of C4Spmd22BAdam2xv4_128, whose summaries come every 10 steps', async () => {
  const constants = await constantsOf('c4Multislice.C4Spmd22BAdam2xv4_128');
  expect(constants).toMatchObject(translateMaxText(table));
  expect(constants.summaryIntervalSteps).toBe(10);
});

test('without scale, they are the sizes of the model for v4-8', async () => {
  const { scale: _, ici_fsdp_parallelism: _all, ...rest } = table;
  expect(await constantsOf('c4Multislice.C4Spmd22BAdam2xv4_8')).toMatchObject(
    translateMaxText({ ...rest, ici_fsdp_parallelism: 4 }),
  );
});

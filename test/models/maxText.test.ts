/** @file MaxText's settings as constants of experiments: each name, texts of a command line, and every mistake. */
import { expect, test } from 'vitest';
import { translateMaxText } from '../../src/models/index.js';

const sizes = { base_num_decoder_layers: 16, base_emb_dim: 2048, base_mlp_dim: 8192, base_num_heads: 8 };

test('every name has its constant; what is absent stays absent', () => {
  expect(
    translateMaxText({
      ...sizes,
      head_dim: 256,
      vocab_size: 32768,
      per_device_batch_size: 0.5,
      max_target_length: 1024,
      dtype: 'bfloat16',
      dropout_rate: 0.1,
      steps: 10,
      learning_rate: 3e-5,
      save_period: 100,
      log_period: 50,
      eval_interval: 25,
      ici_tensor_parallelism: 4,
      dcn_data_parallelism: 2,
      dcn_fsdp_parallelism: 3,
    }),
  ).toEqual({
    numLayers: 16,
    modelDims: 2048,
    hiddenDims: 8192,
    numHeads: 8,
    dimsPerHead: 256,
    vocabSize: 32768,
    percoreBatchSize: 0.5,
    maxSeqLen: 1024,
    fpropDtype: 'bfloat16',
    dropoutProb: 0.1,
    numTrainSteps: 10,
    learningRate: 3e-5,
    checkpointEveryNSteps: 100,
    summaryIntervalSteps: 50,
    evalIntervalSteps: 25,
    iciMeshShape: [1, 1, 4],
    dcnMeshShape: [2, 3, 1],
  });
  expect(translateMaxText({})).toEqual({});
  expect(translateMaxText({ vocab_size: 100 })).toEqual({ vocabSize: 100 });
});

test('scale multiplies four sizes and nothing else; values may be texts', () => {
  const texts = Object.fromEntries(Object.entries(sizes).map(([name, value]) => [name, `${value}`]));
  expect(translateMaxText({ ...texts, scale: '2', head_dim: '256' })).toEqual({
    ...{ numLayers: 32, modelDims: 4096, hiddenDims: 16384, numHeads: 16, dimsPerHead: 256 },
  });
  expect(translateMaxText({ scale: 1, base_emb_dim: 64 })).toEqual({ modelDims: 64 });
});

test('an axis that only MaxText has may be 1, which is no partition', () => {
  expect(translateMaxText({ ici_sequence_parallelism: 1, dcn_pipeline_parallelism: '1' })).toEqual({});
  expect(() => translateMaxText({ ici_sequence_parallelism: 2 })).toThrow(
    "MaxText's ici_sequence_parallelism must be 1, got '2': a mesh here has the axes data, fsdp, tensor only.",
  );
});

test.each<[Record<string, unknown>, string]>([
  [
    { ici_fdsp_parallelism: 64 },
    "MaxText has no 'ici_fdsp_parallelism' that can be translated. Did you mean 'ici_fsdp_parallelism'? The names " +
      'are: scale, base_num_decoder_layers, base_emb_dim, base_mlp_dim, base_num_heads, head_dim, vocab_size, ' +
      'per_device_batch_size, max_target_length, dtype, dropout_rate, steps, learning_rate, save_period, log_period, ' +
      'eval_interval, ici_data_parallelism, ici_fsdp_parallelism, ici_tensor_parallelism, dcn_data_parallelism, ' +
      'dcn_fsdp_parallelism, dcn_tensor_parallelism.',
  ],
  [
    JSON.parse('{"__proto__": 1}'),
    "MaxText has no '__proto__' that can be translated. The names are: scale, ",
  ],
  [{ constructor: 1 }, "MaxText has no 'constructor' that can be translated."],
  [
    { remat_policy: 'full' },
    "MaxText's remat_policy has no counterpart: activations are never computed twice. Leave it out.",
  ],
  [
    { scale: 3, base_emb_dim: 2048, base_num_heads: 8 },
    "MaxText's scale multiplies base_num_decoder_layers, base_emb_dim, base_mlp_dim, base_num_heads; with scale 3, " +
      'give base_num_decoder_layers and base_mlp_dim too.',
  ],
  [
    { ...sizes, base_num_decoder_layers: 3, scale: 1.5 },
    "MaxText's base_num_decoder_layers times scale 1.5: expected a positive integer, got '4.5'",
  ],
  [
    { dcn_data_parallelism: -1 },
    "MaxText's dcn_data_parallelism is -1, whatever is left of the devices. Here the mesh says how many devices " +
      'there are; give a number.',
  ],
  [
    { dtype: 'float16' },
    "MaxText's dtype: expected one of 'float32', 'bfloat16', got 'float16'. Did you mean 'bfloat16'?",
  ],
  [{ head_dim: true }, "MaxText's head_dim: expected a positive integer, got 'true'"],
  [{ per_device_batch_size: 0 }, "MaxText's per_device_batch_size: expected a positive number, got '0'"],
])('%j is an error', (settings, message) => {
  expect(() => translateMaxText(settings)).toThrow(message);
});

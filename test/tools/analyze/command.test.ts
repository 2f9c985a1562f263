/** @file `luthier analyze` as a person runs it. */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { oneProcess, runLuthier } from '../../command.js';
import { longTest } from '../../longTest.js';

const luthier = oneProcess('src/tools/commandLine.ts');
const three = ['--set', 'task.model.lmTpl.stackedTransformerTpl.numLayers=3'];

test('a table of layers and totals', async () => {
  const { code, stdout, stderr } = await runLuthier([
    'analyze',
    'tiny.Tiny',
    '--depth=4',
    '--peak_tflops=1',
    ...three,
  ]);
  expect(stderr).toBe('');
  expect(code).toBe(0);
  expect(stdout).toBe(`tiny.Tiny

layer                                    type                               output        parameters    own       FLOPs  activations
(model)                                  LanguageModel                      []                 13.9k         1.14 MFLOP       166 kB
  lm                                     TransformerLm                      [2, 16, 256]       13.9k         1.14 MFLOP       166 kB
    position_emb                         TrainablePositionalEmbedding       [16, 16]             512    512
    transformer                          StackedTransformer                 [2, 16, 16]        9.31k          819 kFLOP       129 kB
      input_dropout                      Dropout                            [2, 16, 16]                      7.68 kFLOP      4.10 kB
      x_layers_0 … x_layers_2 (3 alike)  Transformer                        [2, 16, 16]        3.10k          270 kFLOP      41.5 kB
        layer_norm                       LayerNorm                          [2, 16, 16]           16     16  4.10 kFLOP      2.30 kB
        self_attention                   DotProductAttention                [2, 16, 16]        1.02k         98.3 kFLOP      12.3 kB
        residual_dropout                 Dropout                            [2, 16, 16]                      7.68 kFLOP      2.05 kB
        ff_layer                         TransformerFeedForward             [2, 16, 16]        2.06k          160 kFLOP      22.8 kB
    final_ln                             LayerNorm                          [2, 16, 16]           16     16  4.10 kFLOP      2.30 kB
    softmax                              NClassMajorSharedEmbeddingSoftmax  [2, 16, 256]       4.10k  4.10k   314 kFLOP      35.4 kB

Parameters, FLOPs (of the forward pass) and activations (bytes that the backward pass reads again) include the layers below.
Layers that are alike have one row, with the figures of each of them; --all shows every layer.
45 layers below --depth=4 are not shown.

Parameters  13,936 (13.9k), all trained
Batch       32 tokens a step
FLOPs       3.41 MFLOP a step, three times the forward pass; as computed 3.20 MFLOP; 35.5 kFLOP forward for each token
Memory      591 kB: variables 55.7 kB, gradients 55.7 kB, optimizer 111 kB, batches 8.19 kB, activations 254 kB at their peak, working memory 106 kB
Time        6.82 µs a step at MFU 0.5; 3.41 µs at the peak of 1.00 TFLOP/s (--peak_tflops=1)
Training    384 tokens in 12 steps, 40.9 MFLOP
`);
});

longTest('Markdown', async () => {
  const flags = ['--format=markdown', '--depth=2', '--peak_tflops=0.1', '--mfu=0.25', ...three];
  const { code, stdout } = await luthier(['analyze', 'tiny.Tiny', ...flags]);
  expect(code).toBe(0);
  expect(stdout).toBe(`### tiny.Tiny

- **Parameters:** 13,936 (13.9k), all trained
- **Batch:** 32 tokens a step
- **FLOPs:** 3.41 MFLOP a step, three times the forward pass; as computed 3.20 MFLOP; 35.5 kFLOP forward for each token
- **Memory:** 591 kB: variables 55.7 kB, gradients 55.7 kB, optimizer 111 kB, batches 8.19 kB, activations 254 kB at their peak, working memory 106 kB
- **Time:** 136 µs a step at MFU 0.25; 34.1 µs at the peak of 100 GFLOP/s (--peak_tflops=0.1)
- **Training:** 384 tokens in 12 steps, 40.9 MFLOP

| layer             | type                              | output       | parameters |   own |      FLOPs | activations |
|-------------------|-----------------------------------|--------------|-----------:|------:|-----------:|------------:|
| (model)           | LanguageModel                     | []           |      13.9k |       | 1.14 MFLOP |      166 kB |
| \`lm\`              | TransformerLm                     | [2, 16, 256] |      13.9k |       | 1.14 MFLOP |      166 kB |
| \`lm/position_emb\` | TrainablePositionalEmbedding      | [16, 16]     |        512 |   512 |            |             |
| \`lm/transformer\`  | StackedTransformer                | [2, 16, 16]  |      9.31k |       |  819 kFLOP |      129 kB |
| \`lm/final_ln\`     | LayerNorm                         | [2, 16, 16]  |         16 |    16 | 4.10 kFLOP |     2.30 kB |
| \`lm/softmax\`      | NClassMajorSharedEmbeddingSoftmax | [2, 16, 256] |      4.10k | 4.10k |  314 kFLOP |     35.4 kB |

Parameters, FLOPs (of the forward pass) and activations (bytes that the backward pass reads again) include the layers below.
61 layers below --depth=2 are not shown.
`);
});

test('JSON, with the peak of this machine', async () => {
  const { code, stdout } = await luthier(['analyze', 'tiny.Tiny', '--format=json', '--depth=1', '--mfu=1']);
  expect(code).toBe(0);
  const result = JSON.parse(stdout);
  expect(result).toMatchObject({
    experiment: 'tiny.Tiny',
    parameters: 7728,
    tokensPerStep: 32,
    unit: 'tokens',
    mfu: 1,
    layers: [{ path: '' }, { path: 'lm', outputShape: [2, 16, 256] }],
    peak: {
      source: expect.stringMatching(
        /^float32 (multiply-adds in registers|matmul of \d+ x \d+, the best of )/,
      ),
    },
  });
  expect(result.variables).toHaveLength(11);
  expect(result.variables[0]).toEqual({
    name: 'lm/position_emb/emb_var',
    shape: [32, 16],
    dtype: 'float32',
    trainable: true,
    rules: ['trained', 'decayed', 'initialized by Gaussian {"scale":0.02}'],
  });
  expect(result.secondsPerStep).toBe(result.flopsPerStep / result.peak.flops);
});

const device = join(mkdtempSync(join(tmpdir(), 'luthier-analyze-')), 'toy.yaml');
writeFileSync(
  device,
  'name: Toy\npeakFlops: { float32: 1e6 }\nassumedMfu: 0.5\nmemoryBytes: 500e3\ncount: 2\npricePerHour: 90\ncurrency: EUR\n',
);

test('on a device, and over a mesh of devices', async () => {
  const mesh = ['--set', 'task.mesh=Mesh', '--set', 'task.mesh.iciMeshShape=[1,2,1]'];
  const { code, stdout, stderr } = await luthier([
    'analyze',
    'tiny.Tiny',
    `--device=${device}`,
    '--depth=1',
    ...three,
  ]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(
    stdout.slice(stdout.indexOf('Memory  ')),
  ).toBe(`Memory      591 kB: variables 55.7 kB, gradients 55.7 kB, optimizer 111 kB, batches 8.19 kB, activations 254 kB at their peak, working memory 106 kB. Too much for Toy, which has 500 kB
Time        3.41 s a step at MFU 0.5; 1.71 s at the peak of 2.00 MFLOP/s (2 × Toy)
Training    384 tokens in 12 steps, 40.9 MFLOP
Cost        0.0227 device-hours, 40.9 s on 2 × Toy; 2.05 EUR (${device}, at MFU 0.5)
`);
  const split = await luthier([
    'analyze',
    'tiny.Tiny',
    `--device=${device}`,
    '--depth=1',
    '--mfu=1',
    ...three,
    ...mesh,
  ]);
  expect(split.stderr).toBe('');
  expect(split.stdout).toContain(
    'Memory and activations are per device; dimensions that the mesh does not split are replicated. Communication ' +
      'buffers are not counted.\n',
  );
  expect(
    split.stdout.slice(split.stdout.indexOf('Memory  ')),
  ).toBe(`Memory      464 kB on each of 2 devices (replica 1, data 2, mdl 1), 927 kB in all: variables 55.7 kB, gradients 55.7 kB, optimizer 111 kB, batches 4.10 kB, activations 127 kB at their peak, working memory 110 kB
Time        1.71 s a step at MFU 1; 1.71 s at the peak of 2.00 MFLOP/s (2 × Toy)
Training    384 tokens in 12 steps, 40.9 MFLOP
Cost        0.0114 device-hours, 20.5 s on 2 × Toy; 1.02 EUR (${device}, at MFU 1)
`);
});

test.each([
  [
    ['tiny.Tiny', '--peak_tflops=1', `--device=${device}`],
    '--peak_tflops and --device: expected one of them; a device file has the peak.\n',
    2,
  ],
  [['tiny.Tiny', '--mfu=2'], "--mfu: expected a number above 0 and at most 1; got '2'.\n", 2],
  [['tiny.Tiny', '--depth=0'], "--depth: expected a positive integer; got '0'.\n", 2],
  [['toy.Toy'], 'Toy does not say what to train: define task().\n', 2],
  [
    ['tiny.Tiny', '--set', 'datasets[0].seqLen=64'],
    'lm/position_emb (TrainablePositionalEmbedding): a sequence of 64 tokens is longer than maxSeqLength 32.\n',
    2,
  ],
])('what is wrong is told: %j', async (args, message, exitCode) => {
  const { code, stdout, stderr } = await luthier(['analyze', ...args]);
  expect({ code, stdout, stderr }).toEqual({ code: exitCode, stdout: '', stderr: message });
});

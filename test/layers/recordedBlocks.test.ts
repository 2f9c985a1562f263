/** @file Vision blocks and CTC, with their gradients, as PyTorch computes them; scripts/record_blocks.py made the figures. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { sizeOf, type Tensor, tf } from '../../src/compiler/index.js';
import { build, type Config } from '../../src/hparams/index.js';
import {
  type BaseLayer,
  ConvBNAct,
  ConvNeXtBlock,
  ctcLoss,
  ctcLossWithAlignments,
  GroupNorm,
  listVariables,
  MixerBlock,
  UNetDownBlock,
  UNetUpBlock,
} from '../../src/layers/index.js';
import { expectNear } from './contract.js';
import { ints, run } from './helpers.js';

interface Plain {
  readonly shape: number[];
  readonly data: number[];
}

/** Shapes of the inputs; values of all else. */
interface Block {
  readonly inputs: readonly number[][];
  readonly outputs: Plain;
  readonly inputGradients: readonly Plain[];
  readonly parameterGradients: Readonly<Record<string, Plain>>;
}

const recorded: {
  readonly blocks: Readonly<Record<string, Block>>;
  readonly ctc: {
    readonly lengths: readonly number[];
    readonly labels: readonly number[][];
    readonly logits: Plain;
    readonly losses: Plain;
    readonly logitGradients: Plain;
    readonly states: readonly Plain[];
    readonly alignments: readonly number[][];
  };
} = JSON.parse(readFileSync(new URL('../fixtures/blocks.json', import.meta.url), 'utf8'));

const tensorOf = ({ data, shape }: Plain): Tensor => tf.tensor(data, shape);
const filled = (shape: readonly number[], valueAt: (i: number) => number): Tensor =>
  tf.tensor(
    Float32Array.from({ length: sizeOf(shape) }, (_, i) => valueAt(i)),
    [...shape],
  );
/** The sum whose gradients are recorded. */
const weighted = (x: Tensor): tf.Scalar =>
  tf.sum(
    tf.mul(
      x,
      filled(x.shape, (i) => Math.cos(0.3 * i)),
    ),
  );

type Called = BaseLayer & { fprop(...inputs: Tensor[]): Tensor };

const convParams = () => ConvBNAct.config({ batchNormTpl: GroupNorm.config({ numGroups: 2 }) });
const blocks: Readonly<Record<string, Config<Called>>> = {
  convNeXt: ConvNeXtBlock.config({ inputDim: 4 }),
  mixer: MixerBlock.config({ numTokens: 3, inputDims: 4, tokensMlpDims: 5, channelsMlpDims: 6 }),
  uNetDown: UNetDownBlock.config({ inputDim: 3, outputDim: 4, convParams: convParams() }),
  uNetUp: UNetUpBlock.config({ inputDim: 5, outputDim: 4, skipDim: 3, convParams: convParams() }),
};

test.each(Object.entries(blocks))('%s has the outputs and gradients of PyTorch', (title, config) => {
  const block = recorded.blocks[title]!;
  const layer = build(config);
  const paths = Object.keys(block.parameterGradients);
  expect([...paths].sort()).toEqual(
    listVariables(layer)
      .map(({ path }) => path)
      .sort(),
  );
  const inputs = block.inputs.map((shape, k) => filled(shape, (i) => Math.sin(0.7 * i + k)));
  const values = Object.values(block.parameterGradients).map(({ shape }, k) =>
    filled(shape, (i) => 0.5 * Math.sin(0.7 * i + k)),
  );
  const call = (...all: Tensor[]): Tensor => {
    const theta = Object.fromEntries(paths.map((path, i) => [path, all[inputs.length + i]!]));
    return run(theta, () => layer.fprop(...all.slice(0, inputs.length)));
  };
  const all = [...inputs, ...values];
  expectNear(call(...all), tensorOf(block.outputs), 1e-5, 'outputs');
  const gradients = tf.grads((...xs) => weighted(call(...xs)))(all);
  const expected = [...block.inputGradients, ...Object.values(block.parameterGradients)];
  const names = [...inputs.map((_, i) => `input ${i}`), ...paths];
  for (const [i, gradient] of gradients.entries())
    expectNear(gradient, tensorOf(expected[i]!), 1e-5, `gradient of ${names[i]}`);
});

test('CTC has the losses, gradients and alignments of PyTorch', () => {
  const { lengths, labels, losses, logitGradients, states, alignments } = recorded.ctc;
  const logits = tensorOf(recorded.ctc.logits);
  const [batch, time] = logits.shape as [number, number];
  const most = Math.max(...labels.map(({ length }) => length));
  const paddings = (sizes: readonly number[], size: number): Tensor =>
    tf.tensor2d(sizes.map((own) => Array.from({ length: size }, (_, i) => (i < own ? 0 : 1))));
  const rest = {
    logitPaddings: paddings(lengths, time),
    labels: ints(
      labels.flatMap((row) => Array.from({ length: most }, (_, i) => row[i] ?? 0)),
      [batch, most],
    ),
    labelPaddings: paddings(
      labels.map(({ length }) => length),
      most,
    ),
  };
  const aligned = ctcLossWithAlignments({ logits, ...rest });
  for (const found of [ctcLoss({ logits, ...rest }), aligned.perSequenceLoss])
    expectNear(found, tensorOf(losses), 1e-5, 'losses');
  const gradient = tf.grad((x) => weighted(ctcLoss({ logits: x, ...rest })))(logits);
  expectNear(gradient, tensorOf(logitGradients), 1e-5, 'gradient');
  for (const [row, expected] of states.entries()) {
    const found = tf.slice(aligned.stateLogProbs, [row, 0, 0], [1, ...expected.shape]);
    expectNear(tf.exp(tf.squeeze(found, [0])), tensorOf(expected), 1e-5, `states of row ${row}`);
    const path = tf.slice(aligned.alignment, [row, 0], [1, lengths[row]!]);
    expect([...path.dataSync()], `alignment of row ${row}`).toEqual(alignments[row]);
  }
});

/** @file Mixers against those of transformers, whose outputs scripts/record_mixers.py recorded. */
import { expect, test } from 'vitest';
import { type Tensor, tf } from '../../../src/compiler/index.js';
import { build, type Config } from '../../../src/hparams/index.js';
import {
  type BaseRecurrence,
  GatedDeltaNet,
  GriffinRecurrentBlock,
  listVariables,
  Mamba,
  Mamba2,
  RgLru,
} from '../../../src/layers/index.js';
import { expectNear } from '../contract.js';
import { run } from '../helpers.js';
import { recorded } from '../recordedMixers.js';

const inputDim = 4;
const mixers: Readonly<Record<string, Config<BaseRecurrence>>> = {
  mamba: Mamba.config({ inputDim, stateDim: 3, timeStepRank: 2 }),
  mamba2: Mamba2.config({ inputDim, stateDim: 3, headDim: 2, numGroups: 2, chunkSize: 4 }),
  gatedDeltaNet: GatedDeltaNet.config({
    ...{ inputDim, numKeyHeads: 2, numValueHeads: 4, keyHeadDim: 3, valueHeadDim: 2, chunkSize: 4 },
  }),
  griffin: GriffinRecurrentBlock.config({ inputDim, lruWidth: 6, lruTpl: RgLru.config({ numBlocks: 2 }) }),
};

/** Our path of a parameter of transformers: the first rule that fits rewrites its name. */
const RULES: readonly (readonly [RegExp, string])[] = [
  [/^dt_proj\.bias$/, 'dt_bias'],
  [/^norm\.weight$/, 'norm/scale'],
  [/^conv_?1d\.(w|b).*/, 'conv1d/$1'],
  [/^(linear_\w+)\.weight$/, '$1/linear/w'],
  [/^(linear_\w+)\.bias$/, '$1/bias/b'],
  [/^rg_lru\.(\w+_gate_[wb]).*/, 'rg_lru/$1'],
  [/^(\w+)\.weight$/, '$1/w'],
  [/^(\w+)\.(\w+)$/, '$1/$2'],
];

function pathOf(name: string, title: string): string {
  if (title === 'mamba2' && name === 'norm.weight') return 'norm_scale';
  const [pattern, path] = RULES.find(([pattern]) => pattern.test(name)) ?? [/$^/, ''];
  return name.replace(pattern, path);
}

/** A value of transformers in our shape: matrices are transposed, and filters have their taps first. */
function ours(values: Tensor, shape: readonly number[], name: string): Tensor {
  if (name.startsWith('conv') && values.rank === 3)
    return tf.transpose(tf.reshape(values, [values.shape[0]!, values.shape[2]!]));
  if (values.rank === 2 && name.endsWith('weight')) return tf.transpose(values);
  return tf.reshape(values, [...shape]);
}

test.each(Object.entries(mixers))('%s is that of transformers', (title, config) => {
  const { parameters, outputs } = recorded[title]!;
  const layer = build(config);
  const variables = new Map(listVariables(layer).map(({ path, shape }) => [path, shape]));
  const theta = Object.fromEntries(
    Object.entries(parameters).map(([name, shape], k) => {
      const size = shape.reduce((a, b) => a * b, 1);
      const data = Float32Array.from({ length: size }, (_, i) => 0.5 * Math.sin(0.7 * i + k));
      const path = pathOf(name, title);
      const own = variables.get(path);
      expect(own, `${name} as ${path}`).toBeDefined();
      return [path, ours(tf.tensor(data, shape), own!, name)];
    }),
  );
  expect(Object.keys(theta).sort()).toEqual([...variables.keys()].sort());
  const x = tf.tensor(
    Float32Array.from({ length: 48 }, (_, i) => Math.sin(0.7 * i)),
    [2, 6, inputDim],
  );
  const whole = run(theta, () => layer.fprop(x, { seen: { causal: true } }));
  expectNear(whole, tf.tensor(outputs, [2, 6, inputDim]), 2e-5, title);
});

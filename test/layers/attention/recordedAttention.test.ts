/** @file Attention against that of transformers, whose outputs scripts/record_mixers.py recorded. */
import { expect, test } from 'vitest';
import { type Tensor, tf } from '../../../src/compiler/index.js';
import { build, type Config } from '../../../src/hparams/index.js';
import {
  type BaseMixer,
  GroupedQueryAttention,
  LatentAttention,
  listVariables,
  RmsNorm,
} from '../../../src/layers/index.js';
import { expectNear } from '../contract.js';
import { run } from '../helpers.js';
import { recorded } from '../recordedMixers.js';

const latent = { numHeads: 2, kvLoraRank: 5, qkNopeHeadDim: 3, qkRopeHeadDim: 4, vHeadDim: 2 };
const heads = {
  ...{ inputDim: 4, hiddenDim: 16, numHeads: 4, numKvHeads: 2, useRotaryPositionEmb: true },
  internalEnablePerDimScale: false,
};
const layers: Readonly<Record<string, Config<BaseMixer>>> = {
  latent: LatentAttention.config({ inputDim: 4, ...latent, qLoraRank: 3 }),
  latentWholeQueries: LatentAttention.config({ inputDim: 4, ...latent }),
  sinks: GroupedQueryAttention.config({ ...heads, useSinks: true }),
  outputGate: GroupedQueryAttention.config({
    ...{ ...heads, useBias: false, useOutputGate: true, normBeforeRotary: true },
    lnTpl: RmsNorm.config({ directScale: false }),
  }),
};

/** Our paths for parameters of dot-product attention in transformers; those of latent attention are the same. */
const PARTS: Readonly<Record<string, string>> = {
  ...{ q_proj: 'query', k_proj: 'key', v_proj: 'value', o_proj: 'post' },
  ...{ q_norm: 'layer_norm_q', k_norm: 'layer_norm_k' },
};

/** Values of our variables by path, from those of transformers: matrices but that of the output are transposed. */
function valuesOf(title: string, shapes: ReadonlyMap<string, readonly number[]>): Record<string, Tensor> {
  const values: Record<string, Tensor> = {};
  const isLatent = title.startsWith('latent');
  for (const [k, [name, shape]] of Object.entries(recorded[title]!.parameters).entries()) {
    const size = shape.reduce((a, b) => a * b, 1);
    const data = Float32Array.from({ length: size }, (_, i) => 0.5 * Math.sin(0.7 * i + k));
    const [part, kind] = name.split('.') as [string, string | undefined];
    const own = isLatent ? part : (PARTS[part] ?? part);
    const leaf = kind && (shape.length === 1 && kind === 'weight' ? 'scale' : kind[0]);
    const path = leaf ? `${own}/${leaf}` : own;
    const x = tf.tensor(data, shape);
    const turned = shape.length === 2 && part !== 'o_proj' ? tf.transpose(x) : x;
    if (title === 'outputGate' && part === 'q_proj') {
      // Of each head, the query and then the gate.
      const [query, gate] = tf.split(tf.reshape(turned, [4, 4, 8]), 2, -1);
      Object.assign(values, { 'query/w': query, 'gate/w': gate });
    } else values[path] = tf.reshape(turned, [...(shapes.get(path) ?? [])]);
  }
  return values;
}

test.each(Object.entries(layers))('%s is that of transformers', (title, config) => {
  const layer = build(config);
  const shapes = new Map(listVariables(layer).map(({ path, shape }) => [path, shape]));
  const theta = valuesOf(title, shapes);
  expect(Object.keys(theta).sort()).toEqual([...shapes.keys()].sort());
  const x = tf.tensor(
    Float32Array.from({ length: 48 }, (_, i) => Math.sin(0.7 * i)),
    [2, 6, 4],
  );
  const outputs = run(theta, () => layer.fprop(x, { seen: { causal: true } }));
  expectNear(outputs, tf.tensor(recorded[title]!.outputs, [2, 6, 4]), 2e-5, title);
});

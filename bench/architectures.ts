/** @file Architectures as data, which peers/torch_beyond.py builds as well, and their loss. */
import { ops, type Tensor, tf, withScope } from '../src/compiler/index.js';
import { callLibraryLayer, type LibraryLayer, type Parameters, SMALL } from './libraryLayers.js';

/** A layer with its options; images are [B, H, W, C], sequences [B, T, D]. Sizes are odd, windows padded by half. */
export type Layer =
  | { readonly kind: 'relu' | 'gelu' | 'tanh' | 'silu' }
  | { readonly kind: 'dense'; readonly features: number; readonly bias?: boolean }
  | {
      readonly kind: 'conv';
      readonly features: number;
      readonly size: number;
      readonly stride?: number;
      readonly bias?: boolean;
    }
  | { readonly kind: 'depthwise'; readonly size: number; readonly stride?: number; readonly bias?: boolean }
  /** Windows of size x size side by side, without padding. */
  | { readonly kind: 'patches' | 'grow'; readonly features: number; readonly size: number }
  | { readonly kind: 'pool'; readonly size: number }
  | { readonly kind: 'batchNorm' | 'layerNorm' }
  | { readonly kind: 'groupNorm'; readonly groups: number }
  /** Of all positions, of the last one; an image as a sequence of its places. */
  | { readonly kind: 'mean' | 'last' | 'tokens' }
  | { readonly kind: 'lstm' | 'gru'; readonly features: number }
  | { readonly kind: 'attention'; readonly heads: number; readonly causal?: boolean }
  | { readonly kind: 'positions' }
  /** Of ids; `tied` are the logits by the same table. */
  | { readonly kind: 'embed'; readonly features: number; readonly vocabulary: number }
  | { readonly kind: 'tied' }
  /** x + body(x), and x beside body(x). */
  | {
      readonly kind: 'residual' | 'concat';
      readonly body: readonly Layer[];
      readonly shortcut?: readonly Layer[];
    }
  /** Every column of ids has a tower; logits are the products of all rows of both. */
  | { readonly kind: 'towers'; readonly bodies: readonly [readonly Layer[], readonly Layer[]] }
  | LibraryLayer;

/** A classifier of rows or, where its logits have three axes, of positions. */
export interface Architecture {
  readonly input: readonly number[];
  /** Ids are below it; without it, inputs are floats. */
  readonly vocabulary?: number;
  readonly classes: number;
  readonly layers: readonly Layer[];
}

/** What layers share: the parameters, and the table of embeddings that tied logits read. */
interface Scope {
  readonly parameter: Parameters;
  table?: Tensor;
}

type Image = tf.Tensor4D;
type Build<K extends Layer['kind']> = (layer: Extract<Layer, { kind: K }>, x: Tensor, scope: Scope) => Tensor;
/** Build functions by kind; a union's members share one. */
type Kinds = { readonly [K in Layer['kind']]: Build<K> };

const library = (layer: LibraryLayer, x: Tensor, { parameter }: Scope): Tensor =>
  callLibraryLayer(layer, x, parameter);

const depthOf = (x: Tensor): number => x.shape.at(-1)!;
const padded = (size: number) =>
  [
    [0, 0],
    [size >> 1, size >> 1],
    [size >> 1, size >> 1],
    [0, 0],
  ] as [[number, number], [number, number], [number, number], [number, number]];

const biased = (y: Tensor, parameter: Parameters): Tensor => tf.add(y, parameter([depthOf(y)], SMALL));

function linear(x: Tensor, features: number, parameter: Parameters, bias = true): Tensor {
  const y = tf.matMul(x, parameter([depthOf(x), features], depthOf(x)));
  return bias ? biased(y, parameter) : y;
}

function scaled(unit: Tensor, parameter: Parameters): Tensor {
  const scale = parameter([depthOf(unit)], SMALL, 1);
  return biased(tf.mul(unit, scale), parameter);
}

/** Zero mean and a variance of 1 over the axes. */
function standardized(x: Tensor, axes: number[]): Tensor {
  const { mean, variance } = tf.moments(x, axes, true);
  return tf.mul(tf.sub(x, mean), tf.rsqrt(tf.add(variance, 1e-5)));
}

/** All states [B, T, F] of a cell that maps what it reads at a step and the state before to a state, its last part first. */
function unrolled(read: Tensor, features: number, cell: (at: Tensor, state: Tensor[]) => Tensor[]): Tensor {
  const zero = tf.zeros([read.shape[0]!, features]);
  let state: Tensor[] = [zero, zero];
  return tf.stack(
    tf.unstack(read, 1).map((at) => {
      state = cell(at, state);
      return state[0]!;
    }),
    1,
  );
}

const mean: Build<'mean'> = (_, x) =>
  tf.mean(
    x,
    x.shape.slice(1, -1).map((_, i) => i + 1),
  );

const kinds: Kinds = {
  relu: (_, x) => tf.relu(x),
  gelu: (_, x) => ops.gelu(x),
  tanh: (_, x) => tf.tanh(x),
  silu: (_, x) => tf.mul(x, tf.sigmoid(x)),
  dense: ({ features, bias }, x, { parameter }) => linear(x, features, parameter, bias),
  conv({ features, size, stride = 1, bias = true }, x, { parameter }) {
    const filter = parameter([size, size, depthOf(x), features], size * size * depthOf(x));
    const y = tf.conv2d(x as Image, filter as Image, stride, padded(size));
    return bias ? biased(y, parameter) : y;
  },
  depthwise({ size, stride = 1, bias = true }, x, { parameter }) {
    const filter = parameter([size, size, depthOf(x), 1], size * size);
    const y = tf.depthwiseConv2d(x as Image, filter as Image, stride, padded(size));
    return bias ? biased(y, parameter) : y;
  },
  patches({ features, size }, x, { parameter }) {
    const filter = parameter([size, size, depthOf(x), features], size * size * depthOf(x));
    return biased(tf.conv2d(x as Image, filter as Image, size, 'valid'), parameter);
  },
  grow({ features, size }, x, { parameter }) {
    const [rows, height, width, depth] = x.shape as [number, number, number, number];
    const filter = parameter([size, size, features, depth], depth);
    const shape = [rows, size * height, size * width, features] as [number, number, number, number];
    return biased(tf.conv2dTranspose(x as Image, filter as Image, shape, size, 'valid'), parameter);
  },
  pool: ({ size }, x) => tf.maxPool(x as Image, size, size, 'valid'),
  batchNorm: (_, x, { parameter }) =>
    scaled(
      standardized(
        x,
        x.shape.slice(0, -1).map((_, i) => i),
      ),
      parameter,
    ),
  layerNorm(_, x, { parameter }) {
    const scale = parameter([depthOf(x)], SMALL, 1);
    return ops.layerNorm(x, scale, parameter([depthOf(x)], SMALL), { epsilon: 1e-5 });
  },
  groupNorm({ groups }, x, { parameter }) {
    const parts = tf.reshape(x, [...x.shape.slice(0, -1), groups, depthOf(x) / groups]);
    const axes = parts.shape.map((_, i) => i).filter((i) => i > 0 && i !== parts.shape.length - 2);
    return scaled(tf.reshape(standardized(parts, axes), x.shape), parameter);
  },
  mean,
  last: (_, x) => tf.squeeze(tf.slice(x, [0, x.shape[1]! - 1], [-1, 1]), [1]),
  tokens: (_, x) => tf.reshape(x, [x.shape[0]!, -1, depthOf(x)]),
  lstm({ features }, x, { parameter }) {
    const read = linear(x, 4 * features, parameter);
    const weights = parameter([features, 4 * features], features);
    return unrolled(read, features, (at, [h, c]) => {
      const [i, f, g, o] = tf.split(tf.add(at, tf.matMul(h!, weights)), 4, 1) as [
        Tensor,
        Tensor,
        Tensor,
        Tensor,
      ];
      const kept = tf.add(tf.mul(tf.sigmoid(f), c!), tf.mul(tf.sigmoid(i), tf.tanh(g)));
      return [tf.mul(tf.sigmoid(o), tf.tanh(kept)), kept];
    });
  },
  // Gates in PyTorch's order.
  gru({ features }, x, { parameter }) {
    const read = linear(x, 3 * features, parameter);
    const weights = parameter([features, 3 * features], features);
    const bias = parameter([3 * features], SMALL);
    return unrolled(read, features, (at, [h]) => {
      const [r, z, n] = tf.split(at, 3, 1) as [Tensor, Tensor, Tensor];
      const own = tf.split(tf.add(tf.matMul(h!, weights), bias), 3, 1) as [Tensor, Tensor, Tensor];
      const next = tf.tanh(tf.add(n, tf.mul(tf.sigmoid(tf.add(r, own[0])), own[2])));
      return [tf.add(next, tf.mul(tf.sigmoid(tf.add(z, own[1])), tf.sub(h!, next)))];
    });
  },
  attention({ heads, causal = false }, x, { parameter }) {
    const [rows, steps, width] = x.shape as [number, number, number];
    const parts = tf.split(linear(x, 3 * width, parameter, false), 3, 2);
    const [q, k, v] = parts.map((part) => tf.reshape(part, [rows, steps, heads, width / heads])) as Tensor[];
    const mixed = tf.reshape(ops.attention(q!, k!, v!, { causal }), x.shape);
    return linear(mixed, width, parameter, false);
  },
  positions: (_, x, { parameter }) => tf.add(x, parameter(x.shape.slice(1), depthOf(x))),
  embed({ features, vocabulary }, ids, scope) {
    scope.table = scope.parameter([vocabulary, features], features);
    return ops.embeddingLookup(scope.table, ids);
  },
  tied: (_, x, { table }) => tf.matMul(x, table!, false, true),
  residual: ({ body, shortcut = [] }, x, scope) => tf.add(chain(shortcut, x, scope), chain(body, x, scope)),
  concat: ({ body }, x, scope) => tf.concat([x, chain(body, x, scope)], -1),
  towers({ bodies }, ids, scope) {
    const [left, right] = tf.unstack(ids, 1).map((column, i) => chain(bodies[i]!, column, scope));
    return tf.matMul(left!, right!, false, true);
  },
  ...{ stackFrnn: library, conformer: library, mamba: library },
  ...{ deltaNet: library, resNet18: library, uNet: library },
};

/** Layers one behind the other, each with a scope for profiles. */
const chain = (layers: readonly Layer[], x: Tensor, scope: Scope): Tensor =>
  layers.reduce(
    (y, layer, i) =>
      withScope(`${i}.${layer.kind}`, () => (kinds[layer.kind] as Build<any>)(layer, y, scope)),
    x,
  );

/** Logits [..., classes]. */
export const logitsOf = ({ layers }: Architecture, x: Tensor, parameter: Parameters): Tensor =>
  chain(layers, x, { parameter });

/** Mean cross-entropy for labels of the logits' leading shape. */
export const lossOf = (
  architecture: Architecture,
  x: Tensor,
  labels: Tensor,
  parameter: Parameters,
): Tensor => tf.mean(ops.softmaxCrossEntropy(logitsOf(architecture, x, parameter), labels));

/** @file Random architectures: mixtures of convolutions, recurrences, attention, perceptrons and norms of any size. */
import { costAnalysis, tf, uniform } from '../src/compiler/index.js';
import { type Architecture, type Layer, logitsOf } from './architectures.js';
import { transformerBlock } from './beyondModels.js';

/** GFLOP of loss and gradients: what takes neither microseconds nor seconds. */
const LIMITS = [0.5, 30] as const;
/** A recurrence is unrolled. */
const MOST_STEPS = 64;
const MOST_TOKENS = 400;

/** Draws from a stream. */
class Draw {
  private next = 0;
  constructor(private readonly key: readonly [number, number]) {}

  /** A number in [from, to]. */
  number(from: number, to: number): number {
    return (
      from + Math.floor(uniform([this.key[0], this.key[1] * 1000 + this.next++], 1)[0]! * (to - from + 1))
    );
  }

  of<T>(choices: readonly T[]): T {
    return choices[this.number(0, choices.length - 1)]!;
  }

  many<T>(from: number, to: number, make: () => readonly T[]): T[] {
    return Array.from({ length: this.number(from, to) }, make).flat();
  }
}

const activation = (draw: Draw): Layer => ({ kind: draw.of(['relu', 'gelu', 'tanh', 'silu'] as const) });

/** A norm of images, or none. */
function imageNorm(draw: Draw, depth: number): Layer[] {
  const groups = [2, 3, 4, 5, 8].filter((count) => depth % count === 0);
  return draw.of<Layer[]>([
    [],
    [{ kind: 'batchNorm' }],
    [{ kind: 'groupNorm', groups: draw.of([1, ...groups]) }],
  ]);
}

/** Stages of convolutions; returns the side and the depth that they end with. */
function drawImage(draw: Draw, side: number, depth: number) {
  const layers = draw.many(2, 4, (): Layer[] => {
    const features = draw.number(8, 96);
    const conv = (more: { size: number; stride?: number; features?: number }): Layer[] => {
      const each: Layer = { kind: 'conv', features, ...more };
      return [each, ...imageNorm(draw, each.features), activation(draw)];
    };
    const stride = side >= 8 ? draw.number(1, 2) : 1;
    const before = depth;
    const stage = draw.of(['conv', 'separable', 'residual', 'pool'] as const);
    if (stage === 'residual') return [{ kind: 'residual', body: conv({ size: 3, features: before }) }];
    depth = features;
    if (stage === 'pool' && side >= 8) {
      side = Math.floor(side / 2);
      return [...conv({ size: 3 }), { kind: 'pool', size: 2 }];
    }
    side = Math.ceil(side / stride);
    if (stage === 'separable')
      return [{ kind: 'depthwise', size: draw.of([3, 5]), stride }, activation(draw), ...conv({ size: 1 })];
    return conv({ size: draw.of([1, 3, 5]), stride });
  });
  return { layers, side, depth };
}

/** Blocks over a sequence of a width of its own. */
function drawSequence(draw: Draw, steps: number, causal: boolean) {
  const heads = draw.number(1, 8);
  const width = heads * draw.number(8, 64);
  const kinds = ['transformer', 'transformer', 'perceptron', ...(steps <= MOST_STEPS ? ['lstm', 'gru'] : [])];
  const layers = draw.many(1, 4, (): Layer[] => {
    const kind = draw.of(kinds);
    if (kind === 'transformer') return transformerBlock(width, heads, draw.number(width, 4 * width), causal);
    if (kind === 'perceptron')
      return [{ kind: 'dense', features: width }, { kind: 'layerNorm' }, activation(draw)];
    return [{ kind: kind as 'lstm' | 'gru', features: width }];
  });
  return { layers, width };
}

type Drawing = (draw: Draw) => Architecture;

const dense = (features: number): Layer => ({ kind: 'dense', features });

/** A perceptron that ends in classes. */
const drawHead = (draw: Draw, classes: number): Layer[] => [
  ...draw.many(0, 3, () => [
    dense(draw.number(30, 1200)),
    ...draw.of<Layer[]>([[], [{ kind: 'batchNorm' }], [{ kind: 'layerNorm' }]]),
    activation(draw),
  ]),
  dense(classes),
];

/** By the kind of input. */
const drawings: readonly Drawing[] = [
  function images(draw) {
    const [rows, side, channels, classes] = [
      draw.number(3, 64),
      draw.number(16, 64),
      draw.number(1, 8),
      draw.number(2, 300),
    ];
    const image = drawImage(draw, side, channels);
    const tokens = image.side ** 2;
    const sequence = (): Layer[] => {
      const { layers, width } = drawSequence(draw, tokens, false);
      return [{ kind: 'tokens' }, dense(width), { kind: 'positions' }, ...layers];
    };
    const then = tokens <= MOST_TOKENS && draw.number(0, 1) === 1 ? sequence() : [];
    const layers: Layer[] = [...image.layers, ...then, { kind: 'mean' }, ...drawHead(draw, classes)];
    return { input: [rows, side, side, channels], classes, layers };
  },
  function ids(draw) {
    const [rows, steps, vocabulary] = [draw.number(2, 24), draw.number(20, 300), draw.number(50, 20_000)];
    const { layers, width } = drawSequence(draw, steps, true);
    const embedded: Layer[] = [{ kind: 'embed', features: width, vocabulary }, { kind: 'positions' }];
    return {
      ...{ input: [rows, steps], vocabulary, classes: vocabulary },
      layers: [...embedded, ...layers, { kind: 'layerNorm' }, { kind: 'tied' }],
    };
  },
  function sequences(draw) {
    const [rows, steps, read, classes] = [
      draw.number(3, 48),
      draw.number(10, 100),
      draw.number(3, 300),
      draw.number(2, 300),
    ];
    const { layers, width } = drawSequence(draw, steps, draw.number(0, 1) === 1);
    const end: Layer = { kind: draw.of(['mean', 'last'] as const) };
    return {
      ...{ input: [rows, steps, read], classes },
      layers: [dense(width), ...layers, end, ...drawHead(draw, classes)],
    };
  },
  function vectors(draw) {
    const classes = draw.number(2, 300);
    const layers = [...drawHead(draw, draw.number(30, 1200)), activation(draw), ...drawHead(draw, classes)];
    return { input: [draw.number(16, 400), draw.number(20, 2000)], classes, layers };
  },
];

/** GFLOP of loss and gradients, which take twice as many multiplications as the logits. */
function gigaflops(architecture: Architecture): number {
  const { input: shape, vocabulary } = architecture;
  const x = { shape, dtype: vocabulary === undefined ? ('float32' as const) : ('int32' as const) };
  const logits = ({ x }: any) => logitsOf(architecture, x, (each) => tf.zeros([...each])) as any;
  return (3 * costAnalysis(logits, { x }).flops) / 1e9;
}

/** The i-th architecture of a seed. */
export function drawArchitecture(seed: number, i: number): Architecture {
  const draw = new Draw([seed, i]);
  // Chosen once: limits of costs are no preference for a kind.
  const drawing = draw.of(drawings);
  while (true) {
    const architecture = drawing(draw);
    const cost = gigaflops(architecture);
    if (cost >= LIMITS[0] && cost <= LIMITS[1]) return architecture;
  }
}

/** `48x17x9: dense 40, lstm 40, last, dense 7`. */
export function textOf({ input, layers }: Architecture): string {
  const list = (each: readonly Layer[]): string => each.map(layerText).join(', ');
  const layerText = (layer: Layer): string => {
    if (layer.kind === 'towers') return `towers (${layer.bodies.map(list).join(' | ')})`;
    if ('body' in layer) return `${layer.kind} (${list(layer.body)})`;
    const { kind, ...options } = layer;
    const sizes = Object.values(options).filter((option) => typeof option === 'number');
    return [kind, sizes.join('/')].join(' ').trim();
  };
  return `${input.join('x')}: ${list(layers)}`;
}

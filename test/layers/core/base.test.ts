/** @file BaseLayer: paths, sharing, inheritance, context, messages. */

import { expect, test } from 'vitest';
import { z } from 'zod';
import { narrow, type Tensor, tf } from '../../../src/compiler/index.js';
import { build, type Config, copy, instance, sub } from '../../../src/hparams/index.js';
import {
  BaseLayer,
  Constant,
  Dropout,
  FeedForward,
  fillVariables,
  Gaussian,
  initVariables,
  Linear,
  listLayers,
  listVariables,
  mediaType,
  observeCalls,
  runInContext,
  type Theta,
  WeightCollection,
  Xavier,
} from '../../../src/layers/index.js';
import { expectClose, ints, run, tensor } from '../helpers.js';

class Scale extends BaseLayer.with({ initial: z.number().default(2) }) {
  declare readonly theta: Theta<'s'>;
  protected override setup(): void {
    this.createVariable('s', { shape: [], init: build(Constant.config({ scale: this.hp.initial })) });
  }
  fprop(x: Tensor): Tensor {
    this.addSummary('out', () => tf.sum(x));
    this.addSummary('out', () => tf.scalar(5));
    this.addSummary('chatter', () => tf.scalar(1), 4);
    this.addAuxLoss('size', tf.scalar(3), 0.5);
    return tf.mul(x, this.theta.s);
  }
}

class Pair extends BaseLayer.with({
  first: sub(BaseLayer, () => Scale.config()),
  second: sub(BaseLayer, () => Scale.config()),
}) {
  protected override setup(): void {
    this.createChild('first', this.hp.first);
    this.createChild('second', this.hp.second);
  }
  child(name: 'first' | 'second'): BaseLayer {
    return this.children.get(name)!;
  }
}

const paths = (layer: BaseLayer): string[] => listVariables(layer).map((variable) => variable.path);
const linear = (values: Partial<Config<Linear>> = {}) =>
  Linear.config({ inputDims: 2, outputDims: 3, ...values });

test('paths join the names that parents give', () => {
  const pair = build(Pair.config({ first: FeedForward.config({ inputDims: 2, outputDims: 3 }) }));
  expect(paths(pair)).toEqual(['first/linear/w', 'first/bias/b', 'second/s']);
  expect(listLayers(pair).map((layer) => layer.path)).toEqual([
    '',
    'first',
    'first/linear',
    'first/bias',
    'first/activation',
    'second',
  ]);
  expect(pair.child('second').root).toBe(pair);
});

/** Shows what it gets. */
class Shown extends BaseLayer.with({}) {
  fprop(x: Tensor): Tensor {
    this.addImageSummary('seen', () => x);
    this.addImageSummary('seen', () => tf.cast(x, 'int32'), 1);
    this.addImageSummary('chatter', () => x, 1, 4);
    return x;
  }
}

/** Shows what it gets as sounds, texts, and a distribution. */
class Told extends BaseLayer.with({ sampleRate: z.number().default(8000) }) {
  fprop(x: Tensor): Tensor {
    this.addAudioSummary('heard', () => x, this.hp.sampleRate, 2);
    this.addAudioSummary('heard', () => tf.expandDims(x, 2), this.hp.sampleRate, 1000);
    this.addTextSummary('read', () => tf.cast(x, 'int32'));
    this.addHistogramSummary('spread', () => tf.greater(x, 0));
    this.addHistogramSummary('chatter', () => x, 4);
    return x;
  }
}

test('sounds, texts and histograms: the first entries, at most 64, of all elements; wrong ones are refused', () => {
  const media: Record<string, Tensor> = {};
  const call = (layer: Told, x: Tensor) => runInContext({ theta: {}, media }, () => layer.fprop(x));
  call(build(Told.config()), tf.zeros([70, 3]));
  expect(Object.entries(media).map(([name, { shape, dtype }]) => [name, shape, dtype])).toEqual([
    ['heard_audio8000', [2, 3, 1], 'float32'],
    ['heard1_audio8000', [64, 3, 1], 'float32'],
    ['read_text', [4, 3], 'int32'],
    ['spread_histogram', [210], 'float32'],
  ]);
  expect(mediaType('heard1_audio8000')).toEqual({ kind: 'audio', sampleRate: 8000 });
  expect(() => call(build(Told.config()), tf.zeros([3]))).toThrow(
    "model (Told): the audio summary 'heard': expected [n, samples] or [n, samples, channels], got [3].",
  );
  expect(() => call(build(Told.config({ sampleRate: 0.5 })), tf.zeros([2, 3]))).toThrow(
    "model (Told): the audio summary 'heard': expected samples per second, got 0.5.",
  );
  class Loud extends BaseLayer.with({}) {
    fprop(x: Tensor): void {
      this.addTextSummary('read', () => x);
    }
  }
  expect(() =>
    runInContext({ theta: {}, media }, () => build(Loud.config()).fprop(tf.zeros([2, 3]))),
  ).toThrow("model (Loud): the text summary 'read': expected int32 [n, length], got float32 [2, 3].");
});

test('image summaries are the first few images, computed where they are collected', () => {
  const layer = build(Shown.config());
  const media: Record<string, Tensor> = {};
  const shapeOf = (x: Tensor) => runInContext({ theta: {}, media }, () => layer.fprop(x)).shape;
  expect(shapeOf(tf.fill([6, 2, 3, 1], 0.5))).toEqual([6, 2, 3, 1]);
  expect(Object.entries(media).map(([name, { shape, dtype }]) => [name, shape, dtype])).toEqual([
    ['seen_image', [4, 2, 3, 1], 'float32'],
    ['seen1_image', [1, 2, 3, 1], 'float32'],
  ]);
  expect(() => shapeOf(tf.zeros([6, 2, 3]))).toThrow(
    "model (Shown): the image summary 'seen': expected [n, height, width, channels] with 1, 3 or 4 channels, got [6, 2, 3].",
  );
  expect(runInContext({ theta: {} }, () => layer.fprop(tf.zeros([6, 2, 3]))).shape).toEqual([6, 2, 3]);
});

test('one config in two places is one layer; a copy is another', () => {
  const config = linear();
  const shared = build(Pair.config({ first: config, second: config }));
  expect(shared.child('first')).toBe(shared.child('second'));
  expect(paths(shared)).toEqual(['first/w']);
  const distinct = build(Pair.config({ first: config, second: copy(config) }));
  expect(distinct.child('first')).not.toBe(distinct.child('second'));
  expect(paths(distinct)).toEqual(['first/w', 'second/w']);
});

test('layers with one sharedWeightLayerId are one layer below the root', () => {
  const tied = () => linear({ sharedWeightLayerId: 'tied' });
  const pair = build(Pair.config({ first: Pair.config({ first: tied() }), second: tied() }));
  expect(paths(pair)).toEqual(['tied/cld/w', 'first/second/s']);
  expect((pair.child('first') as Pair).child('first')).toBe(pair.child('second'));
});

test('layers with one sharedWeightLayerId and different configs are an error', () => {
  const config = Pair.config({
    first: linear({ sharedWeightLayerId: 'tied' }),
    second: linear({ sharedWeightLayerId: 'tied', outputDims: 4 }),
  });
  expect(() => build(config)).toThrow(
    "model (Pair): child 'second' has sharedWeightLayerId 'tied' like tied/cld, and another config; " +
      'layers that share weights have equal configs.',
  );
});

test('children inherit what they leave unset, and keep what they set', () => {
  const config = Pair.config({
    first: linear(),
    second: linear({ paramsInit: Constant.config({ scale: 4 }), skipLpRegularization: false }),
    paramsInit: Gaussian.config({ scale: 0.1 }),
    skipLpRegularization: true,
  });
  const [first, second] = listVariables(build(config));
  expect(first!.init).toBeInstanceOf(Gaussian);
  expect(first!.init.hp.scale).toBe(0.1);
  expect(first!.collections).toEqual([WeightCollection.SKIP_LP_REGULARIZATION]);
  expect(second!.init).toBeInstanceOf(Constant);
  expect(second!.collections).toEqual([]);
  const explicit = build(
    Pair.config({ first: linear({ paramsInit: Xavier.config() }), paramsInit: Gaussian.config() }),
  );
  expect(listVariables(explicit)[0]!.init).toBeInstanceOf(Xavier);
});

test('initial values depend on seed and path, not on other variables', () => {
  const alone = initVariables(build(Pair.config({ second: linear() })), 3);
  const together = initVariables(build(Pair.config({ first: linear(), second: linear() })), 3);
  expect([...alone.get('second/w')!]).toEqual([...together.get('second/w')!]);
  expect([...together.get('first/w')!]).not.toEqual([...together.get('second/w')!]);
  expect([...initVariables(build(Pair.config({ second: linear() })), 4).get('second/w')!]).not.toEqual([
    ...alone.get('second/w')!,
  ]);
});

test('summaries and auxiliary losses carry the path; verbose summaries are not computed', () => {
  const pair = build(Pair.config());
  const summaries: Record<string, Tensor> = {};
  const auxLosses: { name: string; weight: number }[] = [];
  const theta = { 'first/s': tf.scalar(2), 'second/s': tf.scalar(3) };
  const out = run(theta, () => (pair.child('second') as Scale).fprop(tf.tensor1d([1, 2])), {
    summaries,
    auxLosses: auxLosses as never,
  });
  expectClose(out, [3, 6]);
  expect(Object.keys(summaries)).toEqual(['second/out_scalar', 'second/out1_scalar']);
  expectClose(summaries['second/out_scalar']!, [3]);
  expect(auxLosses.map(({ name, weight }) => ({ name, weight }))).toEqual([
    { name: 'second/size', weight: 0.5 },
  ]);
});

test('Dropout draws keys that depend on the path and on the number of draws', () => {
  const pair = build(
    Pair.config({ first: Dropout.config({ keepProb: 0.5 }), second: Dropout.config({ keepProb: 0.5 }) }),
  );
  const x = tf.ones([64]);
  const drop = (name: 'first' | 'second') => (pair.child(name) as Dropout).fprop(x);
  const prngKey = ints([1, 2], [2]);
  const [a, b, again] = run({}, () => [drop('first'), drop('second'), drop('first')], { prngKey });
  const values = (t: Tensor): string => [...t.dataSync()].join();
  expect(new Set([a!, b!, again!].map(values)).size).toBe(3);
  expect(new Set(a!.dataSync())).toEqual(new Set([0, 2]));
  expect(values(run({}, () => drop('first'), { prngKey }))).toBe(values(a!));
  expect(run({}, () => drop('first'), { prngKey, doEval: true })).toBe(x);
  expect(() => run({}, () => drop('first'))).toThrow(
    'first (Dropout): draws random numbers, and the context has no prngKey.',
  );
});

test('messages name the layer and say what is wrong', () => {
  const pair = build(Pair.config({ first: linear() }));
  const child = pair.child('first') as Linear;
  const x = tensor([4, 2]);
  expect(() => child.fprop(x)).toThrow(
    'first (Linear): no forward pass is under way; call layers within runInContext({ theta }, fn).',
  );
  expect(() => run({}, () => child.fprop(x))).toThrow(
    "first (Linear): the context's theta has no value for 'first/w'.",
  );
  expect(() => run({ 'first/w': tensor([3, 2]) }, () => child.fprop(x))).toThrow(
    "first (Linear): theta has shape [3, 2] for 'first/w', declared as [2, 3].",
  );
  expect(() => run({ 'first/w': tensor([2, 3]) }, () => child.fprop(tensor([4, 5])))).toThrow(
    /^first \(Linear\): fprop: Error in matMul: inner shapes \(5\) and \(2\)/,
  );
});

test('declaring a name twice, or a bad name or shape, is an error', () => {
  class Twice extends BaseLayer {
    protected override setup(): void {
      this.createVariable('w', { shape: [1] });
      this.createChild('w', Scale.config());
    }
  }
  class BadName extends BaseLayer {
    protected override setup(): void {
      this.createVariable('a/b', { shape: [1] });
    }
  }
  class BadShape extends BaseLayer {
    protected override setup(): void {
      this.createVariable('w', { shape: [2, 0] });
    }
  }
  expect(() => build(Twice.config())).toThrow("model (Twice): declares 'w' twice.");
  expect(() => build(BadName.config())).toThrow(
    "model (BadName): 'a/b' can't name a child or variable: letters, digits and '_' after a letter.",
  );
  expect(() => build(BadShape.config())).toThrow(
    "model (BadShape): variable 'w' has shape [2, 0]; dimensions are positive integers.",
  );
});

test('a layer in an instance() field is an error: it would be built before its owner has a place', () => {
  class Holder extends BaseLayer.with({ held: instance(Linear, () => linear()) }) {}
  expect(() => build(Pair.config({ first: Holder.config() }))).toThrow(
    'model (Holder): stands at first without having been made there: either an instance() field of it holds a layer, ' +
      'which is built before its owner (hold layers in sub() fields and make them with createChild), or its ' +
      'config is also built as a model of its own.',
  );
});

test("a layer's products and variables are bfloat16 where it, or a layer around it, says so", async () => {
  const layer = build(Pair.config({ first: linear({ fpropDtype: 'bfloat16' }) }));
  expect([layer, layer.child('first'), layer.child('second')].map((each) => each.fpropDtype)).toEqual([
    'float32',
    'bfloat16',
    'float32',
  ]);
  const around = build(Pair.config({ fpropDtype: 'bfloat16', first: linear({ fpropDtype: 'float32' }) }));
  expect([around, around.child('first'), around.child('second')].map((each) => each.fpropDtype)).toEqual([
    'bfloat16',
    'float32',
    'bfloat16',
  ]);
  const held = build(Pair.config({ first: linear({ dtype: 'bfloat16' }) }));
  expect([held.child('first').dtype, held.child('first').fpropDtype]).toEqual(['bfloat16', 'float32']);
  const storages = (layer: BaseLayer) =>
    Object.fromEntries(listVariables(layer).map(({ path, dtype, storage }) => [path, storage ?? dtype]));
  expect(storages(held)).toEqual({ 'first/w': 'bfloat16', 'second/s': 'float32' });
  const values = initVariables(held, 3).get('first/w')!;
  const views = { 'first/w': new Uint16Array(values.length), 'second/s': new Float32Array(1) };
  await fillVariables(held, 3, views);
  expect(views['first/w']).toEqual(narrow(values, 'bfloat16'));
  const all = build(Pair.config({ dtype: 'bfloat16', first: linear() }));
  expect(new Set(Object.values(storages(all)))).toEqual(new Set(['bfloat16']));
});

test('a variable may refuse bfloat16, whatever the layer says', () => {
  class Counted extends BaseLayer {
    protected override setup(): void {
      const { DISALLOW_BFLOAT16_CONVERSION } = WeightCollection;
      this.createVariable('count', { shape: [2], collections: [DISALLOW_BFLOAT16_CONVERSION] });
      this.createVariable('w', { shape: [2] });
    }
  }
  const layer = build(Counted.config({ dtype: 'bfloat16' }));
  expect(listVariables(layer).map(({ path, storage }) => [path, storage])).toEqual([
    ['count', undefined],
    ['w', 'bfloat16'],
  ]);
});

test('contexts nest, end with their function, and refuse promises', () => {
  const layer = build(Scale.config());
  const x = tf.scalar(1);
  const inner = () => run({ s: tf.scalar(10) }, () => layer.fprop(x));
  const both = run({ s: tf.scalar(2) }, () => [inner(), layer.fprop(x)]);
  expectClose(both[0]!, [10]);
  expectClose(both[1]!, [2]);
  expect(() => runInContext({ theta: {} }, async () => 1)).toThrow(
    'runInContext: the function must not be asynchronous.',
  );
  expect(() => layer.fprop(x)).toThrow('no forward pass is under way');
});

test('an observer is told of the calls of layers, inner ones first, and of no later ones', () => {
  const layer = build(FeedForward.config({ inputDims: 2, outputDims: 3, hasBias: false }));
  const calls: string[] = [];
  const call = () => run({ 'linear/w': tensor([2, 3]) }, () => layer.fprop(tensor([5, 2])));
  observeCalls(
    (path, method, result) => void calls.push(`${path} ${method} [${(result as Tensor).shape}]`),
    call,
  );
  call();
  expect(calls).toEqual(['linear fprop [5,3]', 'activation fprop [5,3]', ' fprop [5,3]']);
});

test('a pass replaces non-trainable variables, and reads what it has replaced', () => {
  class Counter extends BaseLayer {
    protected override setup(): void {
      const init = build(Constant.config({ scale: 0 }));
      this.createVariable('seen', { shape: [], init, collections: [WeightCollection.NON_TRAINABLE] });
      this.createVariable('trained', { shape: [], init });
    }
    fprop(name = 'seen', shape: number[] = []): Tensor {
      this.updateVar(name, tf.add(this.getVar(name), tf.ones(shape)));
      return this.getVar('seen');
    }
  }
  const layer = build(Counter.config());
  const theta = { seen: tf.scalar(5), trained: tf.scalar(1) };
  const updatedVars: Record<string, Tensor> = {};
  expectClose(
    run(theta, () => [layer.fprop(), layer.fprop()][1]!, { updatedVars }),
    [7],
  );
  expectClose(updatedVars.seen!, [7]);
  // Whoever does not collect them has what there was, in the next pass.
  expectClose(
    run(theta, () => layer.fprop()),
    [6],
  );
  expect(() => run(theta, () => layer.fprop('trained'))).toThrow(
    "model (Counter): updateVar('trained'): the variable is trained; declare it in NON_TRAINABLE.",
  );
  expect(() => run(theta, () => layer.fprop('sen'))).toThrow(
    "model (Counter): has no variable 'sen'. Did you mean 'seen'? It has: seen, trained.",
  );
  expect(() => run(theta, () => layer.fprop('seen', [2]))).toThrow(
    "model (Counter): updateVar gives shape [2] for 'seen', declared as [].",
  );
});

test('overrides make a copy of the template; errors name the layer that wrote them', () => {
  class Owner extends BaseLayer.with({ dims: z.int(), tpl: sub(Linear) }) {
    protected override setup(): void {
      this.createChild('linear', this.hp.tpl, { inputDims: this.hp.dims, outputDims: 3 });
    }
  }
  const tpl = Linear.config({ outputDims: 7 });
  expect(paths(build(Owner.config({ dims: 2, tpl })))).toEqual(['linear/w']);
  expect(tpl.outputDims).toBe(7);
  expect(() => build(Owner.config({ dims: -2 }))).toThrow(
    /Linear\.inputDims: .* got -2 \(at .*base\.test\.ts:\d+\)/,
  );
});

test('methods of subclasses run in the scope of their layer, by any name', () => {
  class Odd extends BaseLayer {
    oddly(x: Tensor): Tensor {
      return this.part(x);
    }
    protected part(x: Tensor): Tensor {
      return tf.reshape(x, [7]);
    }
  }
  const layer = build(Odd.config());
  expect(() => run({}, () => layer.oddly(tf.ones([2])))).toThrow(
    /^model \(Odd\): oddly: Size\(2\) must match/,
  );
});

/** @file A small image classifier, trained step by step through jit: as the eager engine trains it, and to the end. */
import { expect, test } from 'vitest';
import { type Engine, type HostTensor, type Tensor, tf, valueAndGrad } from '../../src/compiler/index.js';
import { build, sub } from '../../src/hparams/index.js';
import { jit } from '../../src/jit/index.js';
import {
  BaseLayer,
  Conv2D,
  FullSoftmax,
  GlobalPooling,
  initVariables,
  listVariables,
  Pooling,
  ReLU,
  runInContext,
} from '../../src/layers/index.js';
import { engines } from '../compiler/engines.js';
import { numbers } from './helpers.js';

const [BATCH, SIZE, CLASSES] = [32, 12, 3];

/** Two convolutions with poolings, the mean over the image, and a softmax. */
class Classifier extends BaseLayer.with({
  firstTpl: sub(Conv2D, () => Conv2D.config({ filterShape: [3, 3, 1, 8], bias: true })),
  secondTpl: sub(Conv2D, () => Conv2D.config({ filterShape: [3, 3, 8, 16], filterStride: [2, 2] })),
  poolTpl: sub(Pooling, () => Pooling.config({ windowShape: [2, 2] })),
  meanTpl: sub(GlobalPooling, () => GlobalPooling.config({ poolingDims: [1, 2], poolingType: 'AVG' })),
  softmaxTpl: sub(FullSoftmax, () => FullSoftmax.config({ inputDims: 16, numClasses: CLASSES })),
}) {
  #layers!: readonly (BaseLayer & { fprop(x: Tensor): Tensor })[];
  #softmax!: FullSoftmax;

  protected override setup(): void {
    const { firstTpl, secondTpl, poolTpl, meanTpl, softmaxTpl } = this.hp;
    this.#layers = [
      this.createChild('first', firstTpl),
      this.createChild('relu', ReLU.config()),
      this.createChild('pool', poolTpl),
      this.createChild('second', secondTpl),
      this.createChild('relu2', ReLU.config()),
      this.createChild('mean', meanTpl),
    ];
    this.#softmax = this.createChild('softmax', softmaxTpl);
  }

  /** images [B, H, W, 1] and labels [B] to the mean cross-entropy and the logits [B, CLASSES]. */
  fprop(images: Tensor, labels: Tensor): { loss: Tensor; logits: Tensor } {
    const features = this.#layers.reduce((x, layer) => layer.fprop(x), images);
    const { avgXent, logits } = this.#softmax.fprop(features, tf.ones([BATCH]), labels);
    return { loss: avgXent, logits };
  }
}

const host = (shape: readonly number[], data: Float32Array | Int32Array): HostTensor => ({
  shape: [...shape],
  dtype: data instanceof Int32Array ? 'int32' : 'float32',
  data,
});

/** Noise with a bar across, a bar down, or a cross somewhere. */
function batch(seed: number): { images: HostTensor; labels: HostTensor } {
  const images = numbers(BATCH * SIZE * SIZE, seed).map((x) => x * 0.3);
  const places = numbers(2 * BATCH, seed + 1000);
  const labels = Int32Array.from({ length: BATCH }, (_, b) => b % CLASSES);
  labels.forEach((label, b) => {
    const [row, column] = [0, 1].map((i) => Math.floor(((places[2 * b + i]! + 1) / 2) * SIZE));
    for (let i = 0; i < SIZE; i++) {
      if (label !== 1) images[(b * SIZE + row!) * SIZE + i]! += 1;
      if (label !== 0) images[(b * SIZE + i) * SIZE + column!]! += 1;
    }
  });
  return { images: host([BATCH, SIZE, SIZE, 1], images), labels: host([BATCH], labels) };
}

interface Step {
  readonly loss: number;
  readonly accuracy: number;
}

/** One engine shows that the model learns: the others have its steps, as far as they go. */
const [learning] = engines.filter(([, { available }]) => available).at(-1)!;

/** So many steps of gradient descent with momentum, from the same start, on an engine. */
async function train(engine: Engine, steps: number, fpropDtype: 'float32' | 'bfloat16'): Promise<Step[]> {
  const model = build(Classifier.config({ fpropDtype }));
  const step = jit(
    ({ theta, momenta, images, labels }: any) => {
      const loss = (params: any) => {
        const { loss, logits } = runInContext({ theta: params }, () => model.fprop(images, labels));
        return { value: loss, aux: logits };
      };
      const { value, aux, grads } = valueAndGrad(loss as never, theta) as any;
      const moved = Object.keys(theta).map((path) => {
        const momentum = tf.add(tf.mul(momenta[path], 0.9), grads[path]);
        return [path, momentum, tf.sub(theta[path], tf.mul(momentum, 0.05))] as const;
      });
      return {
        value,
        hits: tf.sum(tf.cast(tf.equal(tf.argMax(aux, -1), labels), 'float32')),
        momenta: Object.fromEntries(moved.map(([path, momentum]) => [path, momentum])),
        theta: Object.fromEntries(moved.map(([path, , values]) => [path, values])),
      };
    },
    { engine, numThreads: 1 },
  );
  const values = initVariables(model, 1);
  const variables = listVariables(model);
  let theta: any = Object.fromEntries(
    variables.map(({ path, shape }) => [path, host(shape, values.get(path)!)]),
  );
  let momenta: any = Object.fromEntries(
    variables.map(({ path, shape }) => [path, host(shape, new Float32Array(values.get(path)!.length))]),
  );
  const results: Step[] = [];
  for (let i = 0; i < steps; i++) {
    const result = (await step({ theta, momenta, ...batch(i + 1) })) as any;
    ({ theta, momenta } = result);
    results.push({ loss: result.value.data[0], accuracy: result.hits.data[0] / BATCH });
  }
  return results;
}

const eager = new Map<string, Promise<Step[]>>();
const eagerly = (fpropDtype: 'float32' | 'bfloat16'): Promise<Step[]> => {
  const known = eager.get(fpropDtype) ?? train('eager', 3, fpropDtype);
  eager.set(fpropDtype, known);
  return known;
};

for (const [title, { engine, available }] of engines) {
  const learns = title === learning;
  test.skipIf(!available)(
    `${title} trains as the eager engine does${learns ? ', and learns' : ''}`,
    async () => {
      const steps = await train(engine, learns ? 120 : 3, 'float32');
      (await eagerly('float32')).forEach(({ loss }, i) => {
        expect(steps[i]!.loss, `step ${i}`).toBeCloseTo(loss, 4);
      });
      if (!learns) return;
      const last = steps.slice(-10);
      expect(last.reduce((sum, { accuracy }) => sum + accuracy, 0) / last.length).toBeGreaterThan(0.95);
    },
  );

  test.skipIf(!available)(`${title} in bfloat16`, async () => {
    const steps = await train(engine, 3, 'bfloat16');
    (await eagerly('bfloat16')).forEach(({ loss }, i) => {
      expect(steps[i]!.loss, `step ${i}`).toBeCloseTo(loss, 2);
    });
  });
}

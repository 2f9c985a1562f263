/**
 * @file A program in TensorFlow.js that imports the rooms `jit` and `compiler`, and tells as JSON how what it can see is
 * before and after. It ends by itself where nothing keeps it.
 */
import * as tf from '@tensorflow/tfjs';

tf.env().set('IS_TEST', true);
await tf.setBackend('cpu');

const bits = (tensor: tf.Tensor): string =>
  `${tensor.dtype}[${tensor.shape}] ${Buffer.from(tensor.dataSync().slice().buffer).toString('base64')}`;

const filled = (shape: number[], from = -1, to = 1): tf.Tensor => {
  const size = shape.reduce((a, b) => a * b, 1);
  return tf.tensor(
    Array.from({ length: size }, (_, i) => from + ((to - from) * ((i * 7919) % 101)) / 101),
    shape,
  );
};

const volume = (x: tf.Tensor, shape: [number, number, number, number] = [1, 3, 4, 2]): tf.Tensor4D =>
  tf.reshape(x, shape);

/** Functions, of common operations. */
const functions: Readonly<Record<string, (x: tf.Tensor) => tf.Tensor>> = {
  matMul: (x) => tf.matMul(tf.reshape(x, [6, 4]), filled([4, 5])),
  conv2d: (x) => tf.conv2d(volume(x), filled([2, 2, 2, 3]) as tf.Tensor4D, 1, 'same'),
  strided: (x) => tf.conv2d(volume(x), filled([2, 2, 2, 3]) as tf.Tensor4D, 2, 'valid'),
  depthwise: (x) => tf.depthwiseConv2d(volume(x), filled([2, 2, 2, 1]) as tf.Tensor4D, 1, 'same'),
  maxPool: (x) => tf.maxPool(volume(x), 2, 1, 'same'),
  avgPool: (x) => tf.avgPool(volume(x), 2, 1, 'valid'),
  softmax: (x) => tf.softmax(tf.reshape(x, [4, 6])),
  logSoftmax: (x) => tf.logSoftmax(tf.reshape(x, [4, 6])),
  moments: (x) => tf.moments(tf.reshape(x, [4, 6]), 1).variance,
  batchNorm: (x) =>
    tf.batchNorm(tf.reshape(x, [4, 6]), filled([6]), filled([6], 1, 2), filled([6]), filled([6])),
  gather: (x) => tf.gather(tf.reshape(x, [4, 6]), tf.tensor1d([3, 0, 3], 'int32')),
  slices: (x) => tf.concat([tf.slice(x, [2], [5]), tf.reverse(x), tf.tile(x, [2])]),
  pad: (x) =>
    tf.mirrorPad(
      tf.reshape(x, [4, 6]),
      [
        [1, 0],
        [0, 2],
      ],
      'reflect',
    ),
  elementwise: (x) => tf.mul(tf.tanh(x), tf.add(tf.sigmoid(x), tf.softplus(tf.abs(x)))),
  activations: (x) => tf.addN([tf.elu(x), tf.selu(x), tf.relu6(x), tf.leakyRelu(x), tf.erf(x)]),
  reductions: (x) => tf.stack([tf.max(x), tf.min(x), tf.mean(x), tf.sum(x), tf.logSumExp(x), tf.norm(x)]),
  cumsum: (x) => tf.cumsum(tf.reshape(x, [4, 6]), 1),
  resize: (x) => tf.image.resizeBilinear(volume(x, [1, 2, 2, 6]), [5, 5]),
};

/** What a user can see of the process and of tfjs. */
function snapshot(): Record<string, unknown> {
  const engine = tf.engine() as any;
  const x = filled([24]);
  const before = tf.memory();
  const values = Object.entries(functions).map(([name, f]) => {
    const { value, gradient } = tf.tidy(() => {
      const grad = tf.grad((given: tf.Tensor) => tf.sum(tf.mul(f(given), f(given))))(x);
      return { value: bits(f(x)), gradient: bits(grad) };
    });
    return { name, value, gradient };
  });
  const after = tf.memory();
  x.dispose();
  return {
    globals: Reflect.ownKeys(globalThis).map(String).sort(),
    prototypes: [Object, Array, Function, Promise, Float32Array, Map, Error].map((one) =>
      Reflect.ownKeys(one.prototype).map(String).sort(),
    ),
    tensorMethods: Object.getOwnPropertyNames(tf.Tensor.prototype).sort(),
    stackTraceLimit: Error.stackTraceLimit,
    prepareStackTrace: typeof Error.prepareStackTrace,
    flags: { ...(tf.env() as any).flags },
    features: tf.env().features,
    backend: tf.getBackend(),
    backends: engine.backendNames().sort(),
    priorities: engine.backendNames().map((name: string) => engine.registryFactory[name].priority),
    kernels: tf
      .getKernelsForBackend('cpu')
      .map(({ kernelName }) => kernelName)
      .sort(),
    memory: [before.numTensors, before.numBytes, after.numTensors, after.numBytes],
    variables: Object.keys(engine.registeredVariables),
    values: values.map(({ name, value }) => [name, value]),
    gradients: Object.fromEntries(values.map(({ name, gradient }) => [name, gradient])),
    listeners: process.eventNames().map((name) => [String(name), process.listenerCount(name)]),
    workingDirectory: process.cwd(),
    environment: { ...process.env },
    // Handles that keep the process.
    resources: process.getActiveResourcesInfo().filter((name) => /Timeout|Immediate|Worker|Port/.test(name)),
  };
}

const before = snapshot();
const { jit, compileModel } = await import('../../src/jit/index.js');
const { compile } = await import('../../src/compiler/index.js');
const imported = snapshot();
// And after use: only the tracing backend, which never becomes the current one, is new.
const double = jit((x: tf.Tensor) => tf.add(x, x), { engine: 'onnx', numThreads: 1 });
const x = tf.tensor1d([1, 2]);
const doubled = await double(x);
const result = Array.from(doubled.dataSync());
await double.dispose();
tf.dispose([x, doubled]);
const used = snapshot();
console.log(JSON.stringify({ known: [typeof compileModel, typeof compile], result, before, imported, used }));

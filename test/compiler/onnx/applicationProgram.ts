/**
 * @file An application that adds through the compiler with ONNX Runtime, in its `main` thread or a `worker`, or that makes
 * a session of the `bare` library, or looks a name up as a `caller`; then it waits as many seconds as it is told.
 */
import { lookup } from 'node:dns/promises';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { isMainThread, Worker } from 'node:worker_threads';
import { InferenceSession } from 'onnxruntime-node';
import { exportOnnx } from '../../../src/compiler/index.js';
import { jit, tf } from '../../../src/index.js';

const [where, seconds] = process.argv.slice(2);
const x = { dtype: 'float32', shape: [2], data: Float32Array.of(1, 2) } as const;
const double = (value: tf.Tensor): tf.Tensor => tf.add(value, value);

if (where === 'worker' && isMainThread) {
  const self = JSON.stringify(import.meta.url);
  const load = `import('tsx/esm/api').then(({ register }) => { register(); return import(${self}); });`;
  new Worker(load, { eval: true, argv: [where, seconds] });
} else {
  if (where === 'bare') {
    await InferenceSession.create(exportOnnx(double, x));
    // A thread of the library's own makes it, in its time.
    const id = join(process.env.XDG_CACHE_HOME!, 'Microsoft/DeveloperTools/.onnxruntime/deviceid');
    for (let tries = 0; !existsSync(id) && tries < 600; tries++) await setTimeout(50);
  } else if (where === 'caller') await lookup('luthier.invalid').catch(() => {});
  else await jit(double, { engine: 'onnx' })(x);
  await setTimeout(1000 * Number(seconds));
  console.log(isMainThread ? 'main thread' : 'worker thread');
}

/** @file `npm run bench:norms`: forward and backward pass of norms, by machine code and, where the peers are, by PyTorch. */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { compile, type Tensor, type TensorSpec, type Tree, tf, valueAndGrad } from '../src/compiler/index.js';
import { hasPeers, peersPython } from './programs.js';

interface Case {
  readonly shape: readonly number[];
  readonly f: (x: Tensor) => Tensor;
}

/** (x - mean) / sqrt(variance + epsilon) over axes of x in another shape. */
const norm = (shape: number[], each: number[], axes: number[]): Case => ({
  shape,
  f: (x) => {
    const parts = tf.reshape(x, each);
    const centered = tf.sub(parts, tf.mean(parts, axes, true));
    const variance = tf.mean(tf.square(centered), axes, true);
    return tf.reshape(tf.mul(centered, tf.rsqrt(tf.add(variance, 1e-3))), shape) as Tensor;
  },
});

const CASES: Readonly<Record<string, Case>> = {
  'group norm, 32 groups of 2': norm([8, 64, 64, 64], [8, 64, 64, 32, 2], [1, 2, 4]),
  'group norm, 8 groups of 3': norm([8, 64, 64, 24], [8, 64, 64, 8, 3], [1, 2, 4]),
  'instance norm': norm([8, 64, 64, 64], [8, 64, 64, 64], [1, 2]),
  'batch norm, channels first': norm([8, 64, 64, 64], [8, 64, 64, 64], [0, 2, 3]),
  'layer norm': norm([8, 64, 64, 64], [8, 64, 64, 64], [3]),
};

const SECONDS = 1;

for (const [name, { shape, f }] of Object.entries(CASES)) {
  const x: TensorSpec = { shape: [...shape], dtype: 'float32' };
  const step = ({ x, dy }: { x: Tensor; dy: Tensor }) =>
    valueAndGrad((p: { x: Tensor }) => ({ value: tf.sum(tf.mul(f(p.x), dy)) as Tensor, aux: {} }), { x });
  const program = await compile(step as never, { x, dy: x } as Tree<TensorSpec>, {
    engine: 'native',
    name: 'norms',
  });
  const data = Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) => Math.sin(i));
  const call = program.bind({ inputs: { x: data, dy: data.map(Math.cos) } as never });
  for (let i = 0; i < 3; i++) await call.run();
  const milliseconds: number[] = [];
  for (const end = performance.now() + SECONDS * 1000; performance.now() < end; ) {
    const before = performance.now();
    await call.run();
    milliseconds.push(performance.now() - before);
  }
  process.stdout.write(`${name}, [${shape}]: ${Math.min(...milliseconds).toFixed(2)} ms\n`);
  await program.dispose();
}
if (hasPeers) {
  const peer = fileURLToPath(new URL('peers/torch_norms.py', import.meta.url));
  execFileSync(peersPython, [peer, `--seconds=${SECONDS}`], { stdio: 'inherit' });
}
process.exit();

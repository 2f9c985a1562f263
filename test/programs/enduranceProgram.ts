/**
 * @file Looks at the memory of a process that does something many times. Prints a line of JSON: bytes at the beginning,
 * once all is warm, and at the end.
 *
 *     node --expose-gc --import tsx test/programs/enduranceProgram.ts steps 10000
 *     node --expose-gc --import tsx test/programs/enduranceProgram.ts open 200
 */
import { readFileSync } from 'node:fs';
import { compile, tf } from '../../src/compiler/index.js';
import { tinyTraining } from './tinyTraining.js';

/** Bytes that the process has in memory, and that it has addresses for, but for the room that V8's heap grows into. */
function memory(): { resident: number; mapped: number } {
  globalThis.gc?.();
  const [pages, resident] = readFileSync('/proc/self/statm', 'utf8').split(' ').map(Number);
  const { heapTotal, heapUsed } = process.memoryUsage();
  return { resident: resident! * 4096 - heapTotal + heapUsed, mapped: pages! * 4096 - heapTotal + heapUsed };
}

/** A tenth warms up, the rest should take no more. */
async function watch(count: number, act: (i: number) => Promise<void>): Promise<void> {
  const start = memory();
  for (let i = 0; i < count / 10; i++) await act(i);
  const warm = memory();
  for (let i = count / 10; i < count; i++) await act(i);
  console.log(JSON.stringify({ start, warm, end: memory() }));
}

const [what, count] = [process.argv[2]!, Number(process.argv[3])];

if (what === 'steps') {
  const { program } = await tinyTraining('native', 2);
  await watch(count, async () => {
    await program.run();
  });
} else {
  // 4 MB that the program keeps between loops that can't be one, and touches.
  const specs = { x: { shape: [512, 2048], dtype: 'float32' } } as const;
  const f = ({ x }: any) => {
    const y = tf.softmax(tf.transpose(x));
    return { sum: tf.sum(y), most: tf.max(tf.cumsum(y, 0)) };
  };
  const inputs = { x: new Float32Array(512 * 2048).fill(0.5) };
  await watch(count, async () => {
    const program = await compile(f, specs, { engine: 'native', numThreads: 2 });
    await program.bind({ inputs }).run();
    await program.dispose();
  });
}

/**
 * @file Compiles x * factor by a compiler in another folder, and prints what becomes of 1.
 * Arguments: the folder, the program's name, the factor.
 */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [folder, name, factor] = process.argv.slice(2) as [string, string, string];
const { compile, Profiler, tf, withScope } = (await import(
  pathToFileURL(join(folder, 'index.ts')).href
)) as typeof import('../../../../src/compiler/index.js');

const profiler = process.env.PROFILED ? new Profiler() : undefined;
const executable = await compile(
  ({ x }) => withScope('net', () => tf.mul(x, Number(factor))),
  { x: { shape: [4], dtype: 'float32' } },
  { engine: 'native', name, numThreads: 1, profiler },
);
const { data } = (await executable.run({
  x: { shape: [4], dtype: 'float32', data: new Float32Array(4).fill(1) },
})) as { data: Float32Array };
const layers = profiler?.programs[0]?.times.flatMap(({ part }) => part.shares.map(({ scope }) => scope));
console.log(JSON.stringify({ results: [...data], ...(layers && { layers }) }));
await executable.dispose();

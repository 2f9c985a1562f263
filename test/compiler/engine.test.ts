/** @file Choice of an engine: machine code for programs that pay for its compiling. */
import { expect, test } from 'vitest';
import { compile, type Tensor, tf } from '../../src/compiler/index.js';
import { hasCompiler } from './native/compilerSupport.js';

const square = ({ x }: { x: Tensor }) => ({ y: tf.matMul(x, x) });
const x = { shape: [4, 4], dtype: 'float32' } as const;

test('a small program is machine code where it is to run often', async () => {
  const runners: string[] = [];
  for (const options of [{}, { runs: 999 }, { runs: 1000 }, { runs: 1000, engine: 'onnx' as const }]) {
    const executable = await compile(square, { x }, options);
    runners.push(executable.runner);
    await executable.dispose();
  }
  expect(runners).toEqual(['onnx', 'onnx', hasCompiler ? 'native' : 'onnx', 'onnx']);
});

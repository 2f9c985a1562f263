/** @file The engines that the compiler's tests run over. */
import type { Engine } from '../../src/compiler/index.js';
import { hasCompiler } from './native/compilerSupport.js';

interface TestedEngine {
  readonly engine: Engine;
  readonly available: boolean;
}

/** Engines that compile, each behind its name in tests; the eager one is the oracle that they are held against. */
export const engines: readonly (readonly [title: string, TestedEngine])[] = [
  ['onnx', { engine: 'onnx', available: true }],
  [hasCompiler ? 'native' : 'native (no C compiler found)', { engine: 'native', available: hasCompiler }],
];

/** @file The engines that the compiler's tests run over. */
import type { Engine } from '../../src/compiler/index.js';
import { hasCompiler } from './native/compilerSupport.js';

/** Engines that compile, with their names in tests; the eager one is the oracle that they are held against. */
export const engines: readonly {
  readonly engine: Engine;
  readonly available: boolean;
  readonly title: string;
}[] = [
  { engine: 'onnx', available: true, title: 'onnx' },
  {
    engine: 'native',
    available: hasCompiler,
    title: hasCompiler ? 'native' : 'native (no C compiler found)',
  },
];

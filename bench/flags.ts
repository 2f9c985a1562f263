/** @file Flags shared by the benchmark programs. */
import { ENGINES, type Engine } from '../src/compiler/index.js';
import type { Precision } from './results.js';
import { type Shape, shapes } from './shapes.js';

/** Reads the values of `--shape`, `--engine` and `--precision`. @throws Error for an unknown one. */
export function readMeasured(flags: { shape: string; engine: string; precision: string }): {
  shape: Shape;
  engine: Engine;
  precision: Precision;
} {
  const shape = shapes[flags.shape];
  if (!shape)
    throw new Error(`--shape: expected one of ${Object.keys(shapes).join(', ')}; got '${flags.shape}'`);
  const engine = ENGINES.find((name) => name === flags.engine);
  if (!engine) throw new Error(`--engine: expected one of ${ENGINES.join(', ')}; got '${flags.engine}'`);
  const { precision } = flags;
  if (precision !== 'f32' && precision !== 'bf16')
    throw new Error(`--precision: expected f32 or bf16; got '${precision}'`);
  return { shape, engine, precision };
}

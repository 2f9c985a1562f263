/** @file LUTHIER_DUMP: what the passes of the native lowering make of a program, in files for people to read. */
import { createHash, randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { CompilerError } from '../../tensors.js';
import type { NativeProgram } from '../lowerToC.js';
import { graphText } from './graphText.js';
import { memoryText, stepsText } from './planText.js';
import { unitsText } from './unitText.js';

/** What the passes make of a program as texts, by the names of their files. */
export function dumpTexts({ graph, plan, source }: NativeProgram): Record<string, string> {
  return {
    'graph.txt': graphText(graph),
    'units.txt': unitsText(plan.units),
    'steps.txt': stepsText(plan),
    'memory.txt': memoryText(plan),
    'program.c': source,
  };
}

/**
 * Writes these texts to a folder of its own under `directory`, named by the program and a hash of what is in it:
 * `train_step-1f3a9c02`. A folder that is there holds the same and is left alone.
 *
 * @returns the folder.
 * @throws CompilerError where it can't be written.
 */
export function writeDump(directory: string, name: string, program: NativeProgram): string {
  const texts = dumpTexts(program);
  const hash = createHash('sha256').update(JSON.stringify(texts)).digest('hex').slice(0, 8);
  const folder = join(resolve(directory), `${name.replace(/[^\w.-]/g, '_')}-${hash}`);
  if (existsSync(folder)) return folder;
  let aside: string | undefined;
  try {
    mkdirSync(directory, { recursive: true });
    // Not `mkdtemp`, which would leave the folder to its owner alone.
    aside = `${folder}.tmp-${process.pid}-${randomBytes(6).toString('hex')}`;
    mkdirSync(aside);
    for (const [file, text] of Object.entries(texts)) writeFileSync(join(aside, file), text);
    renameSync(aside, folder);
  } catch (error) {
    if (aside !== undefined) rmSync(aside, { recursive: true, force: true });
    // Another process may have written the same in between.
    if (existsSync(folder)) return folder;
    throw new CompilerError(`LUTHIER_DUMP=${directory}: can't be written: ${(error as Error).message}.`, {
      cause: error,
    });
  }
  return folder;
}

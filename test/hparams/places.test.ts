/** @file Places in errors and histories, in a program of its own, run by tsx from another directory. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';

const library = fileURLToPath(new URL('../../src/hparams/index.ts', import.meta.url));
const zod = import.meta.resolve('zod');
const tsx = import.meta.resolve('tsx');

const program = `import { Configurable, derive, history } from ${JSON.stringify(pathToFileURL(library).href)};
import { z } from ${JSON.stringify(zod)};

class Linear extends Configurable.with({
  inputDims: z.int().positive(),
  dims: z.array(z.int()).default([]),
}) {}

interface Ignored {
  // Types vanish when this is compiled, so that lines only agree through a source map.
  some: string;
}

const config = Linear.config({ inputDims: 1 });
config.inputDims = 2;
config.dims.push(3);
const derived = derive(config, (draft) => {
  draft.inputDims = 4;
});
console.log(history(derived).map((entry) => entry.where).join(' '));
try {
  (config as unknown as Record<string, number>).inputDimz = 5;
} catch (error) {
  console.log((error as Error).message);
}
`;

test('places are those of the source, relative to the working directory', () => {
  const directory = mkdtempSync(join(tmpdir(), 'luthier-places-'));
  try {
    writeFileSync(join(directory, 'program.ts'), program);
    writeFileSync(join(directory, 'package.json'), '{"type": "module"}');
    const output = execFileSync(process.execPath, ['--import', tsx, 'program.ts'], {
      cwd: directory,
      encoding: 'utf8',
    });
    expect(output.trim().split('\n')).toEqual([
      'program.ts:14 program.ts:15 program.ts:16 program.ts:18',
      "Linear has no hyperparameter 'inputDimz'. Did you mean 'inputDims'? (at program.ts:22)",
    ]);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

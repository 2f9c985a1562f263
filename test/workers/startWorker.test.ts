/** @file Worker threads start from TypeScript under vitest, under tsx and from another directory. */

import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { startWorker } from '../../src/workers/index.js';

const doubler = new URL('./doubler.ts', import.meta.url);

test('a TypeScript worker gets its data and its own address', async () => {
  const worker = startWorker(doubler, { workerData: 21 });
  const [message] = await once(worker, 'message');
  expect(message).toEqual({ doubled: 42, url: doubler.href });
});

test('a JavaScript worker gets its data, too', async () => {
  const worker = startWorker(new URL('./plain.mjs', import.meta.url), { workerData: 1 });
  expect(await once(worker, 'message')).toEqual([2]);
});

test('an error thrown while a worker starts reaches the error event', async () => {
  const worker = startWorker(new URL('./missing.ts', import.meta.url));
  const [error] = await once(worker, 'error').catch((thrown) => [thrown]);
  expect(String(error)).toContain('missing.ts');
});

test('it works under tsx from any working directory', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'luthier-worker-'));
  try {
    const library = new URL('../../src/workers/index.ts', import.meta.url).href;
    const script = join(dir, 'main.mts');
    writeFileSync(
      script,
      `import { startWorker } from ${JSON.stringify(library)};
       startWorker(new URL(${JSON.stringify(doubler.href)}), { workerData: 4 })
         .on('message', (message) => console.log(message.doubled));`,
    );
    const tsx = fileURLToPath(import.meta.resolve('tsx/cli'));
    expect(execFileSync(process.execPath, [tsx, script], { cwd: dir, encoding: 'utf8' })).toBe('8\n');
    const loader = import.meta.resolve('tsx');
    const output = execFileSync(process.execPath, ['--import', loader, script], {
      cwd: dir,
      encoding: 'utf8',
    });
    expect(output).toBe('8\n');
  } finally {
    await rm(dir, { recursive: true });
  }
});

/** @file What is cleaned away at the end of a process, whenever a signal ends it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { temporaryDirectory } from '../command.js';
import { typescript } from '../typescriptEnvironment.js';

const cleanup = new URL('../../src/system/cleanup.ts', import.meta.url).href;

/** Makes folders, the signal coming as soon as the first is there; the last that was made is removed first. */
const program = `
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
const { mkdtempSync } = fs;
fs.mkdtempSync = (prefix) => {
  const path = mkdtempSync(prefix);
  process.kill(process.pid, 'SIGTERM');
  return path;
};
syncBuiltinESMExports();
const { temporaryFolder } = await import('${cleanup}');
for (const name of ['a-', 'b-'])
  temporaryFolder(name, (path) => {
    console.log(path);
    fs.rmSync(path, { recursive: true });
  });
setInterval(() => {}, 1000);
`;

test('a signal leaves no folder behind, not even one that was made a moment ago', async () => {
  const folder = temporaryDirectory();
  const child = spawn(process.execPath, ['--import', typescript, '--input-type=module', '--eval', program], {
    env: { ...process.env, TMPDIR: folder },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let said = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  expect(await once(child, 'close')).toEqual([null, 'SIGTERM']);
  expect(said).toMatch(/\/b-\w+\n.*\/a-\w+\n$/);
  expect(readdirSync(folder)).toEqual([]);
});

/** @file What docs/security.md promises of a run: whom it calls, what it writes and for whom, and what it keeps to itself. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { join, relative } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { startCommand, temporaryDirectory } from './command.js';
import { execute } from './compiler/native/compilerSupport.js';
import { buildListener, canListen, type Listener, listening } from './listener.js';

describe.skipIf(!canListen)(`a run${listening}`, () => {
  let listen: () => Listener;
  beforeAll(async () => {
    listen = await buildListener(temporaryDirectory());
  });

  test('would be heard', async () => {
    const server = createServer().listen(0, 'localhost');
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = server.address() as { port: number };
    const { env, heard } = listen();
    const call = `require('node:net').connect(${port}, 'localhost').on('connect', () => process.exit());`;
    await execute(process.execPath, ['-e', call], { env: { ...process.env, ...env } });
    server.close();
    expect(heard()).toEqual(['lookup localhost', expect.stringMatching(/^socket IPv[46]$/)]);
  });

  test('calls nobody, obeys the umask, and writes nothing of the environment, and nothing to the home', async () => {
    const { env, heard, written } = listen();
    const directory = join(temporaryDirectory(), 'job');
    const flags = ['--exp=Tiny', `--job_log_dir=${directory}`, '--engine=onnx', '--mode=train_and_decode'];
    const usual = process.umask(0o027);
    const { finished } = startCommand(flags, undefined, undefined, {
      ...env,
      SECRET_TOKEN: 'hunter2-hunter2',
    });
    process.umask(usual);
    const { code, stderr } = await finished;
    expect({ code, stderr, heard: heard(), written: written() }).toEqual({
      ...{ code: 0, stderr: '' },
      ...{ heard: [], written: [] },
    });
    const entries = readdirSync(directory, { recursive: true, withFileTypes: true });
    const files = entries
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name));
    expect(files.map((file) => relative(directory, file))).toEqual(
      expect.arrayContaining([
        'experiment.json',
        'metrics.jsonl',
        'checkpoints/checkpoint_00000012/state.safetensors',
      ]),
    );
    for (const entry of entries) {
      const { mode } = statSync(join(entry.parentPath, entry.name));
      expect([entry.name, (mode & 0o777).toString(8)]).toEqual([entry.name, entry.isFile() ? '640' : '750']);
    }
    const leaks = files.filter((file) => /SECRET_TOKEN|hunter2|LISTENED/.test(readFileSync(file, 'latin1')));
    expect(leaks).toEqual([]);
    const { commandLine } = JSON.parse(readFileSync(join(directory, 'experiment.json'), 'utf8')) as {
      commandLine: string[];
    };
    expect(commandLine.slice(1)).toEqual(flags);
  });
});

test('every package has a checksum, and what runs when it is installed is named', () => {
  const read = (name: string) => JSON.parse(readFileSync(new URL(`../${name}`, import.meta.url), 'utf8'));
  const { packages } = read('package-lock.json') as {
    packages: Record<string, { integrity?: string; link?: boolean; hasInstallScript?: boolean }>;
  };
  const installed = Object.entries(packages).filter(([path]) => path.startsWith('node_modules/'));
  const unchecked = installed.filter(([, { integrity, link }]) => !link && !integrity?.startsWith('sha512-'));
  expect(unchecked).toEqual([]);
  const scripts = installed
    .filter(([, { hasInstallScript }]) => hasInstallScript)
    .map(([path]) => path.slice(13));
  const { allowScripts } = read('package.json') as { allowScripts: Record<string, boolean> };
  expect(Object.keys(allowScripts).sort()).toEqual(scripts.sort());
  expect(Object.keys(allowScripts).filter((name) => allowScripts[name])).toEqual([
    '@tensorflow/tfjs-node-gpu',
  ]);
});

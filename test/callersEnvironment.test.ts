/** @file Tests run in an environment of their own, whatever that of their caller is. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { globSync } from 'tinyglobby';
import { expect, test } from 'vitest';
import callersEnvironment from './callersEnvironment.js';

test('no variable of the caller colours, narrows, translates or redirects what programs write', () => {
  const odd = {
    NO_COLOR: '1',
    FORCE_COLOR: '3',
    COLUMNS: '20',
    LC_ALL: 'de_DE.UTF-8',
    GIT_DIR: '/nowhere',
    TZ: 'Asia/Tokyo',
    TERM: 'dumb',
  };
  const shown = `import setUp from './test/callersEnvironment.ts'; setUp();
    console.log(JSON.stringify(['${Object.keys(odd).join("','")}'].map((name) => process.env[name] ?? null)));`;
  const { stdout, stderr } = spawnSync(
    process.execPath,
    ['--import', './test/typescript.js', '--input-type=module', '--eval', shown],
    { env: { ...process.env, ...odd }, encoding: 'utf8' },
  );
  expect({ stdout, stderr }).toEqual({
    stdout: `${JSON.stringify([null, null, null, null, null, 'UTC', 'xterm-256color'])}\n`,
    stderr: '',
  });
  for (const name of ['NO_COLOR', 'COLUMNS', 'LC_ALL', 'GIT_DIR'])
    expect(process.env, name).not.toHaveProperty(name);
  expect(process.env).toMatchObject({ TZ: 'UTC', LANG: 'C.UTF-8' });
});

/** Variables that sources read and tests leave as the caller has them, and why. */
const kept: Readonly<Record<string, string>> = {
  CC: 'the compiler of the machine, on which the tests are to pass',
  GITHUB_EVENT_PATH: 'read where a workflow runs, of which tests give their own',
  HOME: 'where tools of the machine have their settings',
  LUTHIER_GUARD_PAGES: 'by which a run of all tests puts tensors beside pages that nothing may touch',
  MPICC: 'the MPI of the machine, as CC',
  ORT_DISABLE_TELEMETRY: 'given by vitest.config.ts',
  PATH: 'where programs of the machine are',
  TMPDIR: 'made by test/temporaryFolders.ts',
  TSX_DISABLE_CACHE: 'of how sources are loaded, not of what they do',
  UCX_MEM_EVENTS: 'of the transport below the MPI of the machine',
  XDG_CACHE_HOME: 'given by vitest.config.ts',
};

test('each variable that sources read is unset, given, or kept for a reason', () => {
  const texts = globSync('src/**/*.{ts,js,cjs,c}').map((file) => readFileSync(file, 'utf8'));
  const reading = /\benv\.([A-Z][A-Z_]+)\b|\bgetenv\("(\w+)"\)|\b(?:VARIABLE|variable) = '([A-Z_]+)'/g;
  const read = new Set(
    texts.flatMap((text) => [...text.matchAll(reading)].map((match) => match.slice(1).find(Boolean)!)),
  );
  const before = { ...process.env };
  try {
    for (const name of read) process.env[name] = 'odd';
    callersEnvironment();
    const left = [...read].filter((name) => process.env[name] === 'odd');
    expect(left.sort()).toEqual(Object.keys(kept).sort());
  } finally {
    for (const name of read) delete process.env[name];
    Object.assign(process.env, before);
  }
});

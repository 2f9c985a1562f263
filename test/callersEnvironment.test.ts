/** @file Tests run in an environment of their own, whatever that of their caller is. */
import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';

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

/** @file Commands in a project with links to nowhere, folders and pipes that have the names of source files. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { oneProcess, runLuthier } from '../command.js';
import { longTest } from '../longTest.js';
import { oddProblems, oddProject } from './oddFiles.js';

const directory = oddProject();
const luthier = oneProcess('src/tools/commandLine.ts', directory);

test('list names what it cannot read, passes over what is hidden, and goes on', async () => {
  const { code, stdout, stderr } = await luthier(['list']);
  expect(stderr.trimEnd().split('\n')).toEqual(
    oddProblems(directory).map((problem) => `${problem} It is skipped.`),
  );
  expect(stdout).toMatch(
    /^fine\.Fine {2}experiments\/fine\.ts:\d+ {2}extends Family\n\n1 experiment in 1 file\.\n$/,
  );
  expect(code).toBe(0);
});

longTest('validate fails for each that it cannot read, and checks the others', async () => {
  const { stdout, code } = await runLuthier(['validate', '--level=resolve', '--format=json'], directory);
  const { experiments } = JSON.parse(stdout);
  expect(experiments.map(({ name, state }: { name: string; state: string }) => [name, state]).sort()).toEqual(
    [
      ['dangling', 'failed'],
      ['fine.Fine', 'passed'],
      ['loop', 'failed'],
      ['nested', 'failed'],
      ['pipe', 'failed'],
    ],
  );
  expect(code).toBe(1);
});

test.each(['pipe.X', 'loop.X', 'folder.X', 'dangling.X', `${'long'.repeat(2000)}.X`])(
  'an experiment of one that is no file is not found: %s',
  async (name) => {
    const { code, stderr } = await luthier(['dump', name]);
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: expect.stringMatching(/^Could not find experiment '/),
    });
    expect(stderr).not.toMatch(/^ {4}at /m);
  },
);

test('why the file that a name means cannot be read is told', async () => {
  const { stderr } = await luthier(['dump', 'pipe.X']);
  expect(stderr).toContain(
    `\nexperiments/pipe.ts cannot be read: ${directory}/experiments/pipe.ts is not a regular file but a named pipe.\n`,
  );
});

test('rename names the file that TypeScript cannot read', async () => {
  writeFileSync(join(directory, 'tsconfig.json'), '{"include": ["experiments"]}');
  expect(await luthier(['rename', 'Fine.width', 'breadth', '--dry_run'])).toMatchObject({
    code: 2,
    stderr:
      'TypeScript cannot read experiments/nested.ts: nested too deeply. Leave it out in tsconfig.json.\n',
  });
});

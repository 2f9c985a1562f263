/** @file `luthier list` as a person runs it. */
import { expect, test } from 'vitest';
import { oneProcess, runLuthier } from '../../command.js';
import { family, project } from '../experiments.js';

const directory = project({
  'experiments/own.ts': `${family}
/**
 * A small *one*.
 *
 * More of it.
 */
export class Small extends Family.with({
  note: z.string().default('a rather long text, so that what is listed of this constant is cut off').describe('A note.'),
}) {
  override modelDims = 32;
  override rate =
    1e-3;
}

export class Plain extends Family {}
`,
  'experiments/deep/more.ts': `import { z } from 'zod';
import { Family } from '../own.js';
export class Needs extends Family.with({ dataPath: z.string(), size: z.int() }) {}
export class Wrong extends Family { override modelDims = 15; }
`,
});

const luthier = oneProcess('src/tools/commandLine.ts', directory);
const list = (...args: string[]) => luthier(['list', ...args]);

test('place, base class, first paragraph and own constants, without running the file', async () => {
  const { code, stdout, stderr } = await list();
  expect(stderr).toBe('');
  expect(stdout).toBe(`deep.more.Needs  experiments/deep/more.ts:3  extends Family
    dataPath: z.string(), size: z.int()

deep.more.Wrong  experiments/deep/more.ts:4  extends Family
    modelDims = 15

own.Plain  experiments/own.ts:44  extends Family

own.Small  experiments/own.ts:36  extends Family
  A small *one*.
    note: z.string().default('a rather long text, so that what is lis…, modelDims = 32, rate = 1e-3

4 experiments in 2 files.
`);
  expect(code).toBe(0);
});

test('patterns, families and JSON', async () => {
  const [json, families, none] = await Promise.all([
    list('own.s*', '--format=json'),
    list('own.family', '--abstract'),
    list('OWN.Smal'),
  ]);
  expect(JSON.parse(json.stdout)).toEqual({
    experiments: [
      {
        name: 'own.Small',
        file: 'experiments/own.ts',
        line: 36,
        base: 'Family',
        abstract: false,
        description: 'A small *one*.',
        constants: [
          {
            name: 'note',
            kind: 'declared',
            text: "z.string().default('a rather long text, so that what is listed of this constant is cut off')",
            description: 'A note.',
            line: 37,
          },
          { name: 'modelDims', kind: 'set', text: '32', line: 39 },
          { name: 'rate', kind: 'set', text: '1e-3', line: 40 },
        ],
      },
    ],
  });
  expect(families.stdout).toBe(`\
own.Family  experiments/own.ts:5  abstract, extends Experiment
  Small models on synthetic tokens.
    modelDims: z.int().positive().default(16), seqLen: z.int().default(16),
    evalLen: z.int().default(16), rate: z.number().default(1e-2), spare: z.int().default(1)

1 experiment, 1 of them abstract, in 1 file.
`);
  expect([json.code, families.code, none.code]).toEqual([0, 0, 0]);
  expect(none.stdout).toContain('own.Small  experiments/own.ts:36  extends Family\n  A small *one*.\n');
});

test('no match is said, with what may have been meant', async () => {
  const { code, stdout } = await list('own.Smallx');
  expect(stdout).toMatch(
    /^No experiment of experiments and .*experiments matches 'own\.Smallx'\. Did you mean 'own\.Small'\?\n$/,
  );
  expect(code).toBe(1);
});

test('--build tells parameters, what is wrong and what is needed', async () => {
  const { code, stdout } = await list('--build', 'deep.*', '--format=json');
  expect(JSON.parse(stdout).experiments).toMatchObject([
    { name: 'deep.more.Needs', problems: ['needs --set dataPath=PATH and --set size=VALUE'] },
    {
      name: 'deep.more.Wrong',
      problems: [
        expect.stringMatching(
          /^task: Building DotProductAttention failed: .*hiddenDim 15 is not a multiple of numHeads 2/,
        ),
      ],
    },
  ]);
  expect(code).toBe(0);
  const built = await list('--build', 'own.Plain');
  expect(built.stdout).toBe(
    'own.Plain  experiments/own.ts:44  extends Family\n  3.89k parameters\n\n1 experiment in 1 file.\n',
  );
});

test('a file that cannot be read is told of, and the others are listed', async () => {
  const broken = project({
    'experiments/a.ts': 'export class extends {{{',
    'experiments/own.ts': `${family}\nexport class Plain extends Family {}\n`,
  });
  const { code, stdout, stderr } = await runLuthier(['list', 'own.Plain'], broken);
  expect(stderr).toMatch(/^experiments\/a\.ts:1: .*\. The rest of this file may not be listed\.\n$/);
  expect(stdout).toBe('own.Plain  experiments/own.ts:31  extends Family\n\n1 experiment in 1 file.\n');
  expect(code).toBe(0);
});

test('exports that source text does not tell are named, and nothing is loaded', async () => {
  const mixed = project({
    'experiments/own.ts': `throw new Error('loaded');
import { withDropout } from './lib.js';
import { Base } from './base.js';
export class Mixed extends withDropout(Base, 0.1) {}
`,
  });
  const run = oneProcess('src/tools/commandLine.ts', mixed);
  const { code, stdout, stderr } = await run(['list']);
  expect([code, stderr]).toEqual([0, '']);
  expect(
    stdout,
  ).toBe(`Perhaps experiments, which source text does not tell; npx luthier list --build loads them:
  own.Mixed  experiments/own.ts:4  withDropout(Base, 0.1)
`);
  const json = await run(['list', 'mixed', '--format=json']);
  expect(JSON.parse(json.stdout)).toEqual({
    experiments: [],
    unclassified: [
      { name: 'own.Mixed', file: 'experiments/own.ts', line: 4, text: 'withDropout(Base, 0.1)' },
    ],
  });
});

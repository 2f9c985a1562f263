/** @file `luthier validate` as a person runs it: on experiments that are wrong in every way, in one project. */
import { expect, test } from 'vitest';
import { oneProcess } from '../../command.js';
import { longTest } from '../../longTest.js';
import { byName, family, project } from '../experiments.js';

const files = {
  'experiments/base.ts': family,
  'experiments/good.ts': `import { z } from 'zod';
import { Family } from './base.js';
console.log('what it prints does no harm');
export class Good extends Family {
  override spare = 2;
}
export class Needs extends Family.with({ dataPath: z.string(), size: z.int() }) {
  override datasets() {
    return this.size > 1 ? super.datasets() : super.datasets().slice(0, 1);
  }
}
`,
  'experiments/bad.ts': `import { Family } from './base.js';
export class Misspelt extends Family {
  modelDim = 32;
  override rate = 0.2;
  override evalLen = 2.5;
  sqLen = 2;
}
export class Fails extends Family {
  override task(): never {
    throw new TypeError('no task today');
  }
}
export class NoData extends Family {
  override datasets(): never {
    throw new Error('no data');
  }
}
export class Unset extends Family {
  override task() {
    const task = super.task();
    delete (task.model.lmTpl as { vocabSize?: number }).vocabSize;
    return task;
  }
  override datasets() {
    const [train, test] = super.datasets();
    delete (test as { batchSize?: number }).batchSize;
    return [train!, test!];
  }
}
export class Twice extends Family {
  override datasets() {
    const [train, test] = super.datasets();
    test!.name = 'train';
    return [train!, test!];
  }
}
export class LongEval extends Family {
  override evalLen = 64;
}
export class Exits extends Family {
  override task() {
    console.log('leaving');
    process.exit(3);
    return super.task();
  }
}
export class Rejects extends Family {
  override task() {
    Promise.reject(new RangeError('nobody caught this'));
    return super.task();
  }
}
export class Hangs extends Family {
  override task() {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    return super.task();
  }
}
export class After extends Family {}
export class Seeing extends Family {
  override task() {
    const task = super.task();
    Object.assign(task.model.lmTpl, { modelType: 'bidirectional' });
    return task;
  }
}
export class Wide extends Family {
  override datasets() {
    return super.datasets().map((dataset) => Object.assign(dataset, { vocabSize: 64 }));
  }
}
`,
  'experiments/half.ts': `import { Family } from './base.js';
export class First extends Family {}
export class Second extends Family { override modelDims = = 3; }
`,
  'experiments/loads.ts': `import { Family } from './base.js';
import './absent.js';
export class Loads extends Family {}
`,
  'experiments/hopeless.ts': 'export class extends {{{\n',
};
const directory = project(files);

// It checks experiments in processes of its own.
const luthier = oneProcess('src/tools/commandLine.ts', directory);
const validate = (...args: string[]) => luthier(['validate', ...args]);

longTest('every experiment has its own findings, whatever the others do', async () => {
  const { code, stdout, stderr } = await validate('--format=json', '--timeout=15');
  expect(stderr).toBe('');
  expect(code).toBe(1);
  const found = byName(stdout);
  const constants = 'Its constants are: evalLen, modelDims, rate, seqLen, spare.';
  expect(found).toEqual({
    'bad.After': passed('bad.ts:59'),
    'bad.Exits': failed('bad.ts:40', 'resolve', [
      {
        level: 'task',
        message: expect.stringMatching(/^The process ended with exit code 3\. It said:\n(.*\n)?leaving$/),
      },
    ]),
    'bad.Fails': failed('bad.ts:8', 'resolve', [
      { level: 'task', message: 'TypeError: no task today', place: 'experiments/bad.ts:10' },
    ]),
    'bad.Hangs': failed('bad.ts:53', 'resolve', [
      {
        level: 'task',
        message: 'It took longer than 15 s; luthier validate --timeout=SECONDS gives it more.',
      },
    ]),
    'bad.LongEval': {
      ...failed('bad.ts:37', 'datasets', [
        {
          level: 'trace',
          path: 'datasets[1]',
          message:
            'lm/position_emb (TrainablePositionalEmbedding): a sequence of 64 tokens is longer than maxSeqLength 16.',
        },
      ]),
      parameters: 3888,
    },
    'bad.Seeing': {
      ...failed('bad.ts:60', 'datasets', [
        {
          level: 'trace',
          path: 'task.model.lmTpl.modelType',
          message: expect.stringMatching(
            /^Input 'train' has labels that are the next tokens, .* \(MaskedLanguageModelFeatures\)\.$/,
          ),
        },
      ]),
      parameters: 3888,
    },
    'bad.Wide': {
      ...failed('bad.ts:67', 'datasets', [
        {
          level: 'trace',
          path: 'task.model.lmTpl.vocabSize',
          message:
            "Input 'train': the input has 64 ids, and task.model.lmTpl.vocabSize is 32: the model knows ids 0 to 31. Set " +
            'task.model.lmTpl.vocabSize to 64 or more, or give the input a tokenizer with fewer ids.',
        },
      ]),
      parameters: 3888,
    },
    'bad.Misspelt': failed('bad.ts:2', 'resolve', [
      {
        level: 'task',
        message: `Misspelt has no constant 'modelDim'. Did you mean 'modelDims'? ${constants}`,
        path: 'modelDim',
        place: 'experiments/bad.ts:3',
      },
      {
        level: 'task',
        message: 'Misspelt.evalLen: expected an integer, got 2.5',
        place: 'experiments/bad.ts:5',
      },
      {
        level: 'task',
        message: `Misspelt has no constant 'sqLen'. Did you mean 'seqLen'? ${constants}`,
        path: 'sqLen',
        place: 'experiments/bad.ts:6',
      },
    ]),
    'bad.NoData': {
      ...failed('bad.ts:13', 'task', [
        { level: 'datasets', message: 'no data', place: 'experiments/bad.ts:15' },
      ]),
      parameters: 3888,
    },
    'bad.Rejects': {
      ...failed('bad.ts:47', 'resolve', [
        { level: 'task', message: 'RangeError: nobody caught this', place: 'experiments/bad.ts:49' },
      ]),
      parameters: 3888,
    },
    'bad.Twice': {
      ...failed('bad.ts:30', 'task', [
        {
          level: 'datasets',
          message:
            "Twice: datasets[0] and datasets[1] are both named 'train', and would write the same summaries. Give one of " +
            'them another name: --set datasets[1].name=NAME.',
          path: 'datasets[1].name',
        },
      ]),
      parameters: 3888,
    },
    'bad.Unset': failed('bad.ts:18', 'resolve', [
      {
        level: 'task',
        message: expect.stringMatching(
          /^A hyperparameter is not set: vocabSize \(TransformerLm\): expected a positive integer \(deleted at experiments\/bad\.ts:21\)/,
        ),
        path: 'vocabSize',
      },
      {
        level: 'datasets',
        message:
          '(SyntheticLmInput): not set, expected a positive integer (deleted at experiments/bad.ts:26)',
        path: 'datasets[1].batchSize',
      },
    ]),
    'good.Good': {
      ...passed('good.ts:4'),
      warnings: ['experiments/good.ts:5: spare is set, and nothing reads it.'],
    },
    'good.Needs': {
      ...failed('good.ts:7', 'resolve', [
        expect.objectContaining({ needs: '--set dataPath=PATH' }),
        expect.objectContaining({ needs: '--set size=VALUE' }),
      ]),
      state: 'incomplete',
    },
    'half.First': failed('half.ts:2', null, [unreadable]),
    'half.Second': failed('half.ts:3', null, [unreadable]),
    hopeless: failed('hopeless.ts:1', null, [
      { level: 'resolve', message: expect.any(String), place: 'experiments/hopeless.ts:1' },
    ]),
    'loads.Loads': failed('loads.ts:3', null, [
      {
        level: 'resolve',
        message: expect.stringMatching(/^The file fails to load: Cannot find module '.*absent\.js'/),
      },
    ]),
  });
});

const unreadable = {
  level: 'resolve',
  message: 'The file fails to load: Unexpected "="',
  place: 'experiments/half.ts:3',
};

function passed(place: string) {
  const common = { place: `experiments/${place}`, problems: [], warnings: [] };
  return { ...common, state: 'passed', reached: 'trace', parameters: 3888 };
}

function failed(place: string, reached: string | null, problems: unknown[]) {
  return { place: `experiments/${place}`, state: 'failed', reached, problems, warnings: [] };
}

test('text names the level, the place and the mending; what lacks a value fails only where it is named', async () => {
  const { code, stdout } = await validate('good.*', 'LongEval');
  expect(untimed(stdout)).toBe(`\
            experiment    place                  reached   parameters
passed      good.Good     experiments/good.ts:4  trace          3.89k
    warning: experiments/good.ts:5: spare is set, and nothing reads it.
incomplete  good.Needs    experiments/good.ts:7  resolve            –
    needs --set dataPath=PATH and --set size=VALUE
failed      bad.LongEval  experiments/bad.ts:37  datasets       3.89k
    trace: datasets[1]: lm/position_emb (TrainablePositionalEmbedding): a sequence of 64 tokens is longer than maxSeqLength 16.

3 experiments up to level trace: 1 passed, 1 incomplete, 1 failed, 1 warning.
`);
  expect(code).toBe(1);
  const named = await validate('Needs');
  expect(named.code).toBe(1);
  const own = project({ 'experiments/base.ts': family, 'experiments/good.ts': files['experiments/good.ts'] });
  const all = await luthier(['validate', '--level=0', '--set', 'dataPath=a'], own);
  expect(all.code).toBe(0);
  const incomplete = await luthier(['validate', '--level=1', '--set', 'dataPath=a'], own);
  expect(incomplete.code).toBe(0);
  expect(untimed(incomplete.stdout)).toBe(`\
            experiment  place                  reached  parameters
passed      good.Good   experiments/good.ts:4  task          3.89k
    warning: experiments/good.ts:5: spare is set, and nothing reads it.
incomplete  good.Needs  experiments/good.ts:7  resolve           –
    needs --set size=VALUE

2 experiments up to level task: 1 passed, 1 incomplete, 1 warning.
`);
});

function untimed(stdout: string): string {
  return stdout.replace(/ +(?:time|\d+\.\d s)$/gm, '').replace(/ \d+\.\d s\.\n$/, '\n');
}

longTest(
  'settings apply to each experiment that is named, and to those that have them where none is',
  async () => {
    const complete = ['--set', 'dataPath=a', '--set', 'size=2'];
    const [one, other, slip] = await Promise.all([
      validate('Needs', ...complete, '--level=datasets', '--format=json'),
      validate('Good', ...complete),
      validate('--level=resolve', '--set', 'dataPth=a'),
    ]);
    expect(byName(one.stdout)['good.Needs']).toMatchObject({
      state: 'passed',
      reached: 'datasets',
      parameters: 3888,
    });
    expect(one.code).toBe(0);
    expect(other.stdout).toContain("task: --set dataPath=a: Good has no constant 'dataPath'.");
    expect(other.code).toBe(1);
    expect(slip.stderr).toBe(
      "--set dataPth=a: no experiment has a constant 'dataPth'. Did you mean 'dataPath'?\n",
    );
    expect(slip.code).toBe(2);
  },
);

test('names that no experiment has, or several, and levels that there are not', async () => {
  const own = project({
    'experiments/base.ts': family,
    'experiments/a.ts': `import { Family } from './base.js';\nexport class Same extends Family {}\n`,
    'experiments/b.ts': `import { Family } from './base.js';\nexport class Same extends Family {}\n`,
  });
  const run = async (...args: string[]) => {
    const { stderr, code } = await luthier(['validate', ...args], own);
    expect(code).toBe(2);
    return stderr;
  };
  expect(await run('Same')).toBe(
    "'Same' does not uniquely identify an experiment. Possible matches: a.Same, b.Same.\n",
  );
  expect(await run('a.Sme')).toMatch(
    /^Could not find experiment 'a\.Sme' \(searched experiments and .*\)\. Did you mean 'a\.Same'\? luthier list shows all\.\n$/,
  );
  expect(await run('--level=tsk')).toBe(
    "--level: expected one of the levels 0 resolve, 1 task, 2 datasets, 3 trace, 4 step; got 'tsk'.\n",
  );
});

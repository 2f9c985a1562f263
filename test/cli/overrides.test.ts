/** @file What the command line changes of an experiment: order, fiddlers, files, sweeps, and their errors. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import {
  type Combination,
  checkedCombinations,
  configure,
  dumpText,
  expandSweeps,
  type Override,
  parseFiddler,
  parseFile,
  parseSet,
  parseShellText,
  parseUnset,
  shellText,
} from '../../src/cli/index.js';
import { type Flags, parseFlags } from '../../src/cli/run/flags.js';
import { settingsHelp } from '../../src/cli/settingsHelp.js';
import {
  defineTag,
  formatPath,
  fromJSON,
  fromYAML,
  history,
  isEqual,
  isSet,
  pathsLike,
  select,
} from '../../src/hparams/index.js';
import { BaseLayer, Dropout, Linear } from '../../src/layers/index.js';
import { resolveExperiment } from '../../src/registry/index.js';
import { registerLibrary } from '../../src/rooms.js';
import { temporaryDirectory } from '../command.js';
import { Fiddled } from '../fixtures/project/experiments/fiddled.js';

const directory = fileURLToPath(new URL('../fixtures/project/experiments', import.meta.url));
const resolved = await resolveExperiment('fiddled.Fiddled', [directory]);
registerLibrary();

const parse = (flags: readonly string[]): Flags['changes'] => parseFlags(flags).changes;
const made = (...flags: string[]) => configure(resolved, parse(flags) as Override[]);
const steps = (...flags: string[]) => made(...flags).task.train.numTrainSteps;
const set = 'task.train.numTrainSteps';
const constant = (experiment: object, name: string) => (experiment as Record<string, unknown>)[name];

function messageOf(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    expect(['UsageError', 'ConfigError']).toContain((error as Error).name);
    return (error as Error).message;
  }
  throw new Error('nothing was thrown');
}

test('--set and --fiddler are applied in the order given', () => {
  expect(steps('--set', `${set}=10`, '--fiddler', 'scaleSteps(2)')).toBe(20);
  expect(steps('--fiddler', 'scaleSteps(2)', '--set', `${set}=10`)).toBe(10);
  expect(steps('--fiddler', 'scaleSteps(2)', '--unset', set, '--set', `${set}=7`)).toBe(7);
});

test('constants come before the configs that are made with them, wherever they stand', () => {
  expect(steps('--fiddler', 'scaleSteps(2)', '--set', 'numTrainSteps=5')).toBe(10);
  expect(steps('--set', 'numTrainSteps=5', '--set', 'numTrainSteps=6')).toBe(6);
});

test('an unread constant causes a warning, unless a class field reads it', () => {
  class Fixed extends Fiddled {
    override numSamples = this.spare + 1;
    override decodeDatasets() {
      return [];
    }
  }
  const warningsOf = (cls: typeof resolved.cls, ...flags: string[]) =>
    configure({ ...resolved, cls }, parse(flags) as Override[]).warnings;
  const flags = ['--set', 'modelDims=8', '--set', 'spare=1', '--unset', 'spare'];
  expect(warningsOf(Fiddled, ...flags)).toEqual([
    '--unset spare: Fiddled never reads the constant spare while it makes its configs, so the flag has no effect.',
  ]);
  expect(warningsOf(Fixed, ...flags)).toEqual([]);
});

test('--unset brings back declared defaults: of constants, of fields; and takes entries out', () => {
  expect(constant(made().experiment, 'learningRate')).toBe(2e-2);
  expect(constant(made('--unset', 'learningRate').experiment, 'learningRate')).toBe(1e-2);
  expect(made('--unset', 'task.train.saveIntervalSteps').task.train.saveIntervalSteps).not.toBe(4);
  expect(made('--unset', 'decodeDatasets[0]').decodeDatasets).toEqual([]);
  expect(messageOf(() => made('--unset', 'datasets[0].seqLen'))).toBe(
    'datasets[0].seqLen: TextInput.seqLen has no default to go back to (at --unset datasets[0].seqLen)',
  );
});

test('--set and --unset of a tag reach every field that has it', () => {
  const flag = '#LearningRate=0.25';
  const { task } = made('--set', flag);
  expect(task.train.learner.optimizer.learningRate).toBe(0.25);
  expect(history(task.train.learner.optimizer, 'learningRate').at(-1)!.where).toBe(`--set ${flag}`);

  const typed = made('--set', '#ActivationDtype=bfloat16', '--unset', '#ActivationDtype').task.model;
  expect([typed.fpropDtype, isSet(typed, 'fpropDtype')]).toEqual([null, false]);
  const dtypes = select(made('--set', '#ActivationDtype=bfloat16').task, BaseLayer).get('fpropDtype');
  expect([new Set(dtypes), dtypes.length > 10]).toEqual([new Set(['bfloat16']), true]);

  expect(messageOf(() => made('--set', '#LearningRates=1'))).toBe(
    "--set #LearningRates=1: No tag 'LearningRates' is defined. Did you mean 'LearningRate'?",
  );
  expect(messageOf(() => made('--set', '#LearningRate=fast'))).toBe(
    "task.train.learner.optimizer.learningRate: expected a non-negative number, got 'fast' (at --set #LearningRate=fast)",
  );
  defineTag('overrides.Absent', 'Stands nowhere.');
  expect(messageOf(() => made('--set', '#overrides.Absent=1'))).toBe(
    '--set #overrides.Absent=1: no field of the configs has the tag. There are #ActivationDtype, #LearningRate.',
  );
});

test('--set and --unset of a pattern reach every field that it means, and all of them are listed', () => {
  const flag = 'datasets[*].batchSize=7';
  const rows = made('--set', flag);
  expect(rows.datasets.map(({ batchSize }) => batchSize)).toEqual([7, 7]);
  expect(rows.hits).toEqual([`--set ${flag} changes 2 fields: datasets[0].batchSize, datasets[1].batchSize`]);
  expect(history(rows.datasets[1]!, 'batchSize').at(-1)!.where).toBe(`--set ${flag}`);

  // Of any depth; of one level alone; of a part of a name.
  const dropouts = made('--set', '**.*eepProb=0.5', '--unset', '**.reluDropoutTpl.keepProb');
  const kept = select(dropouts.task, Dropout).get('keepProb');
  const [hit, unset] = dropouts.hits.map((line) => line.split(': ')[1]!.split(', '));
  expect(hit!.length).toBe(kept.length);
  expect(unset).toEqual(hit!.filter((path) => path.endsWith('.reluDropoutTpl.keepProb')));
  expect(kept.filter((each) => each !== 0.5)).toEqual(unset!.map(() => 1));
  expect(made('--set', 'task.*.numTrainSteps=5').hits).toEqual([
    '--set task.*.numTrainSteps=5 changes 1 field: task.train.numTrainSteps',
  ]);
  expect(() => made('--set', 'task.*.keepProb=1')).toThrow('no field of the configs matches');
  expect(made('--set', '**.train.numTrainSteps=9').task.train.numTrainSteps).toBe(9);
  // Of many fields, a line names the first.
  const [, count, names, rest] = /^--unset .* changes (\d+) fields: (.*) and (\d+) more$/.exec(
    made('--unset', '**.*D*p*').hits[0]!,
  )!;
  expect([names!.split(', ').length, Number(rest)]).toEqual([100, Number(count) - 100]);
  // A later flag wins, and a pattern sees the configs that earlier ones left.
  expect(made('--set', flag, '--set', 'datasets[0].batchSize=3').datasets[0]!.batchSize).toBe(3);
});

test('a pattern with a shared config counts each of its fields once, by either path', () => {
  const shared = Linear.config({ inputDims: 2, outputDims: 2 });
  const found = (pattern: string) =>
    pathsLike({ a: { b: shared }, c: shared, 'x.y': [shared] }, pattern).map(formatPath);
  expect(found('**.inputDims')).toEqual(["['a']['b'].inputDims"]);
  expect(found('c.inputDims')).toEqual(["['c'].inputDims"]);
  expect(found("['x.y'][*].*putDims")).toEqual(["['x.y'][0].inputDims", "['x.y'][0].outputDims"]);
});

test.each([
  ['**.keepProbs=0.9', "--set **.keepProbs=0.9: no field of the configs matches. Did you mean 'keepProb'?"],
  [
    'datasets[*].numTrainSteps=1',
    '--set datasets[*].numTrainSteps=1: no field of the configs matches. Fields of that name are task.train.numTrainSteps.',
  ],
  [
    '**..x=1',
    "--set **..x=1: The pattern '**..x' cannot be read from '..x' on. Patterns look like task.**.keepProb or " +
      'datasets[*].batchSize: * is one level, ** any number of them.',
  ],
  [
    '**.numTrainSteps=many',
    "task.train.numTrainSteps: expected a non-negative integer, got 'many' (at --set **.numTrainSteps=many)",
  ],
])('--set of the pattern %s is refused', (text, message) => {
  expect(messageOf(() => made('--set', text))).toBe(message);
});

test('a fiddler may edit the configs or return replacements', () => {
  expect(made('--fiddler', 'rename').task.name).toBe('renamed');
  expect(made('--fiddler', 'rename(name=x, all=true)').task.name).toBe('x!');
  expect(made('--fiddler', 'batches(5)').datasets.map((each) => each.batchSize)).toEqual([5, 3]);
  expect(made('--fiddler', 'batches(5, what="all")').datasets.map((each) => each.batchSize)).toEqual([5, 5]);
});

test('a fiddler’s edits have its lines as origin, its results and settings the flag', () => {
  const { configs, task } = made('--fiddler', 'rename', '--fiddler', 'scaleSteps(2)', '--set', 'task.name=y');
  const where = (config: object, field: string) =>
    history(config as typeof task)
      .filter((entry) => entry.field === field)
      .at(-1)!.where;
  expect(where(task.train, 'numTrainSteps')).toMatch(/experiments\/fiddled\.ts:\d+$/);
  expect(where(configs, 'task')).toBe('--fiddler rename');
  expect(where(task, 'name')).toBe('--set task.name=y');
});

test.each([
  [
    'scaleStep(2)',
    "--fiddler scaleStep(2): FILE exports no fiddler 'scaleStep'. Did you mean 'scaleSteps'? " +
      'Its fiddlers are: astray, batches, broken, rename, scaleSteps, wrong.',
  ],
  [
    'z',
    "--fiddler z: FILE exports no fiddler 'z'. Its fiddlers are: astray, batches, broken, rename, scaleSteps, wrong.",
  ],
  [
    'pairs',
    "--fiddler pairs: 'pairs' of FILE is a sweep. Its fiddlers are: astray, batches, broken, rename, scaleSteps, wrong.",
  ],
  [
    'Tiny',
    "--fiddler Tiny: FILE exports no fiddler 'Tiny'. Its fiddlers are: astray, batches, broken, rename, scaleSteps, wrong.",
  ],
  [
    'batches(sise=2)',
    "--fiddler batches(sise=2): batches has no argument 'sise'. Did you mean 'size'? It takes size, what.\n" +
      '  batches(sise=2)\n          ^',
  ],
  [
    'batches(2, size=3)',
    "--fiddler batches(2, size=3): The argument 'size' is given twice.\n  batches(2, size=3)\n             ^",
  ],
  [
    'batches(1, all, 2)',
    '--fiddler batches(1, all, 2): batches got one argument too many. It takes size, what.\n' +
      '  batches(1, all, 2)\n                  ^',
  ],
  [
    'batches(1, what=al)',
    "--fiddler batches(1, what=al): what: expected one of 'train', 'all', got 'al'. Did you mean 'all'?\n" +
      '  batches(1, what=al)\n             ^',
  ],
  [
    'batches',
    "--fiddler batches: batches needs the argument 'size': a positive integer.\n  batches\n         ^",
  ],
  [
    'astray',
    'astray() returned {tsk}; return nothing, the configs, or some of {task, datasets, decodeDatasets}. (at --fiddler astray)',
  ],
])('--fiddler %s is an error', (text, message) => {
  const file = /(\S*fiddled\.ts)/.exec(messageOf(() => made('--fiddler', 'nothing')))![1]!;
  expect(messageOf(() => made('--fiddler', text)).replaceAll(file, 'FILE')).toBe(message);
});

test('a value that a fiddler writes is checked, and the message names its line', () => {
  expect(messageOf(() => made('--fiddler', 'wrong'))).toMatch(
    /^TextInput\.batchSize: expected a positive integer, got -1 \(at .*fiddled\.ts:\d+\)$/,
  );
});

test.each([
  ['task.__proto__.x=1', "No 'task.__proto__.x': SingleTask at 'task' has no '__proto__'."],
  ['__proto__.x=1', "Fiddled has no constant '__proto__.x'."],
  ["datasets[0]['constructor']=1", "has no 'constructor'"],
  ['task=TextInput', "task: expected a SingleTask config, got 'TextInput'"],
  ['tsk.name=x', "Fiddled has no constant 'tsk.name'. Did you mean 'task'?"],
])('--set %s is refused', (text, message) => {
  expect(messageOf(() => made('--set', text))).toContain(message);
  expect(({} as { x?: unknown }).x).toBeUndefined();
});

test('an error in a file has its line and column after the flag', () => {
  const file = join(temporaryDirectory(), 'a.yaml');
  const problem = (text: string): string => {
    writeFileSync(file, text);
    return messageOf(() => made('--config_file', file)).replaceAll(file, 'FILE');
  };
  expect(problem('modelDims: 8\n  task: [')).toMatch(
    /^--config_file FILE: This is not YAML.*\(at FILE:2:\d+\)/s,
  );
  expect(problem('modelDims: 8\nmodelDims: 9')).toBe(
    '--config_file FILE: This is not YAML for configs: the key "modelDims" is given twice, first at FILE:1:1. (at FILE:2:1)',
  );
  expect(problem('task: {$class: Nothing}')).toMatch(/No class 'Nothing' is known\..* \(at FILE:1:8\)$/);
  expect(problem('task.train.numTrainSteps: 1\ntask: {train: {numTrainSteps: 2}}')).toBe(
    '--config_file FILE: task.train.numTrainSteps: set twice, first at FILE:1 (at FILE:2)',
  );
  const many = Array.from({ length: 12_000 }, (_, i) => `k${i}: 1`).join('\n');
  expect(problem(many)).toMatch(/^FILE:1: Fiddled has no constant 'k0'\./);
});

test('methods of an experiment that are async are refused by name', () => {
  for (const method of ['task', 'datasets', 'decodeDatasets', 'validate']) {
    class Late extends Fiddled {}
    Object.defineProperty(Late.prototype, method, {
      value: async () => {
        throw new Error('later');
      },
    });
    expect(messageOf(() => configure({ ...resolved, cls: Late }))).toBe(
      `Late.${method}() must not be async: its result is used when it returns.`,
    );
  }
});

test('a file sets constants and fields in its place; the history names its lines', () => {
  const file = join(temporaryDirectory(), 'a.yaml');
  writeFileSync(
    file,
    `# What is tried.\nmodelDims: 8\ntask:\n  train:\n    numTrainSteps: 3\ndatasets[0].batchSize: 4\n`,
  );
  const { task, datasets, experiment } = made('--config_file', file);
  expect(constant(experiment, 'modelDims')).toBe(8);
  expect([task.train.numTrainSteps, datasets[0]!.batchSize]).toEqual([3, 4]);
  expect(history(task.train, 'numTrainSteps').at(-1)!.where).toMatch(/a\.yaml:5$/);
  expect(steps('--config_file', file, '--fiddler', 'scaleSteps(2)')).toBe(6);
  expect(steps('--fiddler', 'scaleSteps(2)', '--config_file', file)).toBe(3);
  writeFileSync(file, 'modelDim: 8\n');
  expect(messageOf(() => made('--config_file', file))).toMatch(
    /a\.yaml:1: Fiddled has no constant 'modelDim'\. Did you mean 'modelDims'\?/,
  );
  writeFileSync(file, 'task:\n  train:\n    numTrainSteps: many\n');
  expect(messageOf(() => made('--config_file', file))).toMatch(
    /expected a non-negative integer, got 'many'.*a\.yaml:3/,
  );
});

test.each(['json', 'yaml'] as const)('what --dump=%s prints, --config_file takes back', (format) => {
  const flags = ['--set', 'modelDims=8', '--fiddler', 'batches(5)', '--set', 'task.name=x'];
  const file = join(temporaryDirectory(), `dump.${format}`);
  const text = dumpText(resolved, parse(flags), format);
  writeFileSync(file, text);
  const [before, after] = [made(...flags), made('--config_file', file)];
  expect(isEqual(after.configs, before.configs)).toBe(true);
  expect(constant(after.experiment, 'modelDims')).toBe(8);
  expect(dumpText(resolved, parse(['--config_file', file]), format)).toBe(text);
  expect(format === 'json' ? fromJSON(text) : fromYAML(text)).toHaveProperty('constants.modelDims', 8);
});

test('--dump prints lines, a tree, or the history', () => {
  const changes = parse(['--set', 'task.name=x']);
  expect(dumpText(resolved, changes, 'text')).toContain("\ntask.name : 'x'\n");
  expect(dumpText(resolved, changes, 'history')).toContain("task.name : 'x' @ --set task.name=x\n");
  expect(dumpText(resolved, changes, 'tree')).toContain('SingleTask');
  const file = join(temporaryDirectory(), 'constants.yaml');
  writeFileSync(file, '# widths\nmodelDims: 8\n');
  const flags = parse(['--config_file', file, '--set', 'numSamples=3']);
  const history = dumpText(resolved, flags, 'history');
  expect(history).toContain(`modelDims : 8 @ ${file}:2\n`);
  expect(history).toContain('numSamples : 3 @ --set numSamples=3\n');
});

const runs = (...flags: string[]): [string, string[]][] =>
  expandSweeps(parse(flags), resolved).map(({ name, settings }: Combination) => [
    name,
    settings.map(({ path, text }) => `${path}=${text}`),
  ]);

test('several sweeps are multiplied; one may be a function of the file', () => {
  expect(
    runs('--sweep', 'modelDims=8,16', '--sweep', 'task.train.numTrainSteps=1..2').map(([name]) => name),
  ).toEqual([
    'modelDims=8,numTrainSteps=1',
    'modelDims=8,numTrainSteps=2',
    'modelDims=16,numTrainSteps=1',
    'modelDims=16,numTrainSteps=2',
  ]);
  expect(runs('--sweep', 'pairs(most=2)')).toEqual([
    ['modelDims=8,learningRate=0.01', ['modelDims=8', 'learningRate=0.01']],
    ['modelDims=16,learningRate=0.005', ['modelDims=16', 'learningRate=0.005']],
  ]);
});

test('a sweep sets its values in its own place', () => {
  const scaled = (...flags: string[]) =>
    expandSweeps(parse(flags), resolved).map(
      ({ overrides }) => configure(resolved, overrides).task.train.numTrainSteps,
    );
  expect(scaled('--sweep', `${set}=2,3`, '--fiddler', 'scaleSteps(10)')).toEqual([20, 30]);
  expect(scaled('--fiddler', 'scaleSteps(10)', '--sweep', `${set}=2,3`)).toEqual([2, 3]);
});

test.each([
  [
    ['--sweep', 'learningRate=0.1,x'],
    "Fiddled.learningRate: expected a positive number, got 'x' (at --sweep learningRate=0.1,x)",
  ],
  [
    ['--sweep', 'modelDims=8', '--sweep', 'modelDims=16'],
    "--sweep modelDims=16 and --sweep modelDims=8 both sweep 'modelDims'.",
  ],
  [
    ['--sweep', 'modelDims=8,16', '--set', 'modelDims=4'],
    '--set modelDims=4 overrides the earlier --sweep modelDims=8,16: leave one out.',
  ],
  [
    ['--sweep', 'modelDims=8,8'],
    '--sweep modelDims=8,8: The value 8 is there twice.\n  modelDims=8,8\n              ^',
  ],
  [
    ['--sweep', 'pairs(9)'],
    "--sweep pairs(9): most: expected an integer from 1 to 4, got '9'\n  pairs(9)\n        ^",
  ],
  [
    ['--sweep', '#LearningRate=1e-3,1e-4', '--set', 'task.train.learner.optimizer.learningRate=0.1'],
    'The runs LearningRate=1e-3 and LearningRate=1e-4 of the sweep have the same configs. ' +
      '--set task.train.learner.optimizer.learningRate=0.1 overrides task.train.learner.optimizer.learningRate, which ' +
      '--sweep #LearningRate=1e-3,1e-4 sets: leave one out.',
  ],
  [
    ['--sweep', '#LearningRate=1,2', '--sweep', 'task.train.learner.optimizer.learningRate=3,4'],
    'The runs LearningRate=1,learningRate=3 and LearningRate=2,learningRate=3 of the sweep have the same configs. ' +
      '--sweep task.train.learner.optimizer.learningRate=3,4 overrides task.train.learner.optimizer.learningRate, which ' +
      '--sweep #LearningRate=1,2 sets: leave one out.',
  ],
  [
    ['--sweep', 'learningRate=1e-3,1e-4', '--set', 'task.train.learner.optimizer.learningRate=0.1'],
    'The runs learningRate=1e-3 and learningRate=1e-4 of the sweep have the same configs. ' +
      'The values of --sweep learningRate=1e-3,1e-4 are equal, overridden by another flag, or not read.',
  ],
  [
    ['--sweep', 'learningRate=1e-2,0.01'],
    'The runs learningRate=1e-2 and learningRate=0.01 of the sweep have the same configs. ' +
      'The values of --sweep learningRate=1e-2,0.01 are equal, overridden by another flag, or not read.',
  ],
])('%j cannot be run', (flags, message) => {
  expect(messageOf(() => checkedCombinations(parse(flags), resolved))).toBe(message);
});

test('help lists all settings, with stars at changed ones, fiddlers and sweeps; nothing is truncated', () => {
  const text = settingsHelp(resolved, parse(['--set', 'task.name=a-name']));
  expect(text).toMatch(/^\* learningRate +a positive number = 0\.02, default 0\.01, set by Fiddled$/m);
  expect(text).toMatch(
    /^\* task\.name +a non-empty string = 'a-name'(, default '.*')?, set at --set task\.name=a-name$/m,
  );
  expect(text).toMatch(/^ {2}datasets\[0\]\.batchSize +a positive integer = 2, set at .*tiny\.ts:\d+$/m);
  expect(text).toMatch(/^ {2}batches\(size, what\) +size: a positive integer\. Rows of a batch\.$/m);
  expect(text).toMatch(/^ +what: one of 'train', 'all' = 'train'\. Which datasets\.$/m);
  expect(text).toMatch(
    /^Sweeps of .*fiddled\.ts, for --sweep:\n {2}pairs\(most\) +most: an integer from 1 to 4 = 2$/m,
  );
  expect(text).not.toContain('…,');
  const narrow = settingsHelp(resolved, [], 100).split('\n');
  expect(narrow.filter((line) => line.length > 100 && !/\S{50}/.test(line))).toEqual([]);
});

test.each([
  parseSet('numLayers=6'),
  parseSet("dataPath=a file of 'mine'.txt"),
  parseSet("note='quoted'"),
  parseUnset('datasets[0].batchSize'),
  parseFiddler("lora(rank=8, targets='all')"),
  parseFile('out/a run/experiment.json'),
])('the shell text of $origin is read again', (override) => {
  expect(parseShellText(shellText(override))).toEqual(override);
});

test.each(['--sweep numLayers=1,2', 'numLayers=6', ''])('%s is no override', (text) => {
  expect(() => parseShellText(text)).toThrow(`'${text}' is no flag that changes an experiment.`);
});

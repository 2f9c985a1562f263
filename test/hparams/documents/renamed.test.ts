/** @file Fields that were renamed: old documents, config files and flags are read with a notice; code is told the new name. */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { configure, type Override, parseFile, parseSet, parseUnset } from '../../../src/cli/index.js';
import { Experiment } from '../../../src/experiment/index.js';
import { registerClass } from '../../../src/hparams/fields/classNames.js';
import {
  applyConfigFile,
  build,
  type Config,
  Configurable,
  configurable,
  defineTag,
  fromJSON,
  fromYAML,
  getTags,
  loadConfigFile,
  renamed,
  select,
  setPath,
  sub,
  toJSON,
  toYAML,
} from '../../../src/hparams/index.js';
import { SingleTask } from '../../../src/tasks/index.js';
import { longTest } from '../../longTest.js';

const Width = defineTag('renamed.Width', 'How wide something is.');

class Head extends Configurable.with({
  outputDims: renamed(z.int().positive(), 'dims').default(4).describe('Outputs.'),
  scale: z.number().default(1),
}) {}
class Encoder extends Configurable.with({
  // Called `a` first, then `b`.
  numHeads: renamed(z.int().positive().default(8).describe('Heads.'), 'a', 'b'),
  headTpl: renamed(sub(Head), 'head'),
}) {}
registerClass(Encoder);
class Wide extends Encoder.with({ extra: z.int().default(0) }) {}

function messageOf(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error('nothing was thrown');
}

/** The text of a file that calls every field by an old name. */
const withOldNames = (text: string): string =>
  text.replaceAll('outputDims', 'dims').replaceAll('numHeads', 'a').replaceAll('headTpl', 'head');

/** A config written in place, as a document. */
const inPlace = (text: string): string => `format: luthier-config\nversion: 1\nroot: ${text}\n`;

const config = () => Wide.config({ numHeads: 2, headTpl: Head.config({ outputDims: 3 }), extra: 1 });
const notices = [
  "The config document uses the old name 'dims' of Head.outputDims.",
  "The config document uses the old name 'a' of Wide.numHeads.",
  "The config document uses the old name 'head' of Wide.headTpl.",
];
const directory = mkdtempSync(join(tmpdir(), 'luthier-renamed-'));
function file(name: string, text: string): string {
  const path = join(directory, name);
  writeFileSync(path, text);
  return path;
}

longTest('JSON and YAML with old names are read, with a notice for each', () => {
  const told: string[] = [];
  const notify = (notice: string) => told.push(notice);
  const json = withOldNames(JSON.stringify(toJSON(config())));
  expect(json).toContain('"a":2');
  expect(toJSON(fromJSON(json, { notify }))).toEqual(toJSON(config()));
  expect(told.sort()).toEqual([...notices].sort());
  told.length = 0;
  const yaml = withOldNames(toYAML(config()));
  expect(toJSON(fromYAML(yaml, { notify }))).toEqual(toJSON(config()));
  expect(told.sort()).toEqual([...notices].sort());
});

test('each name of a chain of renamings is read, and what is written has the present one', () => {
  for (const name of ['a', 'b', 'numHeads']) {
    const read = fromYAML(inPlace(`{$class: Encoder, ${name}: 3}`), { notify: () => {} });
    expect(toYAML(read)).toContain('numHeads: 3');
  }
});

test('a notice that nobody takes is a warning of Node, once for a document', async () => {
  const warned: string[] = [];
  const listen = (warning: Error) => warned.push(`${warning.name}: ${warning.message}`);
  process.on('warning', listen);
  fromYAML(inPlace('[{$class: Head, dims: 2}, {$class: Head, dims: 3}]'));
  await new Promise((resolve) => setImmediate(resolve));
  process.off('warning', listen);
  expect(warned).toEqual(["ConfigWarning: The config document uses the old name 'dims' of Head.outputDims."]);
});

test('tags in documents are found by old names', () => {
  const document = toJSON(Head.config());
  document.configs[0]!.tags = { dims: ['renamed.Width'] };
  const read = fromJSON(document, { notify: () => {} }) as Config<Head>;
  expect(getTags(read, 'outputDims')).toEqual([Width]);
});

test('config files may have old names in nested fields, in paths and in configs written in place', () => {
  const told: string[] = [];
  const root = Wide.config();
  const nested = file('nested.yaml', 'head:\n  dims: 5\n  scale: 2\nb: 3\n');
  applyConfigFile(root, nested, { notify: (notice) => told.push(notice) });
  expect([root.headTpl.outputDims, root.headTpl.scale, root.numHeads]).toEqual([5, 2, 3]);
  expect(told).toEqual([
    `${nested}:1 uses the old name 'head' of Wide.headTpl.`,
    `${nested}:2 uses the old name 'dims' of Head.outputDims.`,
    `${nested}:4 uses the old name 'b' of Wide.numHeads.`,
  ]);
  applyConfigFile(root, file('paths.json', '{"head.dims": 6, "head.scale": 3}'), { notify: () => {} });
  expect([root.headTpl.outputDims, root.headTpl.scale]).toEqual([6, 3]);
  const whole = loadConfigFile(file('whole.yaml', '$class: Wide\nhead: {$class: Head, dims: 7}\n'), {
    notify: () => {},
  }) as Config<Wide>;
  expect(whole.headTpl.outputDims).toBe(7);
});

test('a field that is given by two of its names is an error', () => {
  const notify = () => {};
  const twice =
    "Encoder.numHeads is given as 'a' and as 'numHeads', which are the same field: leave one out.";
  expect(messageOf(() => fromYAML(inPlace('{$class: Encoder, a: 3, numHeads: 3}'), { notify }))).toContain(
    twice,
  );
  const document = toJSON(Encoder.config({ numHeads: 1 }));
  document.configs[0]!.values.a = 2;
  expect(messageOf(() => fromJSON(document, { notify }))).toContain(twice);
  const both = file('both.yaml', 'head.dims: 5\nheadTpl:\n  outputDims: 6\n');
  expect(messageOf(() => applyConfigFile(Encoder.config(), both, { notify }))).toContain(
    "Encoder.headTpl is given as 'head' and as 'headTpl', which are the same field: leave one out.",
  );
});

test('in code an old name is an error that says the present one', () => {
  const encoder = Encoder.config();
  const now = "Encoder has no hyperparameter 'b'. It was renamed to 'numHeads'.";
  // @ts-expect-error -- the name is old.
  expect(messageOf(() => Encoder.config({ b: 1 }))).toContain(now);
  expect(messageOf(() => Object.assign(encoder, { b: 1 }))).toContain(now);
  expect(messageOf(() => (encoder as unknown as { b: number }).b)).toContain(now);
  expect(messageOf(() => select(encoder, Encoder).set({ b: 1 } as object))).toContain(now);
  expect(messageOf(() => setPath(encoder, 'head.outputDims', 1))).toContain(
    "No 'head.outputDims': Encoder has no 'head'. It was renamed to 'headTpl'.",
  );
});

test('names that clash are errors where they are declared', () => {
  expect(messageOf(() => Encoder.with({ b: z.int() }))).toContain(
    "Encoder.with: 'b' is an old name of 'numHeads', and cannot be a field, too: saved values would load into the wrong field",
  );
  expect(messageOf(() => Configurable.with({ x: renamed(z.int(), 'y'), y: z.int() }))).toContain(
    "'y' is an old name of 'x', and cannot be a field, too: saved values would load into the wrong field",
  );
  expect(
    messageOf(() => Configurable.with({ x: renamed(z.int(), 'z'), y: renamed(z.int(), 'z') })),
  ).toContain("'z' is an old name of both 'x' and 'y'.");
  expect(messageOf(() => renamed(z.int(), '__proto__'))).toContain("'__proto__' cannot have been the name");
});

test('a subclass that declares the field anew keeps the old names, and functions have them too', () => {
  const notify = () => {};
  class Narrow extends Encoder.with({ numHeads: z.int().default(1) }) {}
  const narrow = fromYAML(inPlace('{$class: Narrow, a: 3}'), { classes: [Narrow], notify }) as Config<Narrow>;
  expect(build(narrow).hp.numHeads).toBe(3);
  const twice = configurable(
    (hp: { value: number }) => 2 * hp.value,
    { value: renamed(z.number(), 'v') },
    { name: 'twice' },
  );
  expect(
    build(
      fromYAML(inPlace('{$class: twice, v: 4}'), { classes: [twice as never], notify }) as ReturnType<
        typeof twice.config
      >,
    ),
  ).toBe(8);
});

class Trained extends Experiment.with({
  numTrainSteps: renamed(z.int().positive().default(10).describe('Steps.'), 'steps'),
  rate: z.number().default(1),
}) {
  override task() {
    const task = SingleTask.config();
    task.train.numTrainSteps = this.numTrainSteps;
    task.train.summaryIntervalSteps = this.rate;
    return task;
  }
  override datasets() {
    return [];
  }
}
const resolved = { name: 'x.Trained', file: 'x.ts', cls: Trained, exports: {} };
const configured = (...changes: Override[]) => configure(resolved, changes);

test('flags and files may call constants by old names; the warnings say the new ones', () => {
  const set = configured(parseSet('steps=20'));
  expect([set.task.train.numTrainSteps, set.warnings]).toEqual([
    20,
    ["--set steps=20 uses the old name 'steps' of Trained.numTrainSteps."],
  ]);
  expect(configured(parseSet('steps=20'), parseSet('numTrainSteps=30')).task.train.numTrainSteps).toBe(30);
  expect(configured(parseSet('numTrainSteps=30'), parseUnset('steps')).task.train.numTrainSteps).toBe(10);
  const path = file('constants.yaml', 'constants:\n  steps: 40\n');
  const read = configured(parseFile(path));
  expect([read.task.train.numTrainSteps, read.warnings]).toEqual([
    40,
    [`${path}:2 uses the old name 'steps' of Trained.numTrainSteps.`],
  ]);
  const both = file('twice.yaml', 'steps: 40\nnumTrainSteps: 50\n');
  expect(messageOf(() => configured(parseFile(both)))).toBe(
    `${both}:2: Trained.numTrainSteps is given as 'steps' and as 'numTrainSteps', which are the same field: leave one out.`,
  );
});

test('a class field with an old name is an error that says the present one', () => {
  class Wrong extends Trained {
    steps = 5;
  }
  expect(messageOf(() => configure({ ...resolved, cls: Wrong }))).toContain(
    "Wrong has no constant 'steps'. It was renamed to 'numTrainSteps'.",
  );
  expect(messageOf(() => Trained.with({ steps: z.int() }))).toContain(
    "Trained.with: 'steps' is an old name of 'numTrainSteps', and cannot be a field, too: saved values would load into the wrong field",
  );
});

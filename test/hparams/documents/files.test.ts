/** @file Config files that people write: overrides and complete configs, in YAML and JSON. */
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { registerClass } from '../../../src/hparams/fields/classNames.js';
import {
  applyConfigFile,
  Configurable,
  history,
  instance,
  isEqual,
  loadConfigFile,
  print,
  readConfigFile,
  saveConfigFile,
  sub,
  toJSON,
} from '../../../src/hparams/index.js';
import { messageOf } from '../support.js';

class FileModel extends Configurable.with({
  numLayers: z.int().positive().default(2),
  dims: z.array(z.int()).default([4]),
  table: z.record(z.string(), z.number()).default({ a: 1 }),
}) {}
class WideFileModel extends FileModel.with({ width: z.int().default(8) }) {}
class FileLearner extends Configurable.with({ learningRate: z.number().default(0.1) }) {}
class FileTask extends Configurable.with({
  model: sub(FileModel),
  other: instance(FileModel, null).nullable().default(null),
  learner: sub(FileLearner),
  note: z.string().optional(),
}) {}

const folder = mkdtempSync(join(tmpdir(), 'config-files-'));
const write = (name: string, text: string): string => {
  const file = join(folder, name);
  writeFileSync(file, text);
  return file;
};

test('overrides are nested fields and paths, in order; the history names their lines', () => {
  const file = write(
    'overrides.yaml',
    [
      '# Half the size.',
      'task:',
      '  model:',
      '    numLayers: 1',
      '    table: {b: 2}',
      'task.learner.learningRate: 1e-3',
      'task.model.dims[0]: 5',
    ].join('\n'),
  );
  const root = { task: FileTask.config(), datasets: [] };
  applyConfigFile(root, file);
  const expected = FileTask.config();
  Object.assign(expected.model, { numLayers: 1, dims: [5], table: { b: 2 } });
  expected.learner.learningRate = 1e-3;
  expect(isEqual(root.task, expected)).toBe(true);
  expect(history(root.task.model, 'numLayers').map(({ value, where }) => [value, where])).toEqual([
    [1, `${file}:4`],
  ]);
  expect(history(root.task.learner).at(-1)!.where).toBe(`${file}:6`);
});

test('what a file sets twice is an error with both lines, also where a part was set before the whole', () => {
  const load = (text: string): string => {
    const file = write('twice.yaml', text);
    return messageOf(() => loadConfigFile(file, { root: FileTask.config() })).replaceAll(file, 'FILE');
  };
  expect(load('model.numLayers: 1\nnote: x\nmodel: {numLayers: 2}')).toBe(
    'model.numLayers: set twice, first at FILE:1 (at FILE:3)',
  );
  expect(load("model: {numLayers: 1}\nmodel['numLayers']: 2")).toBe(
    "model['numLayers']: set twice, first at FILE:1 (at FILE:2)",
  );
  expect(load('model.dims[-1]: 1\nmodel.dims[0]: 2')).toBe(
    'model.dims[0]: set twice, first at FILE:1 (at FILE:2)',
  );
  expect(load('model: {"dims[0]": 1}\nmodel.dims[-1]: 2')).toBe(
    'model.dims[-1]: set twice, first at FILE:1 (at FILE:2)',
  );
  expect(load('model.dims[0]: 1\nmodel.dims: [2]')).toBe(
    'model.dims: replaces model.dims[0], which is set at FILE:1; set the whole before its parts (at FILE:2)',
  );
  expect(load('model.table.b: 1\nmodel: {table: {c: 2}}')).toBe(
    'model.table: replaces model.table.b, which is set at FILE:1; set the whole before its parts (at FILE:2)',
  );
  registerClass(WideFileModel);
  expect(load('other:\n  $class: WideFileModel\n  table.b: 1\n  table: {c: 2}')).toMatch(
    /table: replaces table\.b, which is set at FILE:3/,
  );
  expect(load('other:\n  $class: WideFileModel\n  dims[0]: 1\n  dims: [2]')).toMatch(
    /^other: dims: replaces dims\[0\], which is set at FILE:3; set the whole before its parts \(again at FILE:4\) \(at FILE:2:3\)$/,
  );
  const file = write(
    'order.yaml',
    'model.dims: [2, 3]\nmodel.dims[0]: 1\nmodel: {table: {c: 2}}\nmodel.table.d: 3',
  );
  const { model } = loadConfigFile(file, { root: FileTask.config() });
  expect([model.dims, model.table]).toEqual([[1, 3], { c: 2, d: 3 }]);
});

test('a sub-config of another class is written by its $class, shared by an alias', () => {
  registerClass(WideFileModel);
  const file = write(
    'classes.yaml',
    ['model: &m', '  $class: WideFileModel', '  width: 16', '  dims: [1, 2]', 'other: *m'].join('\n'),
  );
  const task = loadConfigFile(file, { root: FileTask.config({ note: 'kept' }) });
  expect(task.model).toBe(task.other);
  expect(print(task)).toContain('model : WideFileModel\nmodel.numLayers : 2\nmodel.dims : [1, 2]');
  expect(task.note).toBe('kept');
  expect(history(task.model, 'dims')[0]!.where).toBe(`${file}:4`);
});

test('JSON gives the same as YAML, lines included', () => {
  const file = write(
    'overrides.json',
    '\uFEFF{\n\t"model": {\n\t\t"numLayers": 7},\n "learner.learningRate": 2\n}',
  );
  const task = FileTask.config();
  applyConfigFile(task, file);
  expect([task.model.numLayers, task.learner.learningRate]).toEqual([7, 2]);
  expect(history(task.model)[0]!.where).toBe(`${file}:3`);
});

test('a complete config is read without a root, from documents, experiment.json and $class', () => {
  const task = FileTask.config({ note: 'x' });
  task.model.numLayers = 9;
  for (const name of ['saved.yaml', 'saved.json']) {
    const file = join(folder, name);
    saveConfigFile(task, file);
    expect(isEqual(loadConfigFile(file), task)).toBe(true);
    const changed = FileTask.config({ other: FileModel.config() });
    applyConfigFile(changed, file);
    expect(isEqual(changed, task)).toBe(true);
    const root = { task: FileTask.config() };
    saveConfigFile({ task }, file);
    applyConfigFile(root, file);
    expect(isEqual(root.task, task)).toBe(true);
  }
  const experiment = write(
    'experiment.json',
    JSON.stringify({ name: 'x', config: toJSON({ task }) }, null, 1),
  );
  expect(isEqual(loadConfigFile(experiment), { task })).toBe(true);
  expect(readConfigFile(experiment).map(({ path }) => path)).toEqual([['task']]);
  const written = write('written.yml', '$class: FileTask\nmodel: {numLayers: 9}\nnote: x\n');
  expect(isEqual(loadConfigFile(written), task)).toBe(true);
});

test('saveConfigFile leaves no other file behind, and says what it cannot do', () => {
  const own = mkdtempSync(join(tmpdir(), 'config-files-'));
  const file = join(own, 'task.json');
  saveConfigFile(FileTask.config({ learner: FileLearner.config() }), file);
  saveConfigFile(FileTask.config({ learner: FileLearner.config() }), file);
  expect(readdirSync(own)).toEqual(['task.json']);
  expect(JSON.parse(readFileSync(file, 'utf8')).configs[0].path).toBe('learner');
  expect(messageOf(() => saveConfigFile(FileTask.config(), join(own, 'missing', 'task.json')))).toContain(
    'cannot be written: ENOENT',
  );
  expect(messageOf(() => saveConfigFile(FileTask.config(), 'task.toml'))).toBe(
    "'task.toml': a config file ends in .json, .yaml or .yml.",
  );
});

test('all that is wrong is told at once, with lines and suggestions', () => {
  const file = write(
    'wrong.yaml',
    [
      'task:',
      '  model:',
      '    numLayrs: 1',
      '    numLayers: many',
      'tsk: 3',
      'task.learner: {$class: FileLearnr}',
      'task.other: {numLayers: 1}',
      'task.note: fine',
    ].join('\n'),
  );
  const root = { task: FileTask.config() };
  expect(messageOf(() => applyConfigFile(root, file))).toBe(
    `task.learner: No class 'FileLearnr' is known. Did you mean 'FileLearner'? A document may use only classes that the program has imported and used, or that are listed in the option classes. (at ${file}:6:16)`,
  );
  const fixed = write('wrong.yaml', readFileSync(file, 'utf8').replace('FileLearnr', 'FileLearner'));
  expect(messageOf(() => applyConfigFile(root, fixed))).toBe(
    [
      `The config file ${file}: 4 problems:`,
      `  No 'task.model.numLayrs': FileModel at 'task.model' has no 'numLayrs'. Did you mean 'numLayers'? (at ${file}:3)`,
      `  task.model.numLayers: expected a positive integer, got 'many' (at ${file}:4)`,
      `  No 'tsk': the root has no 'tsk'. Did you mean 'task'? (at ${file}:5)`,
      `  task.other: expected a FileModel config or null, got {numLayers: 1} (at ${file}:7)`,
    ].join('\n'),
  );
  expect(root.task.note).toBe('fine');
  const inPlace = write('inPlace.yaml', '$class: FileTask\nmodel: {numLayers: -1}\nnote: 3\n');
  expect(messageOf(() => loadConfigFile(inPlace))).toBe(
    [
      `The config file ${inPlace}: 2 problems:`,
      `  model.numLayers: expected a positive integer, got -1 (at ${inPlace}:2:1)`,
      `  note: expected a string, got 3 (at ${inPlace}:3:1)`,
    ].join('\n'),
  );
});

test('files that are no config files fail cleanly', () => {
  const load = (name: string, text: string | Buffer): string => {
    const file = join(folder, name);
    writeFileSync(file, text);
    return messageOf(() => loadConfigFile(file, { root: FileTask.config() })).replaceAll(file, 'FILE');
  };
  expect(load('a.yaml', '')).toBe('The config document is empty. (at FILE)');
  expect(load('a.json', ' \n')).toBe('The config document is empty. (at FILE)');
  expect(load('a.json', '{"note": "x",\n "note": "y"}')).toBe(
    'This is not JSON: the key "note" is given twice, first at FILE:1:2. (at FILE:2:2)',
  );
  const document = JSON.stringify(toJSON(FileTask.config({ note: ': "\\' })), null, 1);
  expect(load('a.json', document.replace('"note"', '"note": "x",\n"note"'))).toMatch(
    /^This is not JSON: the key "note" is given twice, first at FILE:11:5\. \(at FILE:12:1\)$/,
  );
  expect(load('a.yaml', 'note: x\nnote: y')).toBe(
    'This is not YAML for configs: the key "note" is given twice, first at FILE:1:1. (at FILE:2:1)',
  );
  expect(load('a.json', '{"note": x}')).toBe("This is not JSON: unexpected 'x'. (at FILE:1:10)");
  expect(load('a.json', '{"note": "x"')).toBe(
    "This is not JSON: expected ',' or '}' after property value in JSON. (at FILE:1:13)",
  );
  expect(load('a.yaml', 'note: [x')).toContain('(at FILE:1:9)');
  expect(load('a.yaml', '- x')).toBe("A config file holds fields by name, got ['x']. (at FILE)");
  expect(load('a.yaml', 'note: !!js/function "x"')).toContain('means nothing here');
  expect(load('a.yaml', 'note: a\0b')).toBe('This is not YAML: it holds a control character. (at FILE:1:8)');
  expect(load('a.yaml', Buffer.from([0x61, 0xff, 0x80]))).toBe(
    'The config document is not text in UTF-8. (at FILE)',
  );
  expect(load('a.json', Buffer.from([0xff, 0xfe, 0x7b, 0]))).toBe(
    'The config document is in UTF-16; it must be in UTF-8. (at FILE)',
  );
  expect(load('a.yaml', 'a: &a [*a]')).toBe(
    'This is not YAML for configs: *a contains itself. (at FILE:1:8)',
  );
  expect(load('a.yaml', 'note: x\n---\nnote: y')).toBe(
    'This is not YAML for configs: it holds a second document. (at FILE:2:1)',
  );
  expect(load('a.yaml', '__proto__: {x: 1}')).toBe(
    "__proto__: '__proto__' is not allowed as a key. (at FILE:1:1)",
  );
  expect(load('a.yaml', 'model.table: {constructor: 1}')).toContain("'constructor' is not allowed as a key");
  expect(({} as { x?: unknown }).x).toBeUndefined();
  expect(messageOf(() => loadConfigFile(`${folder}/none.json`))).toContain(
    "none.json' cannot be read: ENOENT",
  );
  expect(messageOf(() => loadConfigFile('/dev/zero.yaml'))).toContain('cannot be read');
  const comments = write('comments.yaml', '# note: x\n');
  expect(readConfigFile(comments)).toEqual([]);
  expect(messageOf(() => loadConfigFile(write('part.yaml', 'note: x')))).toContain(
    'The file holds overrides, not a complete config',
  );
});

class FileList extends Configurable.with({
  models: z.array(sub(FileModel)).default([]),
  points: z.array(z.record(z.string(), z.int())).default([]),
}) {}
registerClass(FileList);

test('a list of nested fields sets those of the items that stand there; with a $class, an item is new', () => {
  const root = () => ({
    list: FileList.config({ models: [FileModel.config(), FileModel.config({ numLayers: 3 })] }),
  });
  const applied = (text: string) => {
    const made = root();
    applyConfigFile(made, write('list.yaml', text));
    return made.list;
  };
  const partial = applied('list:\n  models:\n    - dims: [7]\n    - {}\n');
  expect(isEqual(partial.models, [FileModel.config({ dims: [7] }), FileModel.config({ numLayers: 3 })])).toBe(
    true,
  );
  expect(history(partial.models[0]!, 'dims').at(-1)!.where).toMatch(/list\.yaml:3$/);
  const mixed = applied(
    'list:\n  models:\n    - numLayers: 5\n    - $class: WideFileModel\n      width: 2\n',
  );
  expect(
    isEqual(mixed.models, [FileModel.config({ numLayers: 5 }), WideFileModel.config({ width: 2 })]),
  ).toBe(true);
  const whole = applied('list.models:\n  - $class: WideFileModel\n');
  expect(isEqual(whole.models, [WideFileModel.config()])).toBe(true);
  // Records that are no configs stay the whole of a list.
  const plain = applied('list:\n  points:\n    - {x: 1}\n    - {y: 2}\n');
  expect(plain.points).toEqual([{ x: 1 }, { y: 2 }]);
  const [wrong, unknown] = ['- numLayers: 5\n', '- numLayer: 5\n    - {}\n'].map((items) =>
    messageOf(() => applied(`list:\n  models:\n    ${items}`)),
  );
  expect(wrong).toContain(
    'list.models: has 2 items, and the file sets fields of 1 item: give as many, {} for one without changes, name one, as list.models[0], or give each a $class, for a new list.',
  );
  expect(unknown).toContain("FileModel at 'list.models[0]' has no 'numLayer'. Did you mean 'numLayers'?");
});

test('what included files say comes first, from their directory, each at its line', () => {
  write('base.yaml', 'task:\n  note: base\n  model: {numLayers: 4}\n');
  write('rate.json', '{"task.learner.learningRate": 0.5, "$include": []}');
  const file = write('top.yaml', '$include: [base.yaml, rate.json]\ntask.note: top\n');
  const root = { task: FileTask.config() };
  applyConfigFile(root, file);
  const { note, model, learner } = root.task;
  expect([note, model.numLayers, learner.learningRate]).toEqual(['top', 4, 0.5]);
  expect(history(model, 'numLayers').at(-1)!.where).toBe(`${join(folder, 'base.yaml')}:3`);
  write('one.yaml', '$include: two.yaml\n');
  const round = write('two.yaml', '$include: one.yaml\n');
  expect(messageOf(() => readConfigFile(round))).toContain(
    `The file includes itself: ${round} includes ${join(folder, 'one.yaml')} includes ${round}.`,
  );
  expect(messageOf(() => readConfigFile(write('three.yaml', '$include: 3\n')))).toContain(
    '$include: expected a file or a list of files, got 3.',
  );
  expect(messageOf(() => readConfigFile(write('four.yaml', '$include: none.yaml\n')))).toContain('none.yaml');
});

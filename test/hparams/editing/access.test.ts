/** @file Paths, texts of flags, and what help lists. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { registerClass } from '../../../src/hparams/fields/classNames.js';
import {
  Configurable,
  classOf,
  coerce,
  deepCopy,
  didYouMean,
  factory,
  formatPath,
  getPath,
  history,
  instance,
  iterate,
  listPaths,
  nearest,
  parsePath,
  pathOf,
  setPath,
  sub,
  unsetPath,
} from '../../../src/hparams/index.js';
import { runs } from '../../faults/campaign.js';
import { messageOf } from '../support.js';

class Linear extends Configurable.with({
  inputDims: z.int().positive().describe('Depth of the input.'),
  hasBias: z.boolean().default(true),
}) {}
abstract class Activation extends Configurable.with({}) {
  static override readonly isAbstract = true;
}
class ReLU extends Activation {}
class GELU extends Activation.with({ approximate: z.boolean().default(false) }) {}
registerClass(ReLU, GELU);
class Model extends Configurable.with({
  linearTpl: sub(Linear),
  activation: instance(Activation, () => ReLU.config()),
  layers: z.array(sub(Linear)).default([]),
  rates: z.record(z.string(), z.number()).default({}),
  table: z.record(z.string(), sub(Linear)).default({}),
  note: z.string().nullable().default(null),
  betas: z.tuple([z.number(), z.number()]).default([0.9, 0.99]),
}) {}

test('texts are read as the schema asks', () => {
  const cases: [z.ZodType, string, unknown][] = [
    [z.number(), '1e-3', 0.001],
    [z.number().default(2), '-.5', -0.5],
    [z.int(), '1_000', 1000],
    [z.int(), '0x10', 16],
    [z.boolean(), 'True', true],
    [z.boolean().optional(), 'false', false],
    [z.string(), '12', '12'],
    [z.string(), 'null', 'null'],
    [z.string().nullable(), 'null', null],
    [z.int().nullable(), '3', 3],
    [z.enum(['adam', 'sgd']), 'sgd', 'sgd'],
    [z.literal([1, 'a', true]), '1', 1],
    [z.union([z.string(), z.int()]), '3', 3],
    [z.union([z.string(), z.int()]), '3.5', '3.5'],
    [z.bigint(), '12', 12n],
    [z.array(z.int()), '[1, 2]', [1, 2]],
    [z.array(z.int()), '1,2', [1, 2]],
    [z.array(z.string()), 'a,b', ['a', 'b']],
    [z.array(z.string()), '[a, b]', ['a', 'b']],
    [z.array(z.int()), '[]', []],
    [z.tuple([z.int(), z.string()]), '1,x', [1, 'x']],
    [z.record(z.string(), z.int()), '{"a": 1}', { a: 1 }],
    [z.any(), '[1]', [1]],
    [z.any(), 'word', 'word'],
    [z.string().transform(Number), '7', '7'],
  ];
  for (const [schema, text, value] of cases) expect([text, coerce(schema, text)]).toEqual([text, value]);
});

test('texts that mean nothing to the schema are errors that say what would', () => {
  const cases: [z.ZodType, string, string][] = [
    [z.int().positive(), 'x', "expected a positive integer, got 'x'"],
    [z.int().positive(), '-1', "expected a positive integer, got '-1'"],
    [z.number(), '', "expected a number, got ''"],
    [
      z.number().positive().nullable(),
      'Infinity',
      "expected a positive finite number or null, got 'Infinity'",
    ],
    [z.number().max(1), 'NaN', "expected a finite number at most 1, got 'NaN'"],
    [z.boolean(), '1', "expected true or false, got '1'"],
    [z.enum(['adam', 'sgd']), 'adamm', "expected one of 'adam', 'sgd', got 'adamm'. Did you mean 'adam'?"],
    [z.array(z.int()), '1,x', "expected an array of integers, got '1,x'"],
    [z.record(z.string(), z.int()), '{', "expected a record of integers, got '{'"],
    [
      z.record(z.string(), z.int()),
      '{"__proto__": 1}',
      `'__proto__' is not allowed as a key.\n  {"__proto__": 1}\n   ^`,
    ],
    [z.int().refine((n) => n % 2 === 0, 'must be even'), '3', "must be even, got '3'"],
    [sub(Activation, null), 'GeLU', "expected an Activation config, got 'GeLU'. Did you mean 'GELU'?"],
    [
      sub(Activation, null),
      'Linear',
      "expected an Activation config, got 'Linear'. Known classes: GELU, ReLU.",
    ],
  ];
  for (const [schema, text, message] of cases) expect(messageOf(() => coerce(schema, text))).toBe(message);
  expect(messageOf(() => coerce(z.int(), 'x', 'numLayers'))).toBe("numLayers: expected an integer, got 'x'");
});

test('setPath reaches through configs, defaults, arrays and records, and remembers the flag', () => {
  const model = Model.config({ layers: [Linear.config()] });
  const root = { task: model, datasets: [Linear.config()] };
  setPath(root, 'task.linearTpl.inputDims', '17', '--set task.linearTpl.inputDims=17');
  setPath(root, 'task.layers[0].hasBias', 'false', '--set b');
  setPath(root, 'task.layers[-1].inputDims', '5', '--set c');
  setPath(root, 'datasets[0].inputDims', 8, '--set d');
  setPath(root, "task.rates['a b']", '1e-3', '--set e');
  setPath(root, 'task.rates.lr', '2', '--set f');
  setPath(root, 'task.activation', 'GELU', '--set g');
  setPath(root, 'task.activation.approximate', 'true', '--set h');
  setPath(root, 'task.betas[1]', '0.95', '--set i');
  setPath(root, "task.table['x']", Linear.config({ inputDims: 2 }), '--set j');
  setPath(root, 'task.note', 'a word', '--set k');
  expect(model.linearTpl.inputDims).toBe(17);
  expect([model.layers[0]!.hasBias, model.layers[0]!.inputDims]).toEqual([false, 5]);
  expect([root.datasets[0]!.inputDims, model.rates]).toEqual([8, { 'a b': 0.001, lr: 2 }]);
  expect([classOf(model.activation), getPath(root, 'task.activation.approximate')]).toEqual([GELU, true]);
  expect([model.betas, model.table.x!.inputDims, model.note]).toEqual([[0.9, 0.95], 2, 'a word']);
  expect(history(model.linearTpl)[0]!.where).toBe('--set task.linearTpl.inputDims=17');
  setPath(model, 'note', 'x');
  expect(history(model, 'note')[1]!.where).toMatch(/^test\/hparams\/editing\/access\.test\.ts:\d+$/);
  unsetPath(root, 'task.note', '--unset task.note');
  unsetPath(root, 'task.layers[0]');
  expect([model.note, model.layers.length]).toEqual([null, 0]);
});

test('wrong paths and values name the place, what is valid, and the flag', () => {
  const root = { task: Model.config() };
  const set = (path: string, text: string): string =>
    messageOf(() => setPath(root, path, text, `--set ${path}=${text}`));
  expect(set('task.linearTpl.inputDimz', '1')).toBe(
    "No 'task.linearTpl.inputDimz': Linear at 'task.linearTpl' has no 'inputDimz'. Did you mean 'inputDims'? (at --set task.linearTpl.inputDimz=1)",
  );
  expect(set('tsk.note', 'x')).toBe(
    "No 'tsk.note': the root has no 'tsk'. Did you mean 'task'? (at --set tsk.note=x)",
  );
  expect(set('task.zzz.x', '1')).toContain(
    "No 'task.zzz.x': Model at 'task' has no 'zzz'. It has linearTpl, activation, layers, rates, table, note, betas.",
  );
  expect(set('task.layers[2].hasBias', 'true')).toContain(
    "No 'task.layers[2].hasBias': 'task.layers' has 0 elements, counted from 0.",
  );
  expect(set('task.note.x', '1')).toContain("No 'task.note.x': 'task.note' is null, which has no parts.");
  expect(set('task.linearTpl.inputDims', '1.5')).toBe(
    "task.linearTpl.inputDims: expected a positive integer, got '1.5' (at --set task.linearTpl.inputDims=1.5)",
  );
  expect(set('task..note', 'x')).toContain(
    "The path 'task..note' cannot be read from '..note' on. Paths look like a.b[0].c['key'].",
  );
  expect(set("task.rates['__proto__']", '1')).toContain("'__proto__' is not allowed as a key.");
  expect(messageOf(() => getPath(root, 'task.linearTpl.inputDims'))).toBe(
    'Linear.inputDims is not set and has no default: expected a positive integer.',
  );
});

test('values that are no texts, and what remains of a list, fail with the path too', () => {
  class Pair extends Configurable.with({ both: z.array(sub(Linear)).min(1).default([]) }) {}
  const root = { task: Model.config({ layers: [Linear.config()] }), pair: Pair.config() };
  const set = (path: string, value: unknown): string => messageOf(() => setPath(root, path, value, '--set'));
  expect(set('task.linearTpl.inputDims', -1)).toBe(
    'task.linearTpl.inputDims: expected a positive integer, got -1 (at --set)',
  );
  expect(set('task.layers[0].inputDims', 1.5)).toBe(
    'task.layers[0].inputDims: expected a positive integer, got 1.5 (at --set)',
  );
  expect(set('task.betas[1]', true)).toBe('task.betas[1]: expected a number, got true (at --set)');
  expect(set('task.rates', JSON.parse('{"__proto__": 1}'))).toBe(
    "task.rates: '__proto__' is not allowed as a key. (at --set)",
  );
  expect(messageOf(() => setPath(root.task, 'note', 3))).toMatch(
    /^note: expected a string or null, got 3 \(at test\/hparams\/editing\/access\.test\.ts:\d+\)$/,
  );
  root.pair.both = [Linear.config()];
  expect(messageOf(() => unsetPath(root, 'pair.both[0]', '--unset'))).toBe(
    'pair.both: expected an array of length at least 1 of Linear configs, got [] (at --unset)',
  );
  expect(root.pair.both.length).toBe(1);
});

test('paths are read and written alike', () => {
  for (const path of ['a', 'a.b[0].c', "a['k'].b", "a['it\\'s']", '[2].x', "['k']", '']) {
    expect(formatPath(parsePath(path))).toBe(path);
  }
  expect(parsePath('a.b[0]["k"]')).toEqual(['a', 'b', 0, { key: 'k' }]);
  for (const path of ['.a', 'a b', 'a[', 'a[b]', 'a.'])
    expect(messageOf(() => parsePath(path))).toContain(path);
});

test('iterate and pathOf find configs, shared ones once', () => {
  const shared = Linear.config();
  const model = Model.config({ linearTpl: shared, layers: [shared, Linear.config()], table: { x: shared } });
  expect(iterate(model).map((visit) => formatPath(visit.path))).toEqual(['', 'linearTpl', 'layers[1]']);
  expect(iterate(model, { defaults: true }).map((visit) => formatPath(visit.path))).toEqual([
    '',
    'linearTpl',
    'activation',
    'layers[1]',
  ]);
  expect(pathOf({ task: model }, model.layers[1]!)).toBe("['task'].layers[1]");
  expect(messageOf(() => pathOf(model, Linear.config()))).toBe(
    'a Linear config is not part of a Model config.',
  );
});

test('listPaths gives type, default, description and value of all there is to set', () => {
  const model = Model.config({ note: 'x' });
  const infos = listPaths(model);
  expect(infos.map((info) => info.path)).toEqual([
    'linearTpl',
    'activation',
    'layers',
    'rates',
    'table',
    'note',
    'betas',
    'linearTpl.inputDims',
    'linearTpl.hasBias',
  ]);
  expect(infos.find((info) => info.path === 'note')).toEqual({
    path: 'note',
    type: 'a string or null',
    default: null,
    description: undefined,
    value: 'x',
    explicit: true,
    tags: [],
    where: expect.stringMatching(/^test\/hparams\/editing\/access\.test\.ts:\d+$/),
  });
  expect(infos.find((info) => info.path === 'linearTpl.inputDims')).toEqual({
    path: 'linearTpl.inputDims',
    type: 'a positive integer',
    description: 'Depth of the input.',
    explicit: false,
    tags: [],
  });
});

test('suggestions are near, or absent', () => {
  expect(nearest('learningrate', ['learningRate', 'decay'])).toBe('learningRate');
  expect(nearest('numLayer', ['numHeads', 'numLayers'])).toBe('numLayers');
  expect(nearest('zzz', ['learningRate', 'ab'])).toBe(undefined);
  expect(didYouMean('dcay', ['decay'])).toBe(" Did you mean 'decay'?");
  expect(didYouMean('zzz', ['decay'])).toBe('');
  expect(didYouMean('mian', ['main'])).toBe(" Did you mean 'main'?");
  expect(didYouMean('fee', ['age'])).toBe('');
});

test('a factory field takes a class name from a flag too', () => {
  class Maker extends Configurable.with({ make: factory(Linear) }) {}
  const maker = Maker.config();
  setPath(maker, 'make', 'Linear', '--set make=Linear');
  expect(maker.make.hasBias).toBe(true);
});

test('unsetting is an error where there is nothing, or no default to go back to', () => {
  const root = { task: Model.config({ rates: { a: 1 }, layers: [Linear.config()] }) };
  const unset = (path: string): string => messageOf(() => unsetPath(root, path, `--unset ${path}`));
  expect(unset('task.linearTpl.inputDims')).toBe(
    'task.linearTpl.inputDims: Linear.inputDims has no default to go back to (at --unset task.linearTpl.inputDims)',
  );
  expect(unset('task.rates.b')).toBe(
    "No 'task.rates.b': 'task.rates' has no 'b'. It has a. (at --unset task.rates.b)",
  );
  expect(unset('task.layers[1]')).toBe(
    "No 'task.layers[1]': 'task.layers' has 1 elements, counted from 0. (at --unset task.layers[1])",
  );
  unsetPath(root, "task.rates['a']");
  expect(root.task.rates).toEqual({});
});

test('a flag that writes to a shared config is seen in all its places', () => {
  const shared = Linear.config({ inputDims: 1 });
  const model = Model.config({ layers: [shared, shared] });
  const original = deepCopy(model);
  setPath(model, 'layers[1].inputDims', '7', '--set layers[1].inputDims=7');
  expect([model.layers[0]!.inputDims, original.layers[0]!.inputDims]).toEqual([7, 1]);
  expect(history(model.layers[0]!, 'inputDims').at(-1)!.where).toBe('--set layers[1].inputDims=7');
});

test('texts inside a value without a schema of its own mean what they mean in the whole', () => {
  class Loose extends Configurable.with({
    any: z.any().default(null),
    shape: z.looseObject({ size: z.int() }).default({ size: 1 }),
  }) {}
  const config = Loose.config({ any: { list: [1, true], k: true, toString: 1 } });
  setPath(config, 'any.list[0]', '9');
  setPath(config, 'any.k', 'false');
  setPath(config, 'any.new', '{a: [1e3, none, "2"]}');
  setPath(config, 'any.toString', '2');
  setPath(config, 'shape.other', 'null');
  expect(config.any).toEqual({
    list: [9, true],
    k: false,
    new: { a: [1000, 'none', '2'] },
    toString: 2,
  });
  expect(config.shape).toEqual({ size: 1, other: null });
  setPath(config, "shape['constructor_']", '3');
  expect(messageOf(() => setPath(config, 'any.k.x', '1'))).toContain("'any.k' is false, which has no parts");
});

test('a text means the same at a path as in the brackets around it', () => {
  class Loose extends Configurable.with({ any: z.any().default(null) }) {}
  const words = fc.oneof(
    fc.constantFrom(
      '9',
      'false',
      'null',
      '1e-3',
      '0x10',
      '-5n',
      'NaN',
      '"9"',
      "'a b'",
      '[1, [true]]',
      '{a: 1}',
      'x y',
    ),
    fc.double().map(String),
    fc.stringMatching(/^[a-z0-9.+-]{1,8}$/),
  );
  fc.assert(
    fc.property(words, (text) => {
      const [one, other] = [Loose.config({ any: [0] }), Loose.config({ any: { k: 0 } })];
      setPath(one, 'any[0]', text);
      setPath(other, 'any.k', text);
      const whole = Loose.config();
      setPath(whole, 'any', `[${text}]`);
      expect([one.any, [other.any.k]]).toEqual([whole.any, whole.any]);
    }),
    { numRuns: runs(200, 30) },
  );
});

test('abstract classes are neither offered nor taken', () => {
  class Holder extends Configurable.with({ activation: instance(Activation, null) }) {}
  expect(messageOf(() => setPath(Holder.config(), 'activation', 'Activation'))).toContain(
    "activation: expected an Activation config, got 'Activation'. Activation is abstract: use a class that extends it: GELU, ReLU.",
  );
});

test('many unknown names are one short error', () => {
  class Narrow extends Configurable.with({ size: z.int().default(1) }) {}
  const values = Object.fromEntries(Array.from({ length: 12_000 }, (_, i) => [`k${i}`, i]));
  const message = messageOf(() => Narrow.config(values as never));
  expect(message.split('\n')).toHaveLength(22);
  expect(message).toMatch(/^Narrow\.config\(\): 12,000 problems:\n {2}Narrow has no hyperparameter 'k0'\./);
  expect(message).toMatch(/\n {2}… and 11,980 more \(at .*access\.test\.ts:\d+\)$/);
});

class Optional extends Configurable.with({
  linear: sub(Linear).nullable().default(null),
  activation: instance(Activation, null).optional(),
  required: sub(Linear, null),
}) {}

test('below a config that is not set, the error says what to set first', () => {
  const root = Optional.config();
  const set = (path: string, text: string): string =>
    messageOf(() => setPath(root, path, text, `--set ${path}=${text}`));
  expect(set('linear.inputDims', '3')).toBe(
    "No 'linear.inputDims': 'linear' is null. Set it first: --set linear=Linear --set linear.inputDims=3. (at --set linear.inputDims=3)",
  );
  expect(set('activation.approximate', 'true')).toBe(
    "No 'activation.approximate': 'activation' is not set. Set it first: --set activation=GELU --set activation.approximate=true. " +
      'Instead of GELU, it may be ReLU. (at --set activation.approximate=true)',
  );
  expect(set('required.inputDims', '3')).toContain(
    "'required' is not set. Set it first: --set required=Linear --set required.inputDims=3.",
  );
  expect(messageOf(() => setPath(root, 'linear.inputDims', 3))).toMatch(
    /^No 'linear\.inputDims': 'linear' is null\. Set it first: setPath\(root, 'linear', 'Linear'\)\. \(at .*access\.test\.ts:\d+\)$/,
  );
  setPath(root, 'linear', 'Linear');
  setPath(root, 'linear.inputDims', '3');
  setPath(root, 'required', 'Linear(inputDims=4)');
  expect([root.linear!.inputDims, root.required.inputDims]).toEqual([3, 4]);
});

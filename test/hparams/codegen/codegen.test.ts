/** @file Generated code, whole; and what cannot be generated. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { Small } from '../../../experiments/lm.js';
import { type CodegenOptions, codegen } from '../../../src/hparams/codegen/codegen.js';
import type { Modules } from '../../../src/hparams/codegen/imports.js';
import * as hparams from '../../../src/hparams/index.js';
import {
  addTag,
  buildDiff,
  Configurable,
  clearTags,
  codegenDiff,
  configurable,
  defineTag,
  derive,
  factory,
  instance,
  isEqual,
  sub,
  tagged,
  withOrigin,
} from '../../../src/hparams/index.js';
import * as luthier from '../../../src/index.js';
import { rooms } from '../../../src/rooms.js';
import { longTest } from '../../longTest.js';
import * as graphs from '../randomGraphs.js';
import { chain, diamond } from '../randomGraphs.js';
import { messageOf } from '../support.js';
import { evaluate, typeErrorsIn } from './program.js';

const rate = defineTag('codegen.rate', 'Rates of learning.');
const other = defineTag('codegen.other', 'Other numbers.');
class Head extends Configurable.with({
  dims: z.int().positive(),
  name: z.string().default('head'),
  rate: tagged(z.number().default(0.1), rate),
}) {}
class Body extends Configurable.with({
  head: instance(Head),
  heads: z.array(instance(Head, null)).default([]),
  tpl: sub(Head, () => Head.config({ dims: 2 })),
  make: factory(Head).optional(),
  data: z.any(),
}) {}
const schedule = configurable(
  function schedule({ steps }: { steps: number }) {
    return steps;
  },
  { steps: z.int() },
);
const modules = { './parts.js': { Body, Head, schedule, rate, other } };

function generated(root: unknown, options: Partial<CodegenOptions> = {}): string {
  const text = codegen(root, { modules, ...options });
  const made = evaluate(text, { 'luthier/hparams': hparams, ...(options.modules ?? modules) })[
    options.functionName ?? 'config'
  ]!();
  expect(isEqual(made, root, { tags: true })).toBe(true);
  return text;
}

/** The generated function alone. */
function body(root: unknown, options: Partial<CodegenOptions> = {}): string {
  return generated(root, options).replace(/^(?:import [^;]*;\n)*\n/, '');
}

describe('codegen', () => {
  it('nests configs, and names those that are shared after their path', () => {
    const head = Head.config({ dims: 4 });
    const root = Body.config({ head, heads: [head, Head.config({ dims: 5, name: 'second' })] });
    expect(generated(root)).toBe(`\
import { Body, Head } from './parts.js';

export function config() {
  const sharedHead = Head.config({ dims: 4 });
  return Body.config({ head: sharedHead, heads: [sharedHead, Head.config({ dims: 5, name: 'second' })] });
}
`);
  });

  it('states edited defaults, and leaves out defaults that were only read', () => {
    const root = Body.config({ head: Head.config({ dims: 1 }) });
    expect(root.tpl.dims).toBe(2);
    expect(body(root)).toBe(`\
export function config() {
  return Body.config({ head: Head.config({ dims: 1 }) });
}
`);
    root.tpl.name = 'edited';
    expect(body(root)).toContain("tpl: Head.config({ dims: 2, name: 'edited' })");
  });

  it('keeps the sharing of a default that is used elsewhere too', () => {
    const root = Body.config();
    root.heads = [root.tpl];
    expect(body(root)).toBe(`\
export function config() {
  const sharedHeads0 = Head.config({ dims: 2 });
  return Body.config({ heads: [sharedHeads0], tpl: sharedHeads0 });
}
`);
    const twins = [root, derive(root, (draft) => void (draft.data = 1))];
    expect(body(twins)).toContain('return [');
  });

  it('writes every kind of value', () => {
    const data = {
      numbers: [1, -0, 0.5, 1e21, Number.NaN, Number.NEGATIVE_INFINITY, 10n],
      texts: ["it's", 'a "b"', '\u0024{a}\n\u2028\u0000', ''],
      'two words': { 1: null, a: undefined, é: true },
      date: new Date(0),
      map: new Map([['a', [1]]]),
      set: new Set([1, 'b']),
    };
    expect(body(Body.config({ data }))).toBe(`\
export function config() {
  return Body.config({
    data: {
      numbers: [1, -0, 0.5, 1e+21, Number.NaN, Number.NEGATIVE_INFINITY, 10n],
      texts: ['it\\'s', 'a "b"', '\u0024{a}\\n\\u{2028}\\u0000', ''],
      'two words': { '1': null, a: undefined, é: true },
      date: new Date('1970-01-01T00:00:00.000Z'),
      map: new Map([['a', [1]]]),
      set: new Set([1, 'b']),
    },
  });
}
`);
  });

  it('writes partials, factories of arguments, and configs of functions', () => {
    const root = Body.config({ make: Head.partial({ dims: 1 }), data: schedule.config({ steps: 3 }) });
    expect(body(root)).toContain('make: Head.partial({ dims: 1 }), data: schedule.config({ steps: 3 })');
  });

  it('keeps tags', () => {
    const root = Head.config({ dims: 4 });
    addTag(root, 'dims', other);
    clearTags(root, 'rate');
    expect(generated(root)).toBe(`\
import { addTag, clearTags } from 'luthier/hparams';
import { Head, other } from './parts.js';

export function config() {
  const root = Head.config({ dims: 4 });
  addTag(root, 'dims', other);
  clearTags(root, 'rate');
  return root;
}
`);
    expect(body(Body.config({ data: [rate.new(other.new(1))] }))).toContain('data: [rate.new(other.new(1))]');
  });

  it('gives names to parts of expressions that are too complex', () => {
    const heads = [1, 2].map((dims) => Head.config({ dims, name: `head ${dims}` }));
    expect(body(Body.config({ heads, data: [1, 2, 3] }), { maxComplexity: 8 })).toBe(`\
export function config() {
  const heads0 = Head.config({ dims: 1, name: 'head 1' });
  const heads1 = Head.config({ dims: 2, name: 'head 2' });
  return Body.config({ heads: [heads0, heads1], data: [1, 2, 3] });
}
`);
  });

  it('gives functions of their own to fixtures, and hands them what others share', () => {
    const head = Head.config({ dims: 4 });
    const inner = Body.config({ head });
    expect(body({ inner, head }, { functionName: 'all', fixtures: { "['inner']": 'encoder' } })).toBe(`\
export function all() {
  const sharedHead = Head.config({ dims: 4 });
  return { inner: encoder(sharedHead), head: sharedHead };
}

export function encoder(sharedHead: Config<Head>) {
  return Body.config({ head: sharedHead });
}
`);
    const reason = "the value at 'data' is no config (option fixtures).";
    expect(messageOf(() => generated(Body.config({ data: 1 }), { fixtures: { data: 'x' } }))).toContain(
      reason,
    );
    expect(messageOf(() => generated(head, { functionName: 'class' }))).toBe(
      "'class' cannot be the name of a generated function (option functionName).",
    );
  });

  it('writes statements', () => {
    const root = Body.config({ head: Head.config({ dims: 4 }), heads: [Head.config()] });
    expect(body(root, { style: 'statements' })).toBe(`\
export function config() {
  const head = Head.config();
  head.dims = 4;
  const root = Body.config();
  root.head = head;
  root.heads = [Head.config()];
  return root;
}
`);
  });

  it('says where each value was set', () => {
    const root = withOrigin('--set dims=4\n@ts-ignore', () =>
      Body.config({ head: Head.config({ dims: 4 }) }),
    );
    expect(body(root, { history: true })).toBe(`\
export function config() {
  return Body.config({
    // --set dims=4 @ts-ignore
    head: Head.config({
      // --set dims=4 @ts-ignore
      dims: 4,
    }),
  });
}
`);
  });

  it('imports a class by the name of its export, from the first module that has it', () => {
    const sources = { './a.js': { Renamed: Head, Map: Body }, './b.js': { Head } };
    expect(generated(Body.config({ head: Head.config({ dims: 1 }) }), { modules: sources })).toBe(`\
import { Map as MapClass, Renamed } from './a.js';

export function config() {
  return MapClass.config({ head: Renamed.config({ dims: 1 }) });
}
`);
  });

  it('says which class or value cannot be written, where it stands, and what to do', () => {
    class Lost extends Head {}
    expect(messageOf(() => codegen(Body.config({ heads: [Lost.config()] }), { modules }))).toBe(
      "heads[0]: the class Lost cannot be imported: the modules given (./parts.js) do not export it. Export it, and add its module: { modules: { './file.js': await import('./file.js') } }.",
    );
    class Thing {}
    const thing = new Thing();
    const root = Body.config({ data: { a: [thing] } });
    expect(messageOf(() => codegen(root, { modules }))).toBe(
      "data['a'][0]: a Thing cannot be written as code. Describe it by a config or by plain values, or export it from a module and add that to the option modules.",
    );
    expect(generated(root, { modules: { ...modules, './things.js': { thing } } })).toContain(
      '{ a: [thing] }',
    );
  });

  longTest('is not deep where configs are, and keeps diamonds', () => {
    const sources = { './graphs.js': graphs };
    const deep = codegen(chain(10_000), { modules: sources });
    expect(isEqual(evaluate(deep, sources).config!(), chain(10_000))).toBe(true);
    const wide = codegen(diamond(60), { modules: sources });
    expect(wide.split('\n')).toHaveLength(65);
    expect(isEqual(evaluate(wide, sources).config!(), diamond(60))).toBe(true);
  });

  longTest("writes lm.Small's whole task", () => {
    const task = new Small().task();
    const inRooms = Object.entries(rooms).map(([room, exports]) => [`luthier/${room}`, exports]);
    const sources: Modules = { luthier, ...Object.fromEntries(inRooms) };
    const texts = (['nested', 'statements'] as const).map((style) =>
      codegen(task, { modules: sources, style }),
    );
    for (const text of texts) expect(isEqual(evaluate(text, sources).config!(), task)).toBe(true);
    const wider = derive(task, (draft) => {
      const model = luthier.narrow(draft.model, luthier.LanguageModel, 'model');
      model.lmTpl.stackedTransformerTpl.numLayers = 2;
    });
    const { layers, models, tasks } = rooms;
    const edit = codegenDiff(buildDiff(task, wider), {
      modules: { 'luthier/layers': layers, 'luthier/models': models, 'luthier/tasks': tasks },
    });
    expect(edit).toMatch(/^import \{ type Config, derive.* \} from 'luthier\/hparams';\n/);
    expect(typeErrorsIn('small', [...texts, edit])).toEqual([]);
  });
});

/** @file Generated code of diffs, whole; and what cannot be generated. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import * as hparams from '../../../src/hparams/index.js';
import {
  addTag,
  applyDiff,
  buildDiff,
  type Config,
  Configurable,
  codegenDiff,
  defineTag,
  derive,
  instance,
  isEqual,
  sub,
} from '../../../src/hparams/index.js';
import { messageOf } from '../support.js';
import { evaluate } from './program.js';

const mark = defineTag('codegenDiff.mark', 'Whatever is marked.');
class Part extends Configurable.with({ dims: z.int().default(1) }) {}
class Wide extends Part.with({ factor: z.int().default(2) }) {}
class Root extends Configurable.with({
  part: sub(Part),
  extra: instance(Part, null).optional(),
  parts: z.array(instance(Part, null)).default([]),
  sizes: z.array(z.int()).default([]),
  names: z.record(z.string(), z.string()).default({}),
  choice: z.union([z.literal('none'), z.array(z.string())]).default('none'),
}) {}
const modules = { './parts.js': { Part, Root, Wide, mark }, './luthier.js': hparams };

/** The generated function of what makes `old` what `recipe` makes of it. */
function edits(old: Config<Root>, recipe: (draft: Config<Root>) => void): string {
  const now = derive(old, recipe);
  const diff = buildDiff(old, now);
  const text = codegenDiff(diff, { modules });
  const made = evaluate(text, modules).edit!(old);
  expect(isEqual(made, now, { tags: true })).toBe(true);
  expect(isEqual(made, applyDiff(diff, old), { tags: true })).toBe(true);
  return text.replace(/^(?:import [^;]*;\n)*\n/, '');
}

describe('codegenDiff', () => {
  it('sets, changes and unsets values, with tags', () => {
    const old = Root.config({ sizes: [1], names: { a: 'x', b: 'y' }, extra: Wide.config() });
    const text = edits(old, (draft) => {
      draft.part.dims = 4;
      (draft.extra as Config<Wide>).factor = 3;
      draft.sizes[0] = 2;
      draft.names.c = 'z';
      delete draft.names.a;
      addTag(draft, 'sizes', mark);
    });
    expect(text).toBe(`\
export function edit(root: Config<Root>): Config<Root> {
  return derive(root, (draft) => {
    const part = draft.part as Config<Part>;
    const extra = draft.extra as Config<Wide>;
    addTag(draft, 'sizes', mark);
    const sizes = draft.sizes as unknown[];
    draft.sizes = [2, ...sizes.slice(1)] as typeof draft.sizes;
    const names = draft.names as Record<string, unknown>;
    draft.names = {
      ...Object.fromEntries(Object.entries(names).filter(([key]) => !['a'].includes(key))),
      c: 'z',
    } as typeof draft.names;
    part.dims = 4;
    extra.factor = 3;
  });
}
`);
  });

  it('inserts, removes and moves items of lists', () => {
    const [a, b, c] = [1, 2, 3].map((dims) => Part.config({ dims }));
    const old = Root.config({ parts: [a!, b!, c!], sizes: [1, 2, 3, 4] });
    const text = edits(old, (draft) => {
      draft.parts = [draft.parts[2]!, draft.parts[0]!, draft.parts[1]!];
      draft.sizes.splice(1, 2);
    });
    expect(text).toBe(`\
export function edit(root: Config<Root>): Config<Root> {
  return derive(root, (draft) => {
    const parts = draft.parts as unknown[];
    draft.parts = [parts[2], ...parts.slice(0, 2), ...parts.slice(3)] as typeof draft.parts;
    const sizes = draft.sizes as unknown[];
    draft.sizes = [...sizes.slice(0, 1), ...sizes.slice(3)] as typeof draft.sizes;
  });
}
`);
  });

  it('names what moves before anything changes, and what is new and shared', () => {
    const old = Root.config({ extra: Wide.config({ factor: 9 }) });
    const text = edits(old, (draft) => {
      const fresh = Part.config({ dims: 7 });
      draft.parts = [draft.extra!, fresh, fresh];
      draft.extra = fresh;
      draft.choice = ['a', 'b'];
    });
    expect(text).toBe(`\
export function edit(root: Config<Root>): Config<Root> {
  return derive(root, (draft) => {
    const extra = draft.extra as Config<Wide>;
    const sharedExtra = Part.config({ dims: 7 });
    draft.extra = sharedExtra;
    draft.parts = [extra, sharedExtra, sharedExtra];
    draft.choice = ['a', 'b'];
  });
}
`);
  });

  it('names what is put into a list that stays', () => {
    const old = Root.config({
      extra: Wide.config({ factor: 9 }),
      parts: [Part.config({ dims: 3 }), Part.config({ dims: 4 })],
    });
    const text = edits(old, (draft) => {
      draft.parts.push(draft.extra!);
      draft.extra = Part.config({ dims: 6 });
    });
    expect(text).toBe(`\
export function edit(root: Config<Root>): Config<Root> {
  return derive(root, (draft) => {
    const extra = draft.extra as Config<Wide>;
    draft.extra = Part.config({ dims: 6 });
    const parts = draft.parts as unknown[];
    draft.parts = [...parts.slice(0), extra] as typeof draft.parts;
  });
}
`);
  });

  it('steps into values whose type says little', () => {
    const text = edits(Root.config({ choice: ['a', 'b'] }), (draft) => {
      (draft.choice as string[])[1] = 'c';
    });
    expect(text).toContain(
      "draft.choice = [...choice.slice(0, 1), 'c', ...choice.slice(2)] as typeof draft.choice;",
    );
  });

  it('changes classes', () => {
    const old = Root.config({ extra: Part.config({ dims: 5 }) });
    const now = Root.config({ extra: Wide.config({ dims: 5, factor: 3 }) });
    const text = codegenDiff(buildDiff(old, now), { modules, functionName: 'widen' });
    expect(text).toContain('const wide = updateCallable(extra, Wide, { dropInvalid: true });');
    expect(isEqual(evaluate(text, modules).widen!(old), now)).toBe(true);
  });

  it('gives the root back where nothing changes', () => {
    expect(codegenDiff(buildDiff(Root.config(), Root.config()), { modules })).toBe(`\
import type { AnyConfig } from './luthier.js';

export function edit<C extends AnyConfig>(root: C): C {
  return root;
}
`);
  });

  it('refuses what a derived config cannot become', () => {
    const [a, b] = [Root.config(), Root.config({ sizes: [1] })];
    expect(messageOf(() => codegenDiff(buildDiff([a], [a, b]), { modules }))).toBe(
      'codegenDiff edits one config; this is a diff of containers of configs.',
    );
    const tagged = Root.config({ sizes: [mark.new(1)] });
    const now = Root.config({ sizes: [mark.new(2)] });
    expect(messageOf(() => codegenDiff(buildDiff(tagged, now), { modules }))).toContain(
      'codegenDiff: sizes[0] is a value with tags of its own, which code cannot change or move',
    );
  });
});

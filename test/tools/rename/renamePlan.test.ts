/** @file Plans of renames in a small project, whose packages have only the types that they need. */
import { rmSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, expect, test, vi } from 'vitest';
import { plain } from '../../../src/system/text/terminalOutput.js';
import type { Arguments, Command } from '../../../src/tools/command.js';
import { Classes, experimentName } from '../../../src/tools/rename/classes.js';
import { renameClass, renameField } from '../../../src/tools/rename/index.js';
import { type Plan, planClassRename, planFieldRename } from '../../../src/tools/rename/renamePlan.js';
import { RenameProject } from '../../../src/tools/rename/renameProject.js';
import { checkClassName, checkFieldName, findClass, findField } from '../../../src/tools/rename/target.js';
import { bareProject, read, write as writeFiles } from './scratch.js';

const luthier = `type Values<F> = { [K in keyof F]: F[K] extends { readonly _zod: infer V } ? V : never };
interface Class<V> {
  new (): { readonly hp: V };
  config(values?: Partial<V>): V;
  with<F>(fields: F): Class<V & Values<F>>;
}
export class Configurable {
  readonly hp!: object;
  static config(_values?: object): object { return {}; }
  static with<F>(_fields: F): Class<Values<F>> { return undefined as never; }
}
export class Experiment {
  task() {}
  static with<F>(_fields: F): new () => Experiment & Values<F> { return undefined as never; }
}
export class Lib extends Configurable.with({ x: { _zod: 1 } }) {}
export function renamed<S>(schema: S, ..._names: string[]): S { return schema; }
export function registerAlias(_name: string, _cls: unknown): void {}
`;
const zod = `interface Int { readonly _zod: number; default(value: number): Int }
export declare const z: { int(): Int };
`;

const layer = `import { Configurable } from 'luthier';
import { z } from 'zod';

export class Head extends Configurable.with({ dims: z.int().default(4), scale: z.int() }) {
  size() {
    const { dims, scale } = this.hp;
    return dims * scale + this.hp['dims'];
  }
}
export class Wide extends Head.with({ extra: z.int() }) {}
/** Not these dims. */
export class Other extends Configurable.with({ dims: z.int() }) {}
`;
const uses = `import { Head, Other, Wide } from './layer.js';
const dims = 7;
export const made = [Head.config({ dims }), Wide.config({ dims: 1 })];
export const other = Other.config({ dims: 2 });
export const given: { dims: number } = Head.config();
export const broken: number = '';
export const loose = (Head as any).config({ dims: 3 }).dims;
`;
const run = `import { Experiment } from 'luthier';
import { z } from 'zod';

export class Run extends Experiment.with({ steps: z.int().default(1) }) {
  help() {}
}
export class Short extends Run {
  override steps = 3;
}
`;
const old = `import { Configurable, renamed } from 'luthier';
import { z } from 'zod';
export class Aged extends Configurable.with({ a: renamed(z.int(), 'b'), c: z.int() }) {}
namespace Inner { export class Head extends Configurable.with({ d: z.int() }) {} }
export const inner = Inner.Head;
`;
const files = {
  'src/layer.ts': layer,
  'src/uses.ts': uses,
  'src/old.ts': old,
  'experiments/deep/run.ts': run,
  'a.yaml': '$class: Head\ndims: 3\n# dimsy\n',
  'run.sh': 'run --exp=deep.run.Short --exp="deep.run.Shorter"\n',
  'picture.bin': 'dims\0',
  'large.txt': `dims${' '.repeat(2 ** 20)}`,
  'package-lock.json': 'dims',
};
const folder = bareProject(files, { luthier, zod });
symlinkSync('a.yaml', join(folder, 'link.yaml'));
afterAll(() => rmSync(dirname(folder), { recursive: true }));

const texts = ({ root, files }: Plan): Record<string, string> =>
  Object.fromEntries(files.map(({ path, text }) => [path.slice(root.length + 1), text]));
const places = ({ mentions }: Plan): string[] =>
  mentions.map(({ file, line, text }) => `${file}:${line}: ${text}`);

test('a field changes where types lead, with an alias; what they do not reach is listed, and errors that are new', () => {
  const plan = planFieldRename(folder, 'layer.ts:Head.dims', 'width', { alias: true });
  expect(plan).toMatchObject({ old: 'Head.dims', present: 'Head.width' });
  expect(plan.errors.map(({ place, message }) => [place, message.split('\n')[0]])).toEqual([
    ['src/uses.ts:5', expect.stringMatching(/^TS2741: /)],
  ]);
  expect(texts(plan)).toEqual({
    'src/layer.ts': layer
      .replace('{ Configurable }', '{ Configurable, renamed }')
      .replace('dims: z.int().default(4)', "width: renamed(z.int().default(4), 'dims')")
      .replace('{ dims, scale } = ', '{ width: dims, scale } = ')
      .replace("hp['dims']", "hp['width']"),
    'src/uses.ts': uses.replace('{ dims })', '{ width: dims })').replace('{ dims: 1 }', '{ width: 1 }'),
  });
  expect(plan.files.map(({ before }) => before)).toEqual([layer, uses]);
  expect(places(plan)).toEqual([
    'a.yaml:2: dims: 3',
    'src/layer.ts:11: /** Not these dims. */',
    'src/uses.ts:7: export const loose = (Head as any).config({ dims: 3 }).dims;',
  ]);
});

test('a constant changes in classes that override it, without an alias if none is wanted', () => {
  const plan = planFieldRename(folder, 'deep.run.Run.steps', 'length', { alias: false });
  expect(texts(plan)).toEqual({ 'experiments/deep/run.ts': run.replaceAll('steps', 'length') });
  expect(plan.mentions).toEqual([]);
});

test('a class changes with an alias behind it, an experiment without one', () => {
  const plan = planClassRename(folder, 'Wide', 'Broad', { alias: true });
  expect(texts(plan)['src/layer.ts']).toBe(
    layer
      .replace('{ Configurable }', '{ Configurable, registerAlias }')
      .replace(
        'class Wide extends Head.with({ extra: z.int() }) {}',
        "class Broad extends Head.with({ extra: z.int() }) {}\n\n// Configs that were saved when it was called Wide.\nregisterAlias('Wide', Broad);",
      ),
  );
  expect([places(plan), plan.errors]).toEqual([[], []]);
  const experiment = planClassRename(folder, 'deep.run.Short', 'Brief', { alias: true });
  expect(experiment).toMatchObject({ old: 'deep.run.Short', present: 'deep.run.Brief' });
  expect(texts(experiment)).toEqual({ 'experiments/deep/run.ts': run.replace('Short', 'Brief') });
  expect(places(experiment)).toEqual(['run.sh:1: run --exp=deep.run.Short --exp="deep.run.Shorter"']);
});

/** Declarations as a compiler writes those of the library, and of layers and experiments on it. */
const declared = `type WithFields<B extends abstract new () => unknown, F> = (abstract new () => InstanceType<B> & Values<F>) & Omit<B, 'prototype'>;
type Values<F> = { [K in keyof F]: F[K] extends { readonly _zod: infer V } ? V : never };
export declare class Configurable {
  static with<B extends abstract new () => unknown, const F>(this: B, fields: F): WithFields<B, F>;
}
export declare class Experiment {
  task(): void;
  static with<B extends abstract new () => unknown, const F>(this: B, fields: F): WithFields<B, F>;
}
declare const BaseLayer_base: WithFields<typeof Configurable, { depth: { readonly _zod: number } }>;
export declare abstract class BaseLayer extends BaseLayer_base {}
declare const Linear_base: typeof BaseLayer;
export declare class Linear extends Linear_base {}
declare const Lm_base: WithFields<typeof Experiment, { steps: { readonly _zod: number } }>;
export declare class Lm extends Lm_base {}
export declare function renamed<S>(schema: S, ...names: string[]): S;
export declare function registerAlias(name: string, cls: unknown): void;
`;

test('in an installed project, whose packages are declarations, classes and what they inherit are known', () => {
  const own = `import { Experiment, Linear, Lm } from 'luthier';
import { z } from 'zod';
export class Own extends Linear.with({ width: z.int() }) {}
export class Run extends Lm.with({ length: z.int() }) {}
const withDropout = <B extends abstract new () => object>(base: B, rate: number) => base;
export class Mixed extends withDropout(Run, 0.1) {}
export class Plain extends Experiment {}
`;
  const part = "import { BaseLayer } from 'luthier/layers';\nexport class Part extends BaseLayer {}\n";
  const installed = bareProject({ 'experiments/own.ts': own, 'src/part.ts': part }, { zod });
  writeFiles(join(installed, 'node_modules/luthier'), {
    'package.json': '{ "exports": { ".": "./index.js", "./layers": "./layers.js" } }',
    'index.d.ts': declared,
    'layers.d.ts': "export { BaseLayer } from './index.js';\n",
  });
  const field = (text: string, name: string) => planFieldRename(installed, text, name, { alias: true });
  const path = 'experiments/own.ts';
  expect(texts(field('Own.width', 'size'))[path]).toContain(
    "Linear.with({ size: renamed(z.int(), 'width') })",
  );
  expect(texts(field('Run.length', 'size'))[path]).toContain("Lm.with({ size: renamed(z.int(), 'length') })");
  const shown = planClassRename(installed, 'Own', 'Other', { alias: true });
  expect(texts(shown)[path]).toContain("registerAlias('Own', Other);");
  expect([shown.errors, shown.notes]).toEqual([[], []]);
  // Of a sub-path's importer, the name is imported from the package itself.
  const edited = texts(planClassRename(installed, 'Part', 'Whole', { alias: true }))['src/part.ts'];
  expect(edited).toMatch(
    /^import \{ registerAlias \} from 'luthier';\nimport \{ BaseLayer \} from 'luthier\/layers';/,
  );
  expect(planClassRename(installed, 'own.Mixed', 'Other', { alias: true }).notes).toEqual([
    '--exp=own.Mixed leads nowhere from now on, and its runs do not resume under the new name. ' +
      '`export { Other as Mixed };` in experiments/own.ts keeps the old name.',
  ]);
  const place = 'node_modules/luthier/index.d.ts';
  const foreign = 'which is not a file of this project.';
  expect(() => field('Own.depth', 'x')).toThrow(`Own has 'depth' from BaseLayer (${place}:11): which is`);
  expect(() => field('Mixed.steps', 'x')).toThrow(`Mixed has 'steps' from Lm (${place}:15): which is`);
  expect(() => field('Linear.depth', 'x')).toThrow(`Linear is declared at ${place}:13, ${foreign}`);
  rmSync(dirname(installed), { recursive: true });
});

test('targets that are none or several, and names that are taken, are told with their places', () => {
  const sources = new RenameProject(folder);
  const classes = new Classes(sources.all);
  const messageOf = (action: () => unknown): string => {
    try {
      action();
    } catch (error) {
      return `${(error as Error).name}: ${(error as Error).message}`;
    }
    return 'nothing was thrown';
  };
  const field = (text: string, name: string) =>
    messageOf(() => checkFieldName(sources, classes, findField(sources, classes, text), name));
  const cls = (text: string, name: string) =>
    messageOf(() => checkClassName(sources, findClass(sources, classes, text), name));
  const layerHead = 'src/layer.ts:Head';
  expect([
    field('Hed.dims', 'x'),
    field('deep.run.Rum.steps', 'x'),
    field('dims', 'x'),
    field('.dims', 'x'),
    field('Head.', 'x'),
    field('Wide.extr', 'x'),
    field('Run.step', 'x'),
    field('Wide.dims', 'x'),
    field('Head.dims', '__proto__'),
    field('Head.dims', 'dims'),
    field('Head.dims', 'extra'),
    field('Run.steps', 'help'),
    field('Run.steps', 'task'),
    field('Aged.c', 'b'),
    field('Aged.a', 'b'),
    field('old.ts:Wide.dims', 'b'),
    cls('Head', 'x'),
    cls(layerHead, 'Head'),
    cls(layerHead, 'a b'),
    cls(layerHead, 'Wide'),
    cls(layerHead, 'Wider'),
    cls('deep.run.Run', 'Short'),
    cls('Lib', 'x'),
    field('Lib.x', 'y'),
  ]).toEqual([
    "UsageError: No configurable class or experiment of the project is called 'Hed'. Did you mean 'Head'?",
    "UsageError: 'deep.run.Rum' names no class. Did you mean 'deep.run.Run'?",
    "UsageError: 'dims' names no field: write CLASS.field.",
    "UsageError: '.dims' names no field: write CLASS.field.",
    "UsageError: 'Head.' names no field: write CLASS.field.",
    "UsageError: Wide has no hyperparameter 'extr'. Did you mean 'extra'? It has dims, extra, scale.",
    "UsageError: Run has no constant 'step'. Did you mean 'steps'? It has steps.",
    "UsageError: Wide has 'dims' from Head (src/layer.ts:4): rename Head.dims, and it changes here, too.",
    "UsageError: Head.dims cannot be called '__proto__': it is not a valid identifier for a field.",
    'UsageError: Head.dims has that name already.',
    "UsageError: Head.dims cannot be called 'extra': Wide has a field of that name (src/layer.ts:10).",
    "UsageError: Run.steps cannot be called 'help': Run has a member of that name (experiments/deep/run.ts:5).",
    expect.stringMatching(
      /^UsageError: Run\.steps cannot be called 'task': Experiment has a member of that name/,
    ),
    "UsageError: Aged.c cannot be called 'b': Aged.a had that name before (src/old.ts:3), and values saved under it would load into the wrong field.",
    'nothing was thrown',
    "UsageError: No configurable class or experiment of the project is called 'Wide' in old.ts.",
    'UsageError: There are 2 classes called Head: say which.\n  src/layer.ts:Head  (src/layer.ts:4)\n  src/old.ts:Head  (src/old.ts:4)',
    'UsageError: Head has that name already.',
    "UsageError: Head cannot be called 'a b': it is not a valid identifier.",
    "UsageError: Head cannot be called 'Wide': its file exports something of that name.",
    'nothing was thrown',
    "UsageError: Run cannot be called 'Short': experiment file experiments/deep/run.ts exports something of that name.",
    'UsageError: Lib is declared at ../luthier/index.ts:16, which is not a file of this project.',
    'UsageError: Lib is declared at ../luthier/index.ts:16, which is not a file of this project.',
  ]);
  expect(classes.all.map(experimentName).filter(Boolean)).toEqual(['deep.run.Run', 'deep.run.Short']);
  expect(messageOf(() => new RenameProject(join(folder, 'src')))).toBe(
    `UsageError: ${join(folder, 'src')} has no tsconfig.json: renaming works in the folder of a TypeScript project.`,
  );
});

test('the command shows, refuses or writes, as its flags say', async () => {
  const source = layer.replace(
    'export class Wide',
    'export const wrong: { dims: number } = Head.config();\nexport class Wide',
  );
  const files = { 'src/layer.ts': source };
  const other = bareProject(files, { luthier, zod });
  const cwd = vi.spyOn(process, 'cwd').mockReturnValue(other);
  const run = (command: Command, values: Arguments['values'], ...positionals: string[]) =>
    command.run({ positionals, values, changes: [], format: 'text', warn: () => {} });
  const now = () => read(other, 'src/layer.ts');
  try {
    const shown = await run(renameClass, { dryRun: true }, 'Other', 'Further');
    expect([shown.exitCode, now()]).toEqual([0, source]);
    expect(shown.text(plain)).toMatch(
      /^src\/layer\.ts\n@@ -1 \+1 @@\n-import [\s\S]*\n\nOther → Further: 1 file would change; nothing was written\.$/,
    );
    const refused = await run(renameField, {}, 'Head.dims', 'width');
    expect([refused.exitCode, now()]).toEqual([1, source]);
    expect(refused.text(plain)).toMatch(
      /\nNew compiler errors:\n {2}src\/layer\.ts:10: TS2741: [\s\S]*\n\nHead\.dims → Head\.width: 1 file would change, and cause 1 new compiler error; nothing was written\. --force writes it anyway\.$/,
    );
    const forced = await run(renameField, { force: true, noAlias: true }, 'Head.dims', 'width');
    expect(forced.json()).toMatchObject({
      old: 'Head.dims',
      outcome: 'written',
      errors: [{ place: 'src/layer.ts:10' }],
    });
    expect(forced.exitCode).toBe(0);
    expect(now()).toContain('with({ width: z.int().default(4), scale');
  } finally {
    cwd.mockRestore();
    rmSync(dirname(other), { recursive: true });
  }
});

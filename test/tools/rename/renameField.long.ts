/** @file Renaming fields of scratch projects: what changes, what is listed, what the compiler says. */
import { relative } from 'node:path';
import { expect, test } from 'vitest';
import { type Plan, planFieldRename } from '../../../src/tools/rename/renamePlan.js';
import { experimentProject, project } from './scratch.js';

const layer = `import { Configurable, sub } from 'luthier';
import { z } from 'zod';

export class Head extends Configurable.with({
  dims: z.int().positive().default(4).describe('Outputs.'),
  scale: z.number().default(1),
}) {
  size() {
    const { dims, scale } = this.hp;
    return dims * scale + this.hp['dims'];
  }
}

export class WideHead extends Head.with({ extra: z.int().default(0) }) {
  static override validate(config: { dims: number }, report: (message: string, path?: string) => void) {
    if (config.dims < 2) report('too narrow', 'dims');
  }
}

/** Not this one. */
export class Other extends Configurable.with({ dims: z.int().default(1) }) {}

export class Model extends Configurable.with(
  { headTpl: sub(Head), other: sub(Other), heads: z.array(sub(Head)).default([]) },
  (schema) => schema.refine(({ headTpl }) => headTpl.dims > 0, { path: ['headTpl', 'dims'] }),
) {}
`;

const uses = `import { build, type Config, type ConfigValues, derive, getPath, getTags, select, setPath, unset } from 'luthier/hparams';
import { Head, Model, Other, WideHead } from './layer.js';

const base = { dims: 3, scale: 2 };
const shared = { dims: 5, scale: 1 };
const dims = 7;
export const a = Head.config({ ...base });
export const b = WideHead.config({ dims, extra: 1 });
export const c = Head.config(shared);
export const d = Other.config(shared);
export function made(values: Partial<ConfigValues<Head>>): Config<Head> {
  return Head.config({ ...values, dims: base.dims });
}
export const e = derive(Model.config(), (draft) => {
  draft.headTpl.dims = 2;
  draft.other.dims = 3;
  Object.assign(draft.headTpl, { dims: 8 });
});
setPath(e, 'headTpl.dims', 4);
setPath(e, 'other.dims', 4);
setPath(e, 'heads[0].dims', 4);
select(e, Head).set({ dims: 1 });
unset(a, 'dims');
export const tags = [getTags(a, 'dims'), getPath(e, 'headTpl.dims'), select(e, Head).get('dims')];
export const loose = (a as unknown as any).dims;
export const record: Record<string, unknown> = { dims: 1 };
export type Dims = Config<Head>['dims'];
export const [{ dims: first }] = [build(a).hp] as const;
`;

const show = (plan: Plan, file: string): string | undefined =>
  plan.files.find(({ path }) => relative(plan.root, path) === file)?.text;
const places = ({ mentions }: Plan): string[] =>
  mentions.map(({ file, line, text }) => `${file}:${line}: ${text}`);

test('a hyperparameter changes with every use that its type leads to; what types do not reach is listed', () => {
  const documents = {
    'a.yaml': '$class: Head\ndims: 3\n',
    'run.sh': 'run --set task.model.headTpl.dims=3\n',
  };
  const folder = project({ 'src/layer.ts': layer, 'src/uses.ts': uses, ...documents });
  const plan = planFieldRename(folder, 'Head.dims', 'width', { alias: true });
  expect(show(plan, 'src/layer.ts')).toBe(
    layer
      .replace('Configurable, sub', 'Configurable, renamed, sub')
      .replace(
        "dims: z.int().positive().default(4).describe('Outputs.')",
        "width: renamed(z.int().positive().default(4).describe('Outputs.'), 'dims')",
      )
      .replace('{ dims, scale } = this.hp', '{ width: dims, scale } = this.hp')
      .replace("this.hp['dims']", "this.hp['width']")
      .replace('headTpl.dims > 0', 'headTpl.width > 0'),
  );
  expect(show(plan, 'src/uses.ts')).toBe(
    uses
      .replace('{ dims, extra: 1 }', '{ width: dims, extra: 1 }')
      .replace('...values, dims:', '...values, width:')
      .replace('draft.headTpl.dims', 'draft.headTpl.width')
      .replace('set({ dims: 1 })', 'set({ width: 1 })')
      .replace("Config<Head>['dims']", "Config<Head>['width']")
      .replace('{ dims: first }', '{ width: first }'),
  );
  // A name of a field given as text is checked by the compiler.
  const wrong = `TS2345: Argument of type '"dims"' is not assignable to parameter of type '"width" | "scale"'.`;
  expect(plan.errors).toEqual([
    { place: 'src/uses.ts:23', message: wrong },
    { place: 'src/uses.ts:24', message: wrong },
    { place: 'src/uses.ts:24', message: wrong },
  ]);
  expect(places(plan)).toEqual([
    'a.yaml:2: dims: 3',
    'run.sh:1: run --set task.model.headTpl.dims=3',
    "src/layer.ts:16: if (config.dims < 2) report('too narrow', 'dims');",
    "src/layer.ts:25: (schema) => schema.refine(({ headTpl }) => headTpl.width > 0, { path: ['headTpl', 'dims'] }),",
    'src/uses.ts:4: const base = { dims: 3, scale: 2 };',
    'src/uses.ts:5: const shared = { dims: 5, scale: 1 };',
    'src/uses.ts:17: Object.assign(draft.headTpl, { dims: 8 });',
    "src/uses.ts:19: setPath(e, 'headTpl.dims', 4);",
    "src/uses.ts:20: setPath(e, 'other.dims', 4);",
    "src/uses.ts:21: setPath(e, 'heads[0].dims', 4);",
    "src/uses.ts:23: unset(a, 'dims');",
    "src/uses.ts:24: export const tags = [getTags(a, 'dims'), getPath(e, 'headTpl.dims'), select(e, Head).get('dims')];",
    'src/uses.ts:25: export const loose = (a as unknown as any).dims;',
    'src/uses.ts:26: export const record: Record<string, unknown> = { dims: 1 };',
  ]);
});

const experiment = `import { type BaseInput, type Config, Experiment, LanguageModel, SingleTask } from 'luthier';
import { z } from 'zod';

const steps = z.int().positive().default(10);

export abstract class Family extends Experiment.with({ steps, rate: z.number().default(1) }) {
  override task(): Config<SingleTask> {
    const { steps } = this;
    const task = SingleTask.config({ model: LanguageModel.config() });
    task.train.numTrainSteps = steps + this.steps;
    return task;
  }
  override datasets(): Config<BaseInput>[] {
    return [];
  }
}

export class Small extends Family {
  override steps = 3;
  override rate = 2 * this.steps;
}

export class Tiny extends Small.preset({ steps: 1, rate: ({ steps }) => steps }) {}
`;
const elsewhere = `import { Experiment } from 'luthier';
import { z } from 'zod';

/** Has steps of its own. */
export class Single extends Experiment.with({ steps: z.int().default(1) }) {}
`;

test('a constant of an experiment changes in the classes that override it; scripts and pages are listed', () => {
  const folder = experimentProject({
    'experiments/lm.ts': experiment,
    'experiments/other.ts': elsewhere,
    'package.json':
      '{\n  "type": "module",\n  "scripts": { "small": "run --exp=lm.Small --set steps=4" }\n}\n',
    'docs/page.md': 'Run `--exp=lm.Small --set steps=9`.\n',
    'experiments/__snapshots__/lm.Small.txt': 'steps : 3\n',
  });
  const plan = planFieldRename(folder, 'Family.steps', 'numSteps', { alias: true });
  expect(plan.errors).toEqual([]);
  expect(plan.files).toHaveLength(1);
  expect(show(plan, 'experiments/lm.ts')).toBe(
    experiment
      .replace('LanguageModel, SingleTask', 'LanguageModel, renamed, SingleTask')
      .replace('with({ steps,', "with({ numSteps: renamed(steps, 'steps'),")
      .replace('const { steps } = this', 'const { numSteps: steps } = this')
      .replaceAll('this.steps', 'this.numSteps')
      .replace('override steps', 'override numSteps')
      .replace('preset({ steps: 1, rate: ({ steps })', 'preset({ numSteps: 1, rate: ({ numSteps: steps })'),
  );
  expect(places(plan)).toEqual([
    'docs/page.md:1: Run `--exp=lm.Small --set steps=9`.',
    'experiments/other.ts:4: /** Has steps of its own. */',
    'package.json:3: "scripts": { "small": "run --exp=lm.Small --set steps=4" }',
  ]);
});

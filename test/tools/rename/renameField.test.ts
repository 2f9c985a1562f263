/** @file Renaming fields of scratch projects: what changes, what is listed, what is refused. */
import { relative } from 'node:path';
import { expect, test } from 'vitest';
import type { Plan } from '../../../src/tools/rename/plan.js';
import { planFieldRename } from '../../../src/tools/rename/renameField.js';
import { Sources } from '../../../src/tools/rename/sources.js';
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

const uses = `import { build, type Config, type ConfigValues, derive, getPath, getTags, select, setPath, unset } from 'luthier';
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
  plan.files.find((changed) => relative(plan.root, changed.file) === file)?.after;
const looks = (plan: Plan): string[] =>
  plan.looks.map(({ file, line, text, why }) => `${relative(plan.root, file)}:${line}: ${why}: ${text}`);

test('a hyperparameter changes with every use that the types, or the flow of objects, lead to', () => {
  const folder = project({ 'src/layer.ts': layer, 'src/uses.ts': uses });
  const plan = planFieldRename(folder, 'Head.dims', 'width', { alias: true });
  expect(plan.errors).toEqual([]);
  expect(show(plan, 'src/layer.ts')).toBe(`import { Configurable, renamed, sub } from 'luthier';
import { z } from 'zod';

export class Head extends Configurable.with({
  width: renamed(z.int().positive().default(4).describe('Outputs.'), 'dims'),
  scale: z.number().default(1),
}) {
  size() {
    const { width: dims, scale } = this.hp;
    return dims * scale + this.hp['width'];
  }
}

export class WideHead extends Head.with({ extra: z.int().default(0) }) {
  static override validate(config: { dims: number }, report: (message: string, path?: string) => void) {
    if (config.dims < 2) report('too narrow', 'width');
  }
}

/** Not this one. */
export class Other extends Configurable.with({ dims: z.int().default(1) }) {}

export class Model extends Configurable.with(
  { headTpl: sub(Head), other: sub(Other), heads: z.array(sub(Head)).default([]) },
  (schema) => schema.refine(({ headTpl }) => headTpl.width > 0, { path: ['headTpl', 'width'] }),
) {}
`);
  expect(
    show(plan, 'src/uses.ts'),
  ).toBe(`import { build, type Config, type ConfigValues, derive, getPath, getTags, select, setPath, unset } from 'luthier';
import { Head, Model, Other, WideHead } from './layer.js';

const base = { width: 3, scale: 2 };
const shared = { dims: 5, scale: 1 };
const dims = 7;
export const a = Head.config({ ...base });
export const b = WideHead.config({ width: dims, extra: 1 });
export const c = Head.config(shared);
export const d = Other.config(shared);
export function made(values: Partial<ConfigValues<Head>>): Config<Head> {
  return Head.config({ ...values, width: base.width });
}
export const e = derive(Model.config(), (draft) => {
  draft.headTpl.width = 2;
  draft.other.dims = 3;
  Object.assign(draft.headTpl, { width: 8 });
});
setPath(e, 'headTpl.width', 4);
setPath(e, 'other.dims', 4);
setPath(e, 'heads[0].width', 4);
select(e, Head).set({ width: 1 });
unset(a, 'width');
export const tags = [getTags(a, 'width'), getPath(e, 'headTpl.width'), select(e, Head).get('width')];
export const loose = (a as unknown as any).dims;
export const record: Record<string, unknown> = { dims: 1 };
export type Dims = Config<Head>['width'];
export const [{ width: first }] = [build(a).hp] as const;
`);
  // All that TypeScript's own renaming finds is among it.
  const sources = new Sources(folder);
  const found = sources.service.findRenameLocations(
    `${folder}/src/layer.ts`,
    layer.indexOf('dims'),
    false,
    false,
    {
      providePrefixAndSuffixTextForRename: true,
    },
  );
  expect(found).toHaveLength(10);
  const missed = found!.filter(({ fileName, textSpan: { start } }) => {
    const { edits } = plan.files.find(({ file }) => file === fileName)!;
    return !edits.some((edit) => edit.start <= start && start < edit.end);
  });
  expect(missed).toEqual([]);
  expect(looks(plan)).toEqual([
    'src/layer.ts:15: a type inside of the class names it, too: static override validate(config: { dims: number }, report: (message: string, path?: string) => void) {',
    'src/uses.ts:5: this object is given to something else, too, at src/uses.ts:10: const shared = { dims: 5, scale: 1 };',
    'src/uses.ts:25: the type of the object is not known: export const loose = (a as unknown as any).dims;',
    'src/uses.ts:26: the object goes where any keys may: export const record: Record<string, unknown> = { dims: 1 };',
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
`;
const elsewhere = `import { Experiment } from 'luthier';
import { z } from 'zod';

/** Has steps of its own. */
export class Single extends Experiment.with({ steps: z.int().default(1) }) {}
`;
const scripts = {
  'package.json': `{
  "type": "module",
  "scripts": {
    "small": "luthier-run --exp=lm.Small --set steps=4 --set \\"steps=5\\"",
    "single": "luthier-run --exp=other.Single --set steps=4",
    "any": "luthier-run --set steps=4"
  }
}
`,
  'run.sh': `#!/bin/sh
run --exp=lm.Small \\
  --unset steps \\
  --sweep 'steps=1..4' --sweep 'steps(3)' --config_file small.yaml
run --exp=lm.Small --config_file=mixed.yaml
run --exp=gone.Away --set steps=3
`,
  '.github/workflows/ci.yml': 'jobs:\n  a:\n    run: npx luthier dump lm.Small --set steps=3\n',
  'small.yaml': 'steps: 3\ntask.train.saveIntervalSteps: 3\n',
  'docs/page.md': `# Steps

Run \`--exp=lm.Small --set steps=9\`; the steps count.

\`\`\`ts experiments/mine.ts
import { Small } from './lm.js';

export class Mine extends Small {
  override steps = 8;
}
\`\`\`

\`\`\`sh
run --exp=mine.Mine --set steps=9
\`\`\`
`,
};

test('a constant of an experiment changes in classes, flags, workflows, config files and pages', () => {
  const folder = experimentProject({
    'experiments/lm.ts': experiment,
    'experiments/other.ts': elsewhere,
    ...scripts,
  });
  const plan = planFieldRename(folder, 'Family.steps', 'numSteps', { alias: true });
  expect(plan.errors).toEqual([]);
  expect(show(plan, 'experiments/lm.ts')).toBe(
    experiment
      .replace('LanguageModel, SingleTask', 'LanguageModel, renamed, SingleTask')
      .replace('with({ steps,', "with({ numSteps: renamed(steps, 'steps'),")
      .replace('const { steps } = this', 'const { numSteps: steps } = this')
      .replaceAll('this.steps', 'this.numSteps')
      .replace('override steps', 'override numSteps'),
  );
  expect(show(plan, 'package.json')).toBe(
    scripts['package.json']
      .replace('Small --set steps', 'Small --set numSteps')
      .replace('"steps', '"numSteps'),
  );
  expect(show(plan, 'run.sh')).toBe(
    scripts['run.sh'].replace('--unset steps', '--unset numSteps').replace("'steps=", "'numSteps="),
  );
  expect(show(plan, '.github/workflows/ci.yml')).toBe(
    scripts['.github/workflows/ci.yml'].replace('steps', 'numSteps'),
  );
  expect(show(plan, 'docs/page.md')).toBe(
    scripts['docs/page.md']
      .replaceAll('--set steps', '--set numSteps')
      .replace('override steps', 'override numSteps'),
  );
  expect(show(plan, 'experiments/other.ts')).toBe(undefined);
  expect(show(plan, 'small.yaml')).toBe(undefined);
  expect(looks(plan)).toEqual([
    'docs/page.md:3: a text or comment names it: Run `--exp=lm.Small --set steps=9`; the steps count.',
    'package.json:6: it is not known whose field this flag sets: "any": "luthier-run --set steps=4"',
    'run.sh:6: a flag of an experiment that is not in the project: run --exp=gone.Away --set steps=3',
    'small.yaml:1: it is not known whose field this key sets: steps: 3',
  ]);
});

const documents = {
  'a.yaml': `# Nested, in place, and as a path.
task:
  model: {$class: Model, headTpl: {dims: 3}}
"task.model.headTpl.dims": 4
`,
  'b.json': `{
 "format": "luthier-config", "version": 1, "root": {"$config": 1},
 "configs": [
  {"class": "Head", "values": {"dims": 3}},
  {"class": "Model", "values": {"headTpl": {"$config": 0}, "other": {"$class": "Other", "dims": 2}}}
 ]
}
`,
  'data.json': '{"dims": 3}\n',
};

test('documents and config files change where their classes say whose field it is', () => {
  const folder = project({ 'src/layer.ts': layer, ...documents });
  const plan = planFieldRename(folder, 'src/layer.ts:Head.dims', 'width', { alias: false });
  expect(show(plan, 'a.yaml')).toBe(documents['a.yaml'].replace('{dims', '{width'));
  expect(show(plan, 'b.json')).toBe(documents['b.json'].replace('"dims": 3', '"width": 3'));
  expect(show(plan, 'data.json')).toBe(undefined);
  expect(looks(plan).filter((look) => !look.startsWith('src'))).toEqual([
    'a.yaml:4: it is not known whose field this key sets: "task.model.headTpl.dims": 4',
  ]);
});

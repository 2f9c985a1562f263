/** @file `luthier rename` and `rename-class` as commands: processes that change files, and what is read afterwards. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Classes } from '../../../src/tools/rename/classes.js';
import { planClassRename, planFieldRename } from '../../../src/tools/rename/renamePlan.js';
import { RenameProject } from '../../../src/tools/rename/renameProject.js';
import { checkClassName, checkFieldName, findClass, findField } from '../../../src/tools/rename/target.js';
import { oneProcess } from '../../command.js';
import { isShort } from '../../faults/campaign.js';
import { typescript } from '../../typescriptEnvironment.js';
import { experimentProject, project, read, write } from './scratch.js';

// It reads files anew for each command.
const luthier = oneProcess('src/tools/commandLine.ts');

/** Runs `luthier` in a folder. */
function run(cwd: string, ...args: string[]): ReturnType<typeof luthier> {
  return luthier(args, cwd);
}

const heads = `import { Configurable, sub } from 'luthier';
import { z } from 'zod';

export class Head extends Configurable.with({ dims: z.int().default(4), scale: z.number().default(1) }) {}
export class Wide extends Head.with({ extra: z.int().default(0) }) {}
export class Model extends Configurable.with({ headTpl: sub(Head) }) {
  describe() {
    const { headTpl } = this.hp;
    return { dims: headTpl.dims, scale: headTpl.scale };
  }
}
`;
const saved = `import { fromJSON, toJSON } from 'luthier';
import { readFileSync } from 'node:fs';
import { Head, Model } from './heads.js';

const notify = (notice: string) => console.log(notice);
const classes = [Head, Model];
const json = readFileSync('saved.json', 'utf8');
console.log(JSON.stringify(toJSON(fromJSON(json, { classes, notify })).configs));
`;
const json = JSON.stringify({
  format: 'luthier-config',
  version: 1,
  root: { $config: 0 },
  configs: [{ class: 'Head', values: { dims: 3 } }],
});

/** Not with SHORT=1. */
const byHand = test.skipIf(isShort);

test('what is written is what was shown; what was saved before is read with a notice', async () => {
  const folder = project({
    'src/heads.ts': heads,
    'src/saved.ts': saved,
    'run.sh': 'run --set task.model.headTpl.dims=3\n',
    'out/experiment.json': `{"config": ${json}}`,
    // Out of the project, as runs are.
    '.gitignore': 'saved.json\nout\nnode_modules\n',
    'saved.json': json,
  });
  execFileSync('git', ['init', '-q'], { cwd: folder });
  const shown = await run(folder, 'rename', 'Head.dims', 'width', '--dry_run');
  expect(shown).toEqual({
    code: 0,
    stderr: '',
    stdout: `src/heads.ts
@@ -1 +1 @@
-import { Configurable, sub } from 'luthier';
+import { Configurable, renamed, sub } from 'luthier';
 import { z } from 'zod';

-export class Head extends Configurable.with({ dims: z.int().default(4), scale: z.number().default(1) }) {}
+export class Head extends Configurable.with({ width: renamed(z.int().default(4), 'dims'), scale: z.number().default(1) }) {}
 export class Wide extends Head.with({ extra: z.int().default(0) }) {}
 export class Model extends Configurable.with({ headTpl: sub(Head) }) {
   describe() {
     const { headTpl } = this.hp;
-    return { dims: headTpl.dims, scale: headTpl.scale };
+    return { dims: headTpl.width, scale: headTpl.scale };
   }
 }

To check by hand:
  run.sh:1: run --set task.model.headTpl.dims=3
  src/heads.ts:9: return { dims: headTpl.width, scale: headTpl.scale };

Head.dims → Head.width: 1 file would change; nothing was written.
`,
  });
  expect(read(folder, 'src/heads.ts')).toBe(heads);
  const written = await run(folder, 'rename', 'Head.dims', 'width', '--format=json');
  expect(written.code).toBe(0);
  expect(JSON.parse(written.stdout)).toMatchObject({
    old: 'Head.dims',
    present: 'Head.width',
    outcome: 'written',
    files: [{ file: 'src/heads.ts' }],
    lookAt: [
      { file: 'run.sh', line: 1 },
      { file: 'src/heads.ts', line: 9 },
    ],
    errors: [],
  });
  expect(read(folder, 'src/heads.ts')).toContain('headTpl.width');
  expect(readdirSync(join(folder, 'src'))).toEqual(['heads.ts', 'saved.ts']);
  const classRun = await run(folder, 'rename-class', 'Head', 'Top');
  expect(classRun.stdout).toContain("+registerAlias('Head', Top);");
  expect(
    read(folder, 'src/heads.ts'),
  ).toBe(`import { Configurable, registerAlias, renamed, sub } from 'luthier';
import { z } from 'zod';

export class Top extends Configurable.with({ width: renamed(z.int().default(4), 'dims'), scale: z.number().default(1) }) {}

// Configs that were saved when it was called Head.
registerAlias('Head', Top);
export class Wide extends Top.with({ extra: z.int().default(0) }) {}
export class Model extends Configurable.with({ headTpl: sub(Top) }) {
  describe() {
    const { headTpl } = this.hp;
    return { dims: headTpl.width, scale: headTpl.scale };
  }
}
`);
  const args = ['--import', typescript, 'src/saved.ts'];
  expect(execFileSync(process.execPath, args, { cwd: folder, encoding: 'utf8' })).toBe(
    `The config document uses the old name 'Head' of Top.
The config document uses the old name 'dims' of Top.width.
[{"class":"Top","values":{"width":3}}]
`,
  );
});

test('new errors of the compiler are named, and nothing is written unless it is forced', async () => {
  const wrong = `${heads}export const given: { dims: number } = Head.config();\n`;
  const folder = project({
    'src/heads.ts': wrong,
    'src/broken.ts': "import './heads.js';\nexport const x: number = 'y';\n",
  });
  const refused = await run(folder, 'rename', 'Head.dims', 'width');
  expect(refused.code).toBe(1);
  expect(refused.stdout).toContain(`New compiler errors:
  src/heads.ts:12: TS2741: Property 'dims' is missing in type`);
  expect(refused.stdout).toContain(
    'and cause 1 new compiler error; nothing was written. --force writes it anyway.\n',
  );
  expect(refused.stdout).not.toContain('broken.ts');
  expect(read(folder, 'src/heads.ts')).toBe(wrong);
  const forced = await run(folder, 'rename', 'Head.dims', 'width', '--force');
  expect(forced.code).toBe(0);
  expect(read(folder, 'src/heads.ts')).toContain('width: renamed(');
});

function messageOf(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    expect((error as Error).name).toBe('UsageError');
    return (error as Error).message;
  }
  throw new Error('nothing was thrown');
}

test('what cannot be named, and names that cannot be given, are errors that say more', () => {
  const experiment = `import { Experiment } from 'luthier';
import { z } from 'zod';

export class Run extends Experiment.with({ steps: z.int().default(1) }) {
  help() {}
}
export class Short extends Run {}
`;
  const old = `import { Configurable, renamed } from 'luthier';
import { z } from 'zod';
export class Aged extends Configurable.with({ a: renamed(z.int(), 'b'), c: z.int() }) {}
export class Head extends Aged.with({ d: z.int() }) {}
`;
  const folder = experimentProject({
    'src/heads.ts': heads,
    'experiments/run.ts': experiment,
    'test/old.ts': old,
  });
  const sources = new RenameProject(folder);
  const classes = new Classes(sources.all);
  const check = (text: string, name: string) =>
    messageOf(() => checkFieldName(sources, classes, findField(sources, classes, text), name));
  expect(check('Hed.dims', 'x')).toBe(
    "No configurable class or experiment of the project is called 'Hed'. Did you mean 'Head'?",
  );
  expect(check('Model.headTp', 'x')).toBe(
    "Model has no hyperparameter 'headTp'. Did you mean 'headTpl'? It has headTpl.",
  );
  expect(check('Run.step', 'x')).toBe("Run has no constant 'step'. Did you mean 'steps'? It has steps.");
  expect(check('Wide.dims', 'x')).toBe(
    "Wide has 'dims' from Head (src/heads.ts:4): rename Head.dims, and it changes here, too.",
  );
  expect(check('Learner.optimizer', 'x')).toMatch(
    /^Learner is declared at .*, which is not a file of this project\.$/,
  );
  expect(check('Head.dims', '__proto__')).toContain('it is not a valid identifier for a field');
  expect(check('Head.dims', 'two words')).toContain("Head.dims cannot be called 'two words'");
  expect(check('Head.dims', 'dims')).toBe('Head.dims has that name already.');
  expect(check('src/heads.ts:Head.dims', 'extra')).toBe(
    "Head.dims cannot be called 'extra': Wide has a field of that name (src/heads.ts:5).",
  );
  expect(check('Run.steps', 'help')).toBe(
    "Run.steps cannot be called 'help': Run has a member of that name (experiments/run.ts:5).",
  );
  expect(check('Run.steps', 'task')).toContain(
    "Run.steps cannot be called 'task': Experiment has a member of that name",
  );
  expect(check('Aged.c', 'b')).toContain(
    "Aged.c cannot be called 'b': Aged.a had that name before (test/old.ts:3)",
  );
  expect(messageOf(() => findClass(sources, classes, 'Head'))).toBe(
    `There are 2 classes called Head: say which.
  src/heads.ts:Head  (src/heads.ts:4)
  test/old.ts:Head  (test/old.ts:4)`,
  );
  expect(messageOf(() => findClass(sources, classes, 'run.Rum'))).toBe(
    "'run.Rum' names no class. Did you mean 'run.Run'?",
  );
  expect(findClass(sources, classes, 'run.Short').name).toBe('Short');
  const model = findClass(sources, classes, 'heads.ts:Model');
  expect(messageOf(() => checkClassName(sources, model, 'Wide'))).toBe(
    "Model cannot be called 'Wide': its file exports something of that name.",
  );
  expect(messageOf(() => planFieldRename(join(folder, 'src'), 'Head.dims', 'x', { alias: true }))).toContain(
    'src has no tsconfig.json',
  );
});

test('an experiment changes in TypeScript; where scripts, pages and texts name it is listed', () => {
  const files = {
    'experiments/lm.ts': `import { Experiment } from 'luthier';
export class Small extends Experiment {}
export class Tiny extends Small {}
`,
    'experiments/index.ts': "export { Small as Little, Tiny } from './lm.js';\n",
    'test/lm.test.ts':
      "import { Small } from '../experiments/lm.js';\nexport const flags = ['--exp=lm.Small', `lm.Small`, Small.name];\n",
    'run.sh': 'run --exp=lm.Small --exp="lm.Smaller"\nnpx luthier dump lm.Smaller\n',
  };
  const plan = planClassRename(experimentProject(files), 'lm.Small', 'Base', { alias: true });
  const after = Object.fromEntries(
    plan.files.map(({ path, text }) => [path.slice(plan.root.length + 1), text]),
  );
  expect(plan).toMatchObject({ old: 'lm.Small', present: 'lm.Base', errors: [] });
  expect(after).toEqual({
    'experiments/lm.ts': files['experiments/lm.ts'].replaceAll('Small', 'Base'),
    'experiments/index.ts': files['experiments/index.ts'].replaceAll('Small', 'Base'),
    'test/lm.test.ts': files['test/lm.test.ts']
      .replace('{ Small }', '{ Base }')
      .replace('Small.name', 'Base.name'),
  });
  expect(plan.mentions.map(({ file, line }) => `${file}:${line}`)).toEqual(['run.sh:1', 'test/lm.test.ts:2']);
});

byHand(
  'there and back again restores the files; aliases of the names between stay, unless none are kept',
  () => {
    const files = {
      'src/heads.ts': heads,
      'src/uses.ts': `import { Head } from './heads.js';
const dims = 3;
export const b = Head.config({ dims });
export const { dims: other } = b;
`,
    };
    const folder = project(files);
    const go = (text: string, name: string, alias: boolean) => {
      const plan = planFieldRename(folder, text, name, { alias });
      expect(plan.errors).toEqual([]);
      for (const { path, text } of plan.files) write(folder, { [path.slice(folder.length + 1)]: text });
    };
    go('Head.dims', 'width', false);
    expect(read(folder, 'src/uses.ts')).toContain('{ width: dims }');
    go('Head.width', 'dims', false);
    expect(read(folder, 'src/heads.ts')).toBe(heads);
    expect(read(folder, 'src/uses.ts')).toBe(files['src/uses.ts'].replace('({ dims })', '({ dims: dims })'));
    go('Head.dims', 'width', true);
    go('Head.width', 'size', true);
    expect(read(folder, 'src/heads.ts')).toContain("size: renamed(z.int().default(4), 'dims', 'width')");
    go('Head.size', 'dims', true);
    expect(read(folder, 'src/heads.ts')).toBe(
      heads
        .replace('Configurable, sub', 'Configurable, renamed, sub')
        .replace('z.int().default(4)', "renamed(z.int().default(4), 'width', 'size')"),
    );
  },
);

byHand("files that the project's formatter formatted are formatted anew, and no others", () => {
  const biome = join(import.meta.dirname, '../../../node_modules/@biomejs');
  const formatted = `import { z } from 'zod';
import { Configurable } from 'luthier';

export class Long extends Configurable.with({ dims: z.int().default(4), more: z.int() }) {}
export class Short extends Configurable.with({ dims: z.int() }) {}
`;
  const folder = project({
    'biome.json': JSON.stringify({
      formatter: { indentStyle: 'space', lineWidth: 100 },
      javascript: { formatter: { quoteStyle: 'single' } },
      assist: { actions: { source: { organizeImports: 'off' } } },
    }),
    'src/long.ts': formatted,
    'src/uses.ts': "import {Long} from './long.js';\nexport const dims = Long.config({ more: 1 }).dims\n",
  });
  symlinkSync(biome, join(folder, 'node_modules/@biomejs'));
  mkdirSync(join(folder, 'node_modules/.bin'));
  symlinkSync('../@biomejs/biome/bin/biome', join(folder, 'node_modules/.bin/biome'));
  const plan = planFieldRename(folder, 'Long.dims', 'numberOfDimensions', { alias: true });
  expect(plan.files.map(({ text }) => text)).toEqual([
    formatted
      .replace('{ Configurable }', '{ Configurable, renamed }')
      .replace(
        '{ dims: z.int().default(4), more: z.int() }',
        "{\n  numberOfDimensions: renamed(z.int().default(4), 'dims'),\n  more: z.int(),\n}",
      ),
    "import {Long} from './long.js';\nexport const dims = Long.config({ more: 1 }).numberOfDimensions\n",
  ]);
});

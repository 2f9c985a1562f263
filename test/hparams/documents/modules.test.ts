/** @file Modules of documents: what is listed, what is loaded, and what a document must not load. */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { temporaryDirectory } from '../../command.js';
import { scratchProject, writeFiles } from '../../tools/scratch.js';
import { typescriptEnvironment } from '../../typescriptEnvironment.js';

/** A file that leaves a trace where it is run. */
const evil =
  "import { writeFileSync } from 'node:fs';\nwriteFileSync(process.env.TRACE!, '');\nexport class Leaf {}\n";

const files = {
  'src/leaf.ts': `
    import { Configurable } from 'luthier/hparams';
    import { z } from 'zod';
    export class Leaf extends Configurable.with({ size: z.any() }) {}
    class Inner extends Configurable.with({}) {}
    export const inner = () => Inner.config();
    export const made = () => { class Local extends Leaf {} return Local.config(); };
  `,
  // Its exports lead to the file by way of another.
  'src/index.ts': "export * from './leaf.js';\n",
  'src/again.ts': "import { Leaf as Base } from './leaf.js';\nexport class Leaf extends Base {}\n",
  'src/values.ts': `
    import { configurable, defineTag, registerConstant, registerContainer } from 'luthier/hparams';
    export const twice = configurable(function twice({ x }) { return 2 * x; }, {});
    export const square = (x: number) => x * x;
    registerConstant('values.square', square);
    export const Size = defineTag('Size', 'Sizes.');
    export class Bag { constructor(readonly items: readonly unknown[]) {} }
    registerContainer(Bag, { flatten: ({ items }) => items, unflatten: (items) => new Bag(items), fromParts: (items) => new Bag(items) });
  `,
  'src/broken.ts': "throw new Error('no data');\n",
  'src/data.json': '{}',
  'src/renamed.ts': `
    import { Configurable, registerAlias } from 'luthier/hparams';
    export class Present extends Configurable.with({}) {}
    registerAlias('Former', Present);
  `,
  '.hidden/evil.ts': evil,
  'out/run/experiment.json': '{}',
  'out/run/code/evil.ts': evil,
  'node_modules/parts/package.json': '{ "name": "parts", "type": "module", "exports": "./dist/index.js" }',
  'node_modules/parts/dist/index.js': "export * from './part.js';\n",
  'node_modules/parts/dist/part.js': `
    import { Configurable } from 'luthier/hparams';
    export class Part extends Configurable.with({}) {}
  `,
};

let project: string;

beforeAll(() => {
  const around = temporaryDirectory();
  project = scratchProject(files);
  writeFiles(around, { 'evil.ts': evil });
  writeFiles(project, { '../evil.ts': evil });
  symlinkSync(join(around, 'evil.ts'), join(project, 'src/link.ts'));
  mkdirSync(join(project, 'sub'));
});

/** What a program that imports `luthier/hparams` prints, as JSON. */
function run<R>(code: string, cwd = project): Promise<R> {
  const file = `program${programs++}.ts`;
  writeFiles(project, { [file]: `import * as hparams from 'luthier/hparams';\n${code}` });
  return new Promise((resolve, reject) => {
    const env = typescriptEnvironment({ TRACE: join(project, 'trace') });
    execFile(process.execPath, [join(project, file)], { cwd, env }, (error, stdout) => {
      if (error === null) resolve(JSON.parse(stdout) as R);
      else reject(error);
    });
  });
}
let programs = 0;

test('classes, functions, constants, tags and containers are listed by the files that have them', async () => {
  const found = await run(`
    import { inner, Leaf, made } from './src/index.js';
    import { Bag, Size, square, twice } from './src/values.js';
    import { Part } from 'parts';
    const leaf = Leaf.config({ size: [square, new Bag([1]), twice.config(), Part.config()] });
    hparams.addTag(leaf, 'size', Size);
    const { modules } = hparams.toJSON(leaf);
    const unloadable = await hparams.unloadableClasses([leaf, inner(), made()]);
    console.log(JSON.stringify({ modules, unloadable, none: hparams.toJSON(leaf, { modules: false }).modules }));`);
  expect(found).toEqual({
    modules: {
      './src/leaf.ts': ['Leaf'],
      './src/values.ts': ['#Size', 'Bag', 'twice', 'values.square'],
      'parts/dist/part.js': ['Part'],
    },
    unloadable: ['Inner, which ./src/leaf.ts does not export', 'Local, which ./src/leaf.ts does not export'],
  });
});

/** Loads the modules of documents one after another: the classes found, or the message. */
const loading = (documents: readonly object[]) => `
  const said = [];
  for (const modules of ${JSON.stringify(documents)}) {
    const document = { format: 'luthier-config', version: 1, root: null, configs: [], modules };
    try {
      const classes = await hparams.loadModules({ name: 'x', config: document }, { file: 'doc.json' });
      said.push(classes.map(({ name }) => name));
    } catch (error) {
      said.push(error.message);
    }
  }`;

test('a document loads files of the project and of its packages, from any folder of the project', async () => {
  const documents = [{ './src/leaf.ts': ['Leaf'], 'parts/dist/part.js': ['Part'] }];
  const code = `${loading(documents)}
    const document = { format: 'luthier-config', version: 1, root: { $config: 0 }, configs: [{ class: 'Leaf', values: { size: 3 } }] };
    const again = await hparams.loadModules({ ...document, modules: { './src/again.ts': ['Leaf'] } });
    const { Leaf } = await import('./src/again.js');
    const [first, meant] = [[], again].map((classes) => {
      try { return hparams.classOf(hparams.fromJSON(document, { classes })) === Leaf; } catch (error) { return error.message; }
    });
    console.log(JSON.stringify({ said, first, meant }));`;
  expect(await run(code, join(project, 'sub'))).toEqual({
    said: [['Leaf', 'Part']],
    first: expect.stringContaining("There are 2 classes called 'Leaf'"),
    meant: true,
  });
});

test('a document loads nothing else, and says why', async () => {
  const foreign = [
    './../evil.ts',
    '../evil.ts',
    './src/../../evil.ts',
    join(project, 'src/leaf.ts'),
    `file://${project}/src/leaf.ts`,
    'data:text/javascript,0',
    'node:fs',
    './src/data.json',
    './.hidden/evil.ts',
    './node_modules/parts/dist/part.js',
    'parts/../../../evil.ts',
    'parts',
  ];
  const documents = [...foreign, './src/link.ts', './out/run/code/evil.ts'].map((each) => ({
    [each]: ['Leaf'],
  }));
  const said = await run<string[]>(`${loading(documents)} console.log(JSON.stringify(said));`);
  const refused = (specifier: string, why: string): string =>
    `modules: '${specifier}' ${why}. A document loads no other modules. (at doc.json)`;
  const plain = 'is no source file of the project, such as ./src/layers.ts, or of a package, by its name';
  expect(said).toEqual([
    ...foreign.map((each) => refused(each, plain)),
    refused('./src/link.ts', `leads out of ${project}`),
    refused('./out/run/code/evil.ts', `lies in the folder of a run, ${project}/out/run`),
  ]);
  expect(existsSync(join(project, 'trace'))).toBe(false);
});

test('names that stay unknown are told with their file and what to do; those found elsewhere are not missed', async () => {
  const documents = [
    { './src/gone.ts': ['Gone'], 'nowhere/x.js': ['src/x.Far'] },
    { './src/leaf.ts': ['Leaf', 'Inner'] },
    { './src/broken.ts': ['Broken'] },
    { './src/gone.ts': ['Leaf'], './src/renamed.ts': ['Former'] },
    { './src/leaf.ts': 'Leaf' },
  ];
  const rest = 'if it has moved, name its file under "modules"; if it was renamed, call registerAlias.';
  expect(await run(`${loading(documents)} console.log(JSON.stringify(said));`)).toEqual([
    `The config document doc.json: 2 problems:
  'Gone' is unknown: the document has it from ./src/gone.ts, which is not in ${project}. Restore it; ${rest} (at doc.json)
  'src/x.Far' is unknown: the document has it from nowhere/x.js, which belongs to a package that is not installed in ${project}. Restore it; ${rest} (at doc.json)`,
    `'Inner' is unknown: the document has it from ./src/leaf.ts, which does not export it. Export it there; ${rest} (at doc.json)`,
    `'Broken' is unknown: the document has it from ./src/broken.ts, which fails to load (no data). Mend the file; ${rest} (at doc.json)`,
    [],
    `modules: expected lists of names by file, such as {"./src/layers.ts": ["MyLinear"]}, got {./src/leaf.ts: 'Leaf'}. (at doc.json)`,
  ]);
});

/** @file `luthier codegen`: files that give the same configs, for every experiment of the project. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { configure, jsonDocument, parseSet } from '../../../src/cli/index.js';
import type { Experiment } from '../../../src/experiment/index.js';
import { print } from '../../../src/hparams/index.js';
import { type ResolvedExperiment, resolveExperiment } from '../../../src/registry/index.js';
import { scanExperiments } from '../../../src/registry/names/discovery.js';
import { codegenCommand } from '../../../src/tools/codegen/index.js';
import { oneProcess, runLuthier } from '../../command.js';
import { typeErrorsIn } from '../../hparams/codegen/program.js';
import { longTest } from '../../longTest.js';
import { ownClasses, scratchProject } from '../scratch.js';

let directory: string;
beforeAll(() => {
  mkdirSync('out/generated', { recursive: true });
  directory = mkdtempSync('out/generated/experiments-');
});
afterAll(() => rmSync(directory, { recursive: true }));

/** The text of the file that the command writes for the experiment. */
async function generated(name: string, sets: readonly string[], file: string): Promise<string> {
  await codegenCommand.run({
    positionals: [name],
    values: { out: file },
    changes: sets.map((text) => parseSet(text)),
    format: 'text',
    warn: (line) => expect.fail(line),
  });
  return readFileSync(file, 'utf8');
}

/** A document of configs alone: the constants that flags set are none of the file's. */
function withoutConstants(document: unknown): unknown {
  const { root, ...others } = document as { root: Record<string, unknown> };
  const { constants, ...configs } = root;
  return { ...others, root: configs };
}

/** What there is to know of the configs. */
function everything(resolved: ResolvedExperiment, sets: readonly string[] = []) {
  const configured = configure(
    resolved,
    sets.map((text) => parseSet(text)),
  );
  return {
    document: withoutConstants(jsonDocument(configured)),
    text: print(configured.configs, { tags: true, types: true }),
  };
}

// These need a text, whose characters are their vocabulary.
const settings: Readonly<Record<string, readonly string[]>> = {
  'lm.ShakespeareChar': ['dataPath=LICENSE'],
  'lm.ShakespeareCharBfloat16': ['dataPath=LICENSE'],
};

longTest(
  'every experiment of the project is written out as a file that gives the same configs and type-checks',
  async () => {
    const texts: string[] = [];
    for (const { name, exportName } of scanExperiments([resolve('experiments')])) {
      const sets = settings[name] ?? [];
      const file = join(directory, `${name}.ts`);
      texts.push(await generated(name, sets, file));
      const exports = (await import(pathToFileURL(resolve(file)).href)) as Record<
        string,
        new () => Experiment
      >;
      const again = { name, file, cls: exports[exportName]!, exports };
      expect(everything(again), name).toEqual(everything(await resolveExperiment(name), sets));
    }
    expect(texts.length).toBeGreaterThan(50);
    expect(typeErrorsIn('experiments', texts)).toEqual([]);
  },
);

describe('luthier codegen', () => {
  const fixtures = oneProcess('src/tools/commandLine.ts');

  longTest('imports from the library by its name, and classes of the project from their files', async () => {
    const cwd = scratchProject(ownClasses);
    const luthier = oneProcess('src/tools/commandLine.ts', cwd);
    const args = ['codegen', 'own.Own', '--set', 'steps=3'];
    const made = await runLuthier([...args, '--out=experiments/flat/made.ts', '--name=Made'], cwd);
    expect(made).toMatchObject({ code: 0, stderr: '' });
    expect(made.stdout).toMatch(/^Wrote experiments\/flat\/made\.ts, \d\.\d\d kB\.\n$/);
    const text = readFileSync(join(cwd, 'experiments/flat/made.ts'), 'utf8');
    expect(text).toMatch(
      /^\/\*\* @file The configs of own\.Own with --set steps=3, written out by luthier codegen\. \*\/\n/,
    );
    expect(text).toContain('\nimport { Adam, DotProductAttention, Experiment, Learner, SingleTask, ');
    expect(text).toContain(
      "} from 'luthier/layers';\nimport { OwnModel } from '../own.js';\nimport { OwnTokenizer } from '../parts.js';\n",
    );
    expect(text).toContain(
      '/** Reads with what the project brings. It\'s "special": `*\\/` ends no comment. */\nexport class Made extends Experiment {\n',
    );
    // What is decoded is the very dataset that is read, which two methods return.
    expect(text).toContain('  readonly #configs = makeConfigs();\n');
    const dumps = await Promise.all([
      luthier(['dump', 'flat.made.Made', '--format=json']),
      luthier(['dump', 'own.Own', '--set', 'steps=3', '--format=json']),
    ]);
    const [again, before] = dumps.map(({ stdout }) => JSON.parse(stdout) as { root: unknown });
    expect(before!.root).toMatchObject({ constants: { steps: 3 } });
    expect(again).toEqual(withoutConstants(before));
    expect(readdirSync(join(cwd, 'experiments/flat'))).toEqual(['made.ts']);
  });

  it('prints a file for the place of the experiment', async () => {
    const { code, stdout, stderr } = await fixtures(['codegen', 'tiny.Tiny', '--style=statements']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain("} from '../../../../src/index.js';\n");
    expect(stdout).toContain(
      '/** Learns a few bytes of a counting text, with dropout. */\nexport class Tiny extends Experiment {',
    );
    expect(stdout).toContain('    train.numTrainSteps = 12;\n');
  });

  longTest('says which class cannot be imported', async () => {
    const cwd = scratchProject({
      ...ownClasses,
      'experiments/own.ts': ownClasses['experiments/own.ts'].replace(
        'export class OwnModel',
        'class OwnModel',
      ),
    });
    const { code, stderr } = await runLuthier(['codegen', 'own.Own', '--out=made.ts'], cwd);
    expect(code).toBe(2);
    expect(stderr).toMatch(
      /the class OwnModel cannot be imported: the modules given \(luthier, .*\) do not export it\./,
    );
    expect(existsSync(join(cwd, 'made.ts'))).toBe(false);
  });

  it('does not write over what the experiment is made of, nor where it cannot', async () => {
    const cwd = scratchProject(ownClasses);
    const luthier = oneProcess('src/tools/commandLine.ts', cwd);
    const [own, folder] = await Promise.all([
      luthier(['codegen', 'own.Own', '--out=experiments/parts.ts']),
      luthier(['codegen', 'own.Own', '--out=experiments']),
    ]);
    expect(own).toMatchObject({
      code: 2,
      stderr: '--out=experiments/parts.ts: own.Own is declared in this file; give another one.\n',
    });
    expect(folder.code).toBe(2);
    expect(folder.stderr).toMatch(/^--out=experiments: cannot be written: EISDIR: /);
    expect(readFileSync(join(cwd, 'experiments/parts.ts'), 'utf8')).toBe(ownClasses['experiments/parts.ts']);
    expect(readdirSync(cwd).filter((name) => name.endsWith('.tmp'))).toEqual([]);
  });

  it('refuses names that are none', async () => {
    const { code, stderr } = await fixtures(['codegen', 'tiny.Tiny', '--name=class']);
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: "'class' cannot be the name of a class.\n",
    });
  });

  it('has a form for scripts', async () => {
    const { stdout } = await fixtures([
      'codegen',
      'Tiny',
      '--format=json',
      '--history',
      '--max_complexity=4',
    ]);
    const { experiment, code } = JSON.parse(stdout) as { experiment: string; code: string };
    expect(experiment).toBe('tiny.Tiny');
    expect(code).toMatch(/\/\/ experiments\/tiny\.ts:\d+\n/);
    // Without --max_complexity there is one.
    expect(code.match(/^ +const /gm)!.length).toBeGreaterThan(10);
  });
});

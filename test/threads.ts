/**
 * @file Modules of the threads that src starts, translated together: a thread that loads 250 files by tsx takes a second of
 * CPU to start. Processes of tests hand the file to their threads (see threadModules.cjs).
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, transform } from 'esbuild';
import { globSync } from 'tinyglobby';
import type { TestProject } from 'vitest/node';
import { common, digestOf, joined, kept, place, source, sourceTexts, textOf } from './rooms.js';

/** Modules by their paths: CommonJS, and the paths of those that they import by other names. */
export type ThreadModules = Readonly<
  Record<string, { readonly code: string; readonly imports: Readonly<Record<string, string>> }>
>;

const preload = fileURLToPath(new URL('./threadModules.cjs', import.meta.url));

/** All that the workers import; of packages, those that nobody shares. */
async function translate(): Promise<ThreadModules> {
  const { metafile } = await build({
    ...common,
    entryPoints: globSync('{checkpoints,inputs}/**/*Worker.ts', { cwd: source, absolute: true }),
    outdir: source,
    absWorkingDir: source,
    bundle: true,
    write: false,
    metafile: true,
    plugins: [
      {
        name: 'shared packages',
        setup({ onResolve }) {
          onResolve({ filter: /^[^./]/ }, ({ path, kind }) =>
            kind === 'entry-point' || joined.test(path) ? undefined : { external: true },
          );
        },
      },
    ],
  });
  const modules = Object.entries(metafile.inputs).map(async ([name, { imports }]) => {
    const path = join(source, name);
    const { code } = await transform(textOf(path), {
      ...common,
      format: 'cjs',
      loader: path.endsWith('.ts') ? 'ts' : 'js',
      // Required, so that they share the instances of those that are.
      supported: { 'dynamic-import': false },
    });
    const found = imports.flatMap(({ original, external, path: target }) =>
      original === undefined || external ? [] : [[original, join(source, target)] as const],
    );
    return [path, { code, imports: Object.fromEntries(found) }] as const;
  });
  return Object.fromEntries(await Promise.all(modules));
}

/** Once before the first test, and before each run of those that are watched. */
export default async function provideThreads(project: TestProject): Promise<void> {
  const provide = async (): Promise<void> => {
    const own = readFileSync(fileURLToPath(import.meta.url), 'utf8');
    const digest = digestOf(false, [...sourceTexts(), ['threads', own]]);
    const file = join(kept, 'whole', `${digest}.threads.json`);
    if (!existsSync(file)) {
      const text = JSON.stringify(await translate());
      place(file, (part) => writeFileSync(part, text));
    }
    process.env.LUTHIER_TEST_THREADS = file;
  };
  process.env.NODE_OPTIONS = `${process.env.NODE_OPTIONS ?? ''} --require ${JSON.stringify(preload)}`.trim();
  project.onTestsRerun(provide);
  await provide();
}

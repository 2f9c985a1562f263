/**
 * @file Runs what the pages of the guide show. In a page,
 *
 * - a `ts` block with imports is a program, which stands where experiments stand; one without is an excerpt, not run;
 * - a `ts continued` block goes on with the program before it;
 * - a `ts experiments/mine.ts` block, or a `yaml ours.yaml` one, is a file, there for everything that follows it in the page;
 * - an `sh` block is run where the page has such files;
 * - a `text` block right after any of these is what it prints.
 */
import { execFile } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { publishedModels } from '../publishedModels.js';
import { typescriptEnvironment } from '../typescriptEnvironment.js';

export const root = fileURLToPath(new URL('../../', import.meta.url));

/** One thing that a page shows and that can be run, with the output that stands after it. */
interface Step {
  readonly kind: 'program' | 'file' | 'command';
  /** Of a file: where it stands. */
  readonly path: string;
  /** Parts of a program, one for each block; else a single part. */
  readonly parts: { readonly code: string; readonly shown: string | undefined }[];
}

/** What a part of a page printed, beside what the page says it prints. */
export interface Printed {
  readonly kind: Step['kind'];
  readonly code: string;
  readonly shown: string | undefined;
  readonly printed: string;
  /** Exit code of the program or command. */
  readonly status: number;
}

/** The steps of a page in order. */
function stepsOf(page: string): Step[] {
  const blocks = [...page.matchAll(/^```(\w*) ?(.*)\n([\s\S]*?)^```$/gm)];
  const hasFiles = blocks.some(([, , info]) => /\.(ts|yaml)$/.test(info!));
  const steps: Step[] = [];
  for (const [i, block] of blocks.entries()) {
    const [whole, language, info = '', code = ''] = block;
    const next = blocks[i + 1];
    const between = next && page.slice(block.index + whole.length, next.index);
    const shown = next?.[1] === 'text' && between?.trim() === '' ? next[3] : undefined;
    const part = { code, shown };
    if (language === 'sh' && hasFiles) steps.push({ kind: 'command', path: '', parts: [part] });
    else if (language === 'yaml' && info !== '') steps.push({ kind: 'file', path: info, parts: [part] });
    else if (language !== 'ts') continue;
    else if (info === 'continued') steps.at(-1)!.parts.push(part);
    else if (info !== '') steps.push({ kind: 'file', path: info, parts: [part] });
    else if (/^import /m.test(code)) steps.push({ kind: 'program', path: '', parts: [part] });
  }
  return steps;
}

/** A directory that looks like the project to the programs and commands of one page. */
function workingDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'luthier-guide-'));
  // A copy: a page may write over an experiment.
  cpSync(join(root, 'experiments'), join(directory, 'experiments'), { recursive: true });
  for (const name of ['src', 'docs', 'node_modules', 'package.json']) {
    symlinkSync(join(root, name), join(directory, name));
  }
  if (existsSync(publishedModels)) symlinkSync(publishedModels, join(directory, 'models'));
  return directory;
}

/** `npx tsx` and `npx luthier`, without npx's own search; node runs TypeScript in this environment. */
const npx = `npx() {
  local name=$1; shift
  case $name in
    tsx) '${process.execPath}' "$@" ;;
    luthier) '${process.execPath}' src/tools/luthier.js "$@" ;;
    *) command npx "$name" "$@" ;;
  esac
}`;
const separator = '-- next block of the page --';

/** Runs a shell command; what it prints includes its errors. */
function run(
  command: string,
  cwd: string,
  env: NodeJS.ProcessEnv,
): Promise<{ output: string; status: number }> {
  return new Promise((resolve) => {
    execFile('bash', ['-c', `${npx}\n{ ${command}\n} 2>&1`], { cwd, env }, (error, output) =>
      resolve({ output, status: error ? Number(error.code ?? 1) : 0 }),
    );
  });
}

/** The steps, with programs that stand one after another as one: to load Luthier takes longer than most of them. */
function inOneProcess(steps: readonly Step[]): Step[][] {
  const groups: Step[][] = [];
  for (const step of steps) {
    const last = groups.at(-1) ?? [];
    if (step.kind === 'program' && last[0]?.kind === 'program') last.push(step);
    else groups.push([step]);
  }
  return groups;
}

/** A module that runs programs in turn, each from the same file. */
function oneAfterAnother(file: string, programs: readonly string[]): string {
  return `import { writeFileSync } from 'node:fs';
for (const [i, code] of ${JSON.stringify(programs)}.entries()) {
  if (i > 0) console.log('${separator}');
  writeFileSync('${file}', code);
  await import('./${file}?' + i);
}
`;
}

/**
 * Runs a page of the project, such as docs/guide/configs.md, from its first block to its last.
 *
 * @param environment of pages that import no files inside of rooms
 */
export async function runPage(path: string, environment = typescriptEnvironment): Promise<Printed[]> {
  const directory = workingDirectory();
  const results: Printed[] = [];
  const text = readFileSync(join(root, path), 'utf8');
  const looksInside = /from '\.\.\/src\/\w+\/(?!index\.js)/.test(text);
  const env = (looksInside ? typescriptEnvironment : environment)({ NO_COLOR: '1' });
  const program = `experiments/${basename(path, '.md')}.ts`;
  for (const group of inOneProcess(stepsOf(text))) {
    const { kind, path: file } = group[0]!;
    const programs = group.map(({ parts }) =>
      parts.map(({ code }) => code).join(`\nconsole.log('${separator}');\n`),
    );
    if (kind === 'file') {
      mkdirSync(dirname(join(directory, file)), { recursive: true });
      writeFileSync(join(directory, file), programs[0]!);
      continue;
    }
    if (kind === 'program')
      writeFileSync(join(directory, 'programs.mjs'), oneAfterAnother(program, programs));
    const { output, status } = await run(
      kind === 'program' ? 'npx tsx programs.mjs' : programs[0]!,
      directory,
      env,
    );
    const printed = output.split(`${separator}\n`);
    for (const [i, part] of group.flatMap(({ parts }) => parts).entries())
      results.push({ kind, ...part, printed: printed[i] ?? '', status });
  }
  return results;
}

/**
 * Has the compiler check the programs and files of pages: they say what compiles and, by `@ts-expect-error`, what does
 * not. Gives its diagnostics, none where all is well.
 */
export function compilePages(paths: readonly string[]): string {
  const directory = mkdtempSync(join(tmpdir(), 'luthier-guide-types-'));
  for (const name of ['src', 'experiments', 'node_modules', 'package.json', 'tsconfig.json']) {
    symlinkSync(join(root, name), join(directory, name));
  }
  // Pages write files of the same names, so each has a folder in the place of `experiments`, beside the one `src`. What
  // is not there is looked for in `experiments`: a copy for each page would be compiled for each, too.
  const include = paths.map((path) => path.replace(/\W/g, '-'));
  for (const [i, path] of paths.entries()) {
    const folder = join(directory, include[i]!);
    mkdirSync(folder);
    for (const [number, step] of stepsOf(readFileSync(join(root, path), 'utf8')).entries()) {
      if (step.kind === 'command') continue;
      const target = step.kind === 'file' ? relative('experiments', step.path) : `program${number}.ts`;
      mkdirSync(dirname(join(folder, target)), { recursive: true });
      writeFileSync(join(folder, target), step.parts.map((part) => part.code).join('\n'));
    }
  }
  const compilerOptions = {
    plugins: [],
    typeRoots: [join(root, 'node_modules/@types')],
    rootDirs: ['experiments', ...include],
  };
  const config = { extends: './tsconfig.json', compilerOptions, include };
  const { options, fileNames, errors } = ts.parseJsonConfigFileContent(config, ts.sys, directory);
  const program = ts.createProgram(fileNames, options);
  // Not src, which imports bring in: that is checked with the project.
  const pages = fileNames.map((name) => program.getSourceFile(name)!);
  const found = [
    ...errors,
    ...program.getOptionsDiagnostics(),
    ...program.getGlobalDiagnostics(),
    ...pages.flatMap((page) => program.getSyntacticDiagnostics(page)),
    ...pages.flatMap((page) => program.getSemanticDiagnostics(page)),
  ];
  return ts.formatDiagnostics(found, {
    getCanonicalFileName: (name) => name,
    getCurrentDirectory: () => directory,
    getNewLine: () => '\n',
  });
}

/** Text with every figure as `#`, without the time left and waits of a busy machine: losses and speeds differ. */
function withoutFigures(text: string): string {
  return text
    .replace(/ {2}[\dhms ]+ left$/gm, '')
    .replace(/ {2}input wait \d+%/g, '')
    .replace(/-?\d+(\.\d+)?(e[+-]?\d+)?k?/g, '#')
    .replace(/[^\S\n]+/g, ' ');
}

/** The lines of `shown` that `printed` does not have, or not in this order; a line of `…` stands for any. */
export function missingLines(shown: string, printed: string): string[] {
  const lines = withoutFigures(printed).split('\n');
  let at = 0;
  return shown.split('\n').filter((line) => {
    const wanted = withoutFigures(line).trimEnd();
    if (wanted === '' || wanted === '…') return false;
    const found = lines.findIndex((other, i) => i >= at && other.trimEnd() === wanted);
    if (found >= 0) at = found + 1;
    return found < 0;
  });
}

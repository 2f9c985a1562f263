/** @file Copy of the repository in which mutants are planted: what is killed half way leaves no bug in the tree itself. */
import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { spawnGroup, stopGroups } from '../../src/system/groups.js';
import type { Change } from './slips.js';

/** The end of a test run. `failure` is the failed file, with the test if one had begun. */
export interface Answer {
  readonly failure?: { readonly file: string; readonly test: string };
  /** The file that was under way at the limit, and for how long, in seconds. */
  readonly unfinished?: { readonly file: string; readonly seconds: number };
  /** How long each file took that passed, in seconds. */
  readonly passed: ReadonlyMap<string, number>;
}

function run(command: string, args: readonly string[], cwd: string): string {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8', maxBuffer: 2 ** 28 });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} failed in ${cwd}:\n${stdout}${stderr}`);
  return stdout;
}

export class Workplace {
  private constructor(
    private readonly root: string,
    readonly folder: string,
  ) {}

  /** Copies the files that git knows or would know. */
  static make(root: string, folder: string): Workplace {
    rmSync(folder, { recursive: true, force: true });
    const files = run('git', ['ls-files', '-coz', '--exclude-standard'], root).split('\0');
    for (const file of files) {
      if (file === '' || !existsSync(join(root, file))) continue;
      mkdirSync(join(folder, dirname(file)), { recursive: true });
      copyFileSync(join(root, file), join(folder, file));
    }
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'), 'junction');
    // Some tests ask git about the tree.
    const author = ['-c', 'user.name=mutants', '-c', 'user.email=mutants@localhost'];
    run('git', ['init', '-q'], folder);
    run('git', ['add', '-A'], folder);
    run('git', [...author, 'commit', '-q', '-m', 'As it is'], folder);
    return new Workplace(root, folder);
  }

  /** Writes the mutant, lets `asked` look at it, and writes the file as it was. */
  async withMutant<T>(
    { file, start, end, replacement }: Change & { file: string },
    asked: () => Promise<T>,
  ): Promise<T> {
    const path = join(this.folder, file);
    const text = readFileSync(path, 'utf8');
    writeFileSync(path, text.slice(0, start) + replacement + text.slice(end));
    try {
      return await asked();
    } finally {
      writeFileSync(path, text);
      // Compiled programs are found by their source; a mutant of the code that finds them may have mixed them up.
      if (/^src\/(compiler\/native\/(toolchain|stored)|files|system)\//.test(file))
        rmSync(join(this.folder, 'out/cache'), { recursive: true, force: true });
    }
  }

  /** Runs test files in this order until one fails or the time is over. */
  async ask(files: readonly string[], seconds: number): Promise<Answer> {
    rmSync(join(this.folder, 'out/rooms/whole'), { recursive: true, force: true });
    const vitest = join(this.root, 'node_modules/vitest/vitest.mjs');
    const temporary = mkdtempSync(join(tmpdir(), 'mutants-'));
    const { child, kill } = spawnGroup(
      process.execPath,
      [vitest, 'run', '--config', 'test/mutants/vitest.config.ts', ...files],
      {
        cwd: this.folder,
        env: { ...process.env, TESTS: files.join(','), SEED: process.env.SEED ?? '1', TMPDIR: temporary },
        stdio: ['ignore', 'pipe', 'ignore'],
      },
    );
    const passed = new Map<string, number>();
    let [failure, current, since]: [Answer['failure'], string, number] = [undefined, '', performance.now()];
    createInterface({ input: child.stdout! }).on('line', (line) => {
      const [, event, file, test] = /^(started|passed|failed) (\S+?\.ts)(?:: (.*))?$/.exec(line) ?? [];
      if (event === 'started') [current, since] = [file!, performance.now()];
      if (event === 'passed') passed.set(file!, (performance.now() - since) / 1000);
      if (event === 'failed') failure ??= { file: file!, test: test ?? 'loading the file' };
      if (failure) kill();
    });
    let late = false;
    const limit = setTimeout(() => {
      late = true;
      kill();
    }, seconds * 1000);
    const code = await new Promise<number | null>((resolve) => child.on('close', resolve));
    clearTimeout(limit);
    // Processes that the tests have left behind.
    kill();
    rmSync(temporary, { recursive: true, force: true });
    if (failure) return { failure, passed };
    if (late) return { unfinished: { file: current, seconds: (performance.now() - since) / 1000 }, passed };
    return code === 0 ? { passed } : { failure: { file: current, test: 'the run itself' }, passed };
  }

  /** Whether the types agree. */
  async typesAgree(): Promise<boolean> {
    const compiler = join(this.root, 'node_modules/typescript-7/bin/tsc');
    const args = [compiler, '--noEmit', '--incremental', '--tsBuildInfoFile', 'out/types.json'];
    const { child } = spawnGroup(process.execPath, args, { cwd: this.folder, stdio: 'ignore' });
    return new Promise((resolve) => child.on('close', (code) => resolve(code === 0)));
  }

  /** Ends the processes of all workplaces first: they would write to the folder while it goes. */
  remove(): void {
    stopGroups();
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

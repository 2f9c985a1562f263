/** @file The TypeScript project of a rename: its sources and its other text files. */
import { execFileSync } from 'node:child_process';
import { existsSync, lstatSync, readFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { globSync } from 'tinyglobby';
import { type Node, Project, type SourceFile } from 'ts-morph';
import { readSourceFile, tooDeep } from '../../registry/names/index.js';
import { UsageError } from '../../system/text/index.js';

/** Larger files are data. */
const largest = 2 ** 20;
/** Packages, lockfiles, and files that `luthier snapshot` regenerates. */
const ignored =
  /(^|\/)(node_modules|__snapshots__|package-lock\.json|npm-shrinkwrap\.json)(\/|$)|\.[cm]?[jt]sx?$/;

/** The sources and texts of the project in a folder. */
export class RenameProject {
  /** The project's own source files. */
  readonly sources: readonly SourceFile[];

  /** @throws UsageError where the folder has no tsconfig.json. */
  constructor(readonly root: string) {
    const tsConfigFilePath = join(root, 'tsconfig.json');
    if (!existsSync(tsConfigFilePath)) {
      throw new UsageError(
        `${root} has no tsconfig.json: renaming works in the folder of a TypeScript project.`,
      );
    }
    const project = this.open(tsConfigFilePath);
    this.all = project.getSourceFiles().filter((file) => !file.isDeclarationFile());
    this.sources = this.all.filter((file) => this.isOwn(file));
  }

  /** @throws UsageError where TypeScript cannot read a file. */
  private open(tsConfigFilePath: string): Project {
    try {
      return new Project({ tsConfigFilePath });
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      const files = globSync('**/*.{ts,mts,cts,tsx}', {
        cwd: this.root,
        ignore: '**/node_modules/**',
        followSymbolicLinks: false,
      });
      const deep = files.filter((file) => readSourceFile(join(this.root, file)).problem?.message === tooDeep);
      const where = deep.length === 0 ? 'a file that tsconfig.json includes' : deep.join(', ');
      throw new UsageError(
        `TypeScript cannot read ${where}: nested too deeply. Leave it out in tsconfig.json.`,
      );
    }
  }

  /** The source files, those of packages that are TypeScript among them. */
  readonly all: readonly SourceFile[];

  isOwn(file: SourceFile): boolean {
    const path = file.getFilePath();
    return path.startsWith(`${this.root.split(sep).join('/')}/`) && !path.includes('/node_modules/');
  }

  /** A file as messages name it. */
  show(file: string): string {
    return relative(this.root, file).split(sep).join('/');
  }

  /** `src/layers/linears.ts:12` for where a node begins. */
  place(node: Node): string {
    return `${this.show(node.getSourceFile().getFilePath())}:${node.getStartLineNumber()}`;
  }

  /** Text files other than TypeScript, by absolute path: those known to git, without binary and very large ones. */
  *texts(): Generator<[file: string, text: string]> {
    for (const name of this.listed().sort()) {
      const file = join(this.root, name);
      const stat = lstatSync(file, { throwIfNoEntry: false });
      // The target of a link has a name of its own, if it is the project's.
      if (ignored.test(name) || stat === undefined || !stat.isFile() || stat.size > largest) continue;
      const text = readFileSync(file, 'utf8');
      if (!text.includes('\0')) yield [file, text];
    }
  }

  private listed(): string[] {
    try {
      const flags = ['ls-files', '-z', '--cached', '--others', '--exclude-standard'];
      const output = execFileSync('git', flags, {
        cwd: this.root,
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
        maxBuffer: 2 ** 28,
      });
      return [...new Set(output.split('\0').filter((name) => name !== ''))];
    } catch {
      const ignore = ['**/node_modules/**', '**/.git/**', 'out/**'];
      return globSync('**', { cwd: this.root, dot: true, ignore, followSymbolicLinks: false });
    }
  }
}

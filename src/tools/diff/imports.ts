/** @file Which of a project's files a file imports, directly and through others, by reading their text. */
import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { builtinModules, createRequire } from 'node:module';
import { dirname, extname, join, resolve } from 'node:path';
import { extensions } from '../../registry/directories.js';

/**
 * Statements that load a module when they are run: `import` and `export … from`, but those of types, and `import()` of a
 * text. Comments and strings may look alike: then a file too many counts as imported, which does no harm.
 */
const loading =
  /(?:^|[;}])\s*(?:import|export)\s+(?!type\b(?!\s*(?:,|from\b)))(?:[^'"`;]*?\bfrom\s*)?(['"])([^'"\n]+)\1|\bimport\s*\(\s*(['"])([^'"\n]+)\3/gm;

/** What the text of a module imports, as it is written. */
export function importsIn(text: string): string[] {
  return [...new Set([...text.matchAll(loading)].map((match) => (match[2] ?? match[4])!))];
}

const builtin = new Set(builtinModules);

/** The imports among the files below `root`. */
export class ImportGraph {
  private readonly found = new Map<string, readonly string[]>();
  private readonly targets = new Map<string, readonly string[]>();
  private readonly packages = new Map<string, string | undefined>();

  /** `twin` gives a file with the same text in another graph, which then need not be read again. */
  constructor(
    private readonly root: string,
    private readonly twin?: (file: string) => readonly string[] | undefined,
  ) {}

  /** All that loading `file` loads of the project, itself included. */
  closureOf(file: string): Set<string> {
    const seen = new Set([file]);
    for (const each of seen) for (const target of this.targetsOf(each)) seen.add(target);
    return seen;
  }

  /** Those of `files` that load one of `targets`, directly or through others, or are one. */
  loadersOf(targets: Iterable<string>, files: Iterable<string>): Set<string> {
    const importers = new Map<string, string[]>();
    for (const file of files) {
      for (const target of this.targetsOf(file)) {
        const known = importers.get(target);
        if (known === undefined) importers.set(target, [file]);
        else known.push(file);
      }
    }
    const seen = new Set(targets);
    for (const each of seen) for (const importer of importers.get(each) ?? []) seen.add(importer);
    return seen;
  }

  /** The files that a file imports itself. */
  private targetsOf(file: string): readonly string[] {
    let targets = this.targets.get(file);
    if (targets === undefined) {
      const folder = dirname(file);
      targets = this.specifiersOf(file).flatMap((specifier) => {
        const isFile = specifier.startsWith('.');
        const target = isFile ? fileAt(resolve(folder, specifier)) : this.packageFile(specifier);
        return target === undefined ? [] : [target];
      });
      this.targets.set(file, targets);
    }
    return targets;
  }

  /** What the file imports, as it is written there. */
  specifiersOf(file: string): readonly string[] {
    let known = this.found.get(file);
    if (known === undefined) this.found.set(file, (known = this.twin?.(file) ?? read(file)));
    return known;
  }

  /** The file of a package that stands in the project, as workspaces do, and a package that imports itself by name. */
  private packageFile(specifier: string): string | undefined {
    if (specifier.startsWith('node:') || builtin.has(specifier)) return undefined;
    if (!this.packages.has(specifier)) this.packages.set(specifier, this.resolvePackage(specifier));
    return this.packages.get(specifier);
  }

  private resolvePackage(specifier: string): string | undefined {
    try {
      const file = realpathSync(createRequire(join(this.root, 'package.json')).resolve(specifier));
      return file.startsWith(`${this.root}/`) && !file.includes('/node_modules/') ? file : undefined;
    } catch {
      return undefined;
    }
  }
}

function read(file: string): string[] {
  return (extensions as readonly string[]).includes(extname(file))
    ? importsIn(readFileSync(file, 'utf8'))
    : [];
}

/** The source file that an import of `path` loads: lm.ts for ./lm.js where that is what stands there. */
function fileAt(path: string): string | undefined {
  const stem = path.replace(/\.[cm]?js$/, '');
  return [path, ...extensions.map((extension) => stem + extension)].find(
    (each) => existsSync(each) && statSync(each).isFile(),
  );
}

/** @file Specifiers of modules that documents carry: paths within the project, and files of packages by the package's name. */
import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

const modules = 'node_modules';
const source = /\.[cm]?[jt]sx?$/;
const packagePath = /^(@[\w.~-]+\/)?[\w.~-]+\/./;

/** Each folder above a file or folder, the nearest first. */
function* foldersAbove(path: string): Generator<string> {
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    yield folder;
    if (folder === dirname(folder)) return;
  }
}

function isWithin(path: string, folder: string): boolean {
  return path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}

function packageNameIn(folder: string): string | undefined {
  try {
    const { name } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { name?: unknown };
    return typeof name === 'string' && packagePath.test(`${name}/x`) ? name : undefined;
  } catch {
    return undefined;
  }
}

/** The project of a folder: the nearest folder with a package.json; the folder itself where none has. */
export function projectOf(folder: string): string {
  const real = realpathSync(folder);
  const found = [...foldersAbove(join(real, 'x'))].find((each) => existsSync(join(each, 'package.json')));
  return found ?? real;
}

/**
 * The specifier of a file in documents: `./src/layers.ts` from the folder of the project, `some-package/dist/layers.js`
 * for a file of a package, however it lies in node_modules; undefined for a file that belongs to neither.
 */
export function specifierOf(file: string, project: string): string | undefined {
  const inside = isWithin(file, project) ? file.slice(project.length).split(sep).filter(Boolean) : [];
  if (inside.length > 0 && !inside.includes(modules)) return `./${inside.join('/')}`;
  for (const folder of foldersAbove(file)) {
    const name = packageNameIn(folder);
    if (name !== undefined) return `${name}/${relative(folder, file).replaceAll(sep, '/')}`;
  }
  return undefined;
}

const own = fileURLToPath(new URL('../../../', import.meta.url)).replace(/[\\/]$/, '');

/** The folder of a package as modules of the project import it; that of this library anywhere. */
function packageFolder(name: string, project: string): string | undefined {
  const folders = [...foldersAbove(join(project, 'x'))].map((each) => join(each, modules, name));
  const found = folders.find((each) => existsSync(each)) ?? (packageNameIn(own) === name ? own : undefined);
  return found && realpathSync(found);
}

/** The file of a specifier, or the reason for its absence; `isForeign` marks files that no document may name. */
export type LocatedModule =
  | { readonly file: string }
  | { readonly problem: string; readonly isForeign: boolean };

/**
 * The source file of a specifier in a project. Symbolic links are resolved first: a file outside of the project or
 * package is refused, and so is one in a run's folder or a hidden one.
 */
export function locateModule(specifier: string, project: string): LocatedModule {
  const isPath = specifier.startsWith('./');
  const parts = specifier.split('/').slice(isPath ? 1 : 0);
  const isPlain =
    parts.every((part) => part !== '' && !part.startsWith('.') && part !== modules && !/[\\\0]/.test(part)) &&
    source.test(specifier) &&
    (isPath || packagePath.test(specifier));
  const foreign = (why: string): LocatedModule => ({ problem: why, isForeign: true });
  if (!isPlain)
    return foreign('is no source file of the project, such as ./src/layers.ts, or of a package, by its name');
  const head = parts.splice(0, isPath ? 0 : specifier.startsWith('@') ? 2 : 1).join('/');
  const folder = isPath ? project : packageFolder(head, project);
  if (folder === undefined)
    return { problem: `belongs to a package that is not installed in ${project}`, isForeign: false };
  const path = join(folder, ...parts);
  if (!(statSync(path, { throwIfNoEntry: false })?.isFile() ?? false))
    return { problem: `is not in ${folder}`, isForeign: false };
  const file = realpathSync(path);
  if (!isWithin(file, folder)) return foreign(`leads out of ${folder}`);
  const run = isPath
    ? [...foldersAbove(file)].find(
        (each) => isWithin(each, folder) && existsSync(join(each, 'experiment.json')),
      )
    : undefined;
  return run === undefined ? { file } : foreign(`lies in the folder of a run, ${run}`);
}

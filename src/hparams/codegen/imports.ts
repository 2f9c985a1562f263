/** @file Names and imports of generated code. */

import { didYouMean } from '../../system/text/index.js';
import { Configurable } from '../configurable.js';
import { derive } from '../editing/derive.js';
import { ConfigError } from '../errors.js';
import type { ClassInfo } from '../fields/fields.js';
import { getOrMake } from '../nodes/containers.js';
import type { NodeKind } from '../nodes/node.js';
import { formatLink, formatSegment, type PathLink } from '../walking/paths.js';
import { isIdentifier, namesInBraces, stringText } from './code.js';

const words =
  'break case catch class const continue debugger default delete do else enum export extends false finally for ' +
  'function if import in instanceof new null return super switch this throw true try typeof var void while with ' +
  'as async await get implements interface let of package private protected public set static type yield ' +
  'abstract any boolean declare module namespace never number object string symbol undefined unknown arguments eval';

/** The names of one module. */
export class Names {
  private readonly taken = new Set([...words.split(' '), ...Object.getOwnPropertyNames(globalThis)]);
  private readonly counts = new Map<string, number>();

  /** Whether `name` can be taken as it is. */
  isFree(name: string): boolean {
    return !this.taken.has(name);
  }

  /** Takes the first of `candidates` that is free, or the first of all with a number behind it. */
  take(candidates: readonly string[]): string {
    const free = candidates.find((name) => this.isFree(name)) ?? this.numbered(candidates[0]!);
    this.taken.add(free);
    return free;
  }

  private numbered(name: string): string {
    // Counting on from the last number keeps thousands of equal names linear.
    let count = this.counts.get(name) ?? 2;
    const stem = /\d$/.test(name) ? `${name}_` : name;
    while (this.taken.has(stem + count)) count += 1;
    this.counts.set(name, count + 1);
    return stem + count;
  }
}

/**
 * Candidate names for the value at `path`, shortest first: `linear`, or `layers0`, then `encoderLayers0`. `prefix`
 * goes before each; `className` replaces a path that is empty or has no letters.
 */
export function nameCandidates(path: PathLink | undefined, className: string, prefix: string): string[] {
  const candidates: string[] = [];
  let tail = '';
  let names = 0;
  for (let at = path; at !== undefined && names < 2; at = at.parent) {
    const { segment } = at;
    tail =
      capitalized(lettersOf(typeof segment === 'string' ? segment : formatSegment(segment, true))) + tail;
    // An index or a key needs the name of its field.
    if (typeof segment !== 'string') continue;
    names += 1;
    candidates.push(joined(prefix, tail));
  }
  if (!candidates.some(startsWithLetter))
    return [joined(prefix, capitalized(lettersOf(className) || 'Config'))];
  return candidates.filter(startsWithLetter);
}

function joined(prefix: string, tail: string): string {
  return prefix === '' ? tail.charAt(0).toLowerCase() + tail.slice(1) : prefix + tail;
}

function startsWithLetter(name: string): boolean {
  return /^[A-Za-z]/.test(name);
}

const longestPart = 30;

/** The letters and digits of a text, as one word in camel case. */
function lettersOf(part: string): string {
  const parts = part.split(/[^A-Za-z0-9]+/).filter((word) => word !== '');
  return parts
    .map((word, i) => (i === 0 ? word : capitalized(word)))
    .join('')
    .slice(0, longestPart);
}

function capitalized(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

/** Modules by the specifier to import them by: `{ './layers.js': await import('./layers.js') }`. */
export type Modules = Readonly<Record<string, object>>;

/** Module of this room's own functions and types, unless a given module exports them. */
const room = 'luthier/hparams';

interface Source {
  readonly specifier: string;
  readonly exported: string;
}

/** Collects imports while code is generated. */
export class Imports {
  private readonly sources = new Map<unknown, Source>();
  /** By specifier, then by exported name: the local name, and whether only types use it. */
  private readonly used = new Map<string, Map<string, { local: string; isType: boolean }>>();

  constructor(
    private readonly modules: Modules,
    private readonly names: Names,
  ) {
    for (const [specifier, namespace] of Object.entries(modules)) {
      // Named exports are preferred over 'default'.
      const exports = Object.keys(namespace).filter(isIdentifier);
      for (const exported of [...exports.filter((name) => name !== 'default'), 'default']) {
        const value = (namespace as Record<string, unknown>)[exported];
        const isReference = typeof value === 'function' || (typeof value === 'object' && value !== null);
        if (isReference && !this.sources.has(value)) this.sources.set(value, { specifier, exported });
      }
    }
  }

  /** The local name of `value`, which from here on is imported; undefined where no module exports it. */
  find(value: unknown, isType = false): string | undefined {
    const source = this.sources.get(value);
    return source && this.local(source, isType);
  }

  /** As `find`. @throws ConfigError with the way to export `value`. */
  require(value: unknown, what: string, name: string, link: PathLink | undefined, isType = false): string {
    const local = this.find(value, isType);
    if (local !== undefined) return local;
    const path = formatLink(link);
    const specifiers = Object.keys(this.modules);
    const known = specifiers.flatMap((specifier) => Object.keys(this.modules[specifier]!));
    const searched =
      specifiers.length === 0
        ? 'no modules were given'
        : `the modules given (${specifiers.join(', ')}) do not export it`;
    throw new ConfigError(
      `${path === '' ? '<root>' : path}: the ${what} ${name} cannot be imported: ${searched}.${known.includes(name) ? '' : didYouMean(name, known)} ` +
        `Export it, and add its module: { modules: { './file.js': await import('./file.js') } }.`,
      { path },
    );
  }

  /** The local name of the type `exported` of the module that `value` comes from. */
  type(value: unknown, exported: string): string {
    const source = this.sources.get(value) ?? { specifier: room };
    return this.local({ specifier: source.specifier, exported }, true);
  }

  /** The local name of the library's own function `value`. */
  library(value: Function): string {
    return this.local(this.sources.get(value) ?? { specifier: room, exported: value.name }, false);
  }

  private local({ specifier, exported }: Source, isType: boolean): string {
    const names = getOrMake(this.used, specifier, () => new Map());
    const known = names.get(exported);
    if (known !== undefined) {
      known.isType &&= isType;
      return known.local;
    }
    const wanted = exported === 'default' ? `${lastName(specifier)}Default` : exported;
    const local = this.names.take([wanted, ...(exported === 'default' ? [] : [`${wanted}Class`])]);
    names.set(exported, { local, isType });
    return local;
  }

  /** The import declarations, packages before files. */
  text(): string {
    const isFile = (specifier: string): boolean => /^[./]/.test(specifier);
    return [...this.used]
      .sort(([a], [b]) => Number(isFile(a)) - Number(isFile(b)) || (a < b ? -1 : 1))
      .map(([specifier, names]) => declaration(specifier, names))
      .join('');
  }
}

function lastName(specifier: string): string {
  const word = specifier
    .replace(/\.\w+$/, '')
    .split('/')
    .at(-1)!
    .replaceAll(/\W/g, '');
  return /^[A-Za-z]/.test(word) ? word : 'module';
}

function declaration(specifier: string, names: Map<string, { local: string; isType: boolean }>): string {
  const sorted = [...names].sort(([a], [b]) => a.localeCompare(b, 'en'));
  const allTypes = sorted.every(([, { isType }]) => isType);
  const parts = sorted.map(([exported, { local, isType }]) => {
    const name = exported === local ? local : `${exported} as ${local}`;
    return isType && !allTypes ? `type ${name}` : name;
  });
  return `import ${allTypes ? 'type ' : ''}${namesInBraces(parts)} from ${stringText(specifier)};\n`;
}

/** Local name of a class or a `configurable` target. @throws ConfigError if no module exports it. */
export function targetName(imports: Imports, info: ClassInfo, path?: PathLink, isType = false): string {
  const what = info.cls.prototype instanceof Configurable ? 'class' : 'target';
  return imports.require(info.cls, what, info.name, path, isType);
}

/** The type of the configs of a class. */
export function configType(imports: Imports, info: ClassInfo, kind: NodeKind): string {
  const target = targetName(imports, info, undefined, true);
  // The config type of a configurable function has no name of its own.
  if (!(info.cls.prototype instanceof Configurable)) return `ReturnType<typeof ${target}.${kind}>`;
  return `${imports.type(derive, kind === 'partial' ? 'PartialConfig' : 'Config')}<${target}>`;
}

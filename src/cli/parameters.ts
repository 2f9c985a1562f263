/** @file Parameters of a plain function, read from its source. */
import { splitOutside } from './sweepGrammar.js';

/** One parameter. */
export interface Parameter {
  /** Its name; of a pattern, `{a, b}`, all of it. */
  readonly text: string;
  readonly isOptional: boolean;
  readonly isRest: boolean;
  /** The names that an object pattern takes; undefined where it is no such pattern, or takes any. */
  readonly names: readonly string[] | undefined;
  readonly isObject: boolean;
}

/** What a function takes; undefined where its source does not say: a bound function, one that reads `arguments`. */
export function parametersOf(fn: (...values: any[]) => unknown): readonly Parameter[] | undefined {
  const source = Function.prototype.toString.call(fn).replaceAll(comments, ' ');
  if (/\[native code\]\s*\}$/.test(source) || /\barguments\b/.test(source)) return undefined;
  const alone = /^\s*(?:async\s+)?([A-Za-z_$][\w$]*)\s*=>/.exec(source);
  if (alone !== null) return [parameterOf(alone[1]!)];
  const open = source.indexOf('(');
  const inside = open < 0 ? undefined : upToClosing(source, open + 1);
  if (inside === undefined) return undefined;
  return partsOf(inside).map(parameterOf);
}

// A text that looks like a comment is kept: only what stands outside of quotes is one.
const comments = /(?<=^[^'"`]*)(?:\/\*[\s\S]*?\*\/|\/\/[^\n]*)/g;

function upToClosing(source: string, from: number): string | undefined {
  // Behind its closing bracket, the rest of the source is one part more.
  let depth = 0;
  for (let at = from; at < source.length; at += 1) {
    const character = source[at]!;
    if (/['"`]/.test(character)) {
      at = source.indexOf(character, at + 1);
      if (at < 0) return undefined;
    } else if (/[([{]/.test(character)) depth += 1;
    else if (/[)\]}]/.test(character)) {
      if (depth === 0) return source.slice(from, at);
      depth -= 1;
    }
  }
  return undefined;
}

function partsOf(list: string): string[] {
  const parts = splitOutside(list, ',').map(({ part }) => part.trim());
  return parts.at(-1) === '' ? parts.slice(0, -1) : parts;
}

function parameterOf(part: string): Parameter {
  const [text, ...byDefault] = splitOutside(part, '=').map((each) => each.part.trim());
  const isRest = text!.startsWith('...');
  const isObject = text!.startsWith('{');
  return {
    text: text!,
    isOptional: byDefault.length > 0,
    isRest,
    isObject,
    names: isObject ? namesIn(text!) : undefined,
  };
}

function namesIn(pattern: string): string[] | undefined {
  const names = partsOf(pattern.slice(1, -1)).map((part) => /^[A-Za-z_$][\w$]*/.exec(part)?.[0]);
  return names.includes(undefined) ? undefined : (names as string[]);
}

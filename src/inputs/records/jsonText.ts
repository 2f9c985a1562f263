/** @file JSON whose integers keep all their digits: those beyond 2^53 are bigints. */

/** Values nested deeper than this are taken for large ones. */
const DEEPEST_SEARCHED = 100;
/** A string's first quote, or an integer of many digits, without a fraction and an exponent. */
const PARTS = /"|(?<![\d.eE+-])-?[1-9]\d{15,}(?![\d.eE])/g;
/** Prefix of marked strings; strings with this prefix are given another one. */
const MARK = '@';
const ESCAPED_MARK = '\\u0040';

/**
 * The value of a JSON text. Integers that a number does not hold exactly are bigints.
 *
 * @throws SyntaxError as `JSON.parse`
 */
export function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  if (!hasLarge(value, 0)) return value;
  const root: unknown[] = [JSON.parse(withMarkedIntegers(text))];
  restore(root);
  return root[0];
}

/** Whether a number is so large that several integers round to it. */
function hasLarge(value: unknown, depth: number): boolean {
  if (typeof value === 'number') return Math.abs(value) > Number.MAX_SAFE_INTEGER;
  if (typeof value !== 'object' || value === null) return false;
  if (depth > DEEPEST_SEARCHED) return true;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) if (hasLarge(value[i], depth + 1)) return true;
    return false;
  }
  for (const key in value)
    if (hasLarge((value as Readonly<Record<string, unknown>>)[key], depth + 1)) return true;
  return false;
}

/** A JSON text with its large integers as marked strings. */
function withMarkedIntegers(text: string): string {
  let [marked, from] = ['', 0];
  PARTS.lastIndex = 0;
  for (let found = PARTS.exec(text); found !== null; found = PARTS.exec(text)) {
    const { index } = found;
    if (found[0] !== '"') {
      if (Number.isSafeInteger(Number(found[0]))) continue;
      marked += `${text.slice(from, index)}"${MARK}${found[0]}"`;
      from = PARTS.lastIndex;
      continue;
    }
    const end = endOfString(text, index);
    PARTS.lastIndex = end;
    const isMarked = text.startsWith(MARK, index + 1) || text.startsWith(ESCAPED_MARK, index + 1);
    if (!isMarked || isKey(text, end)) continue;
    marked += `${text.slice(from, index + 1)}${MARK}`;
    from = index + 1;
  }
  return marked + text.slice(from);
}

/** The position behind a string's last quote. */
function endOfString(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); ; at = text.indexOf('"', at + 1)) {
    let before = at;
    while (text[before - 1] === '\\') before--;
    if ((at - before) % 2 === 0) return at + 1;
  }
}

function isKey(text: string, end: number): boolean {
  let at = end;
  while (' \t\n\r'.includes(text[at] ?? '-')) at++;
  return text[at] === ':';
}

/** Puts integers and strings in the place of marked strings, however deep these are. */
function restore(root: unknown[]): void {
  const containers: object[] = [root];
  for (let container = containers.pop(); container !== undefined; container = containers.pop()) {
    for (const [key, value] of Object.entries(container)) {
      if (typeof value === 'object' && value !== null) containers.push(value);
      if (typeof value !== 'string' || !value.startsWith(MARK)) continue;
      const rest = value.slice(MARK.length);
      const restored = rest.startsWith(MARK) ? rest : BigInt(rest);
      // An assignment to '__proto__' would be none.
      Object.defineProperty(container, key, { value: restored });
    }
  }
}

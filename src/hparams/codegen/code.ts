/** @file Expressions of generated code, and their layout: lines break where the project's formatter would break them. */

/** The longest line, as in biome.json. */
const lineWidth = 110;
const indentWidth = 2;

/** An expression. `flat` is its text on one line, absent where that cannot be. */
export type Code = TextCode | CallCode | ObjectCode | ArrayCode;

interface TextCode {
  readonly kind: 'text';
  readonly flat: string;
  /** Numbers share lines, and like true and false they never leave the line of their key. */
  readonly sort: 'number' | 'negative' | 'boolean' | 'string' | 'name' | 'other';
}

interface CallCode {
  readonly kind: 'call';
  readonly flat: string | undefined;
  /** What stands before the parenthesis. */
  readonly callee: string;
  readonly values: readonly Code[];
}

/** A key with its value, and a comment that says where the value was set. */
export interface Entry {
  readonly key: string;
  readonly value: Code;
  readonly comment?: string | undefined;
}

interface ObjectCode {
  readonly kind: 'object';
  readonly flat: string | undefined;
  readonly entries: readonly Entry[];
}

interface ArrayCode {
  readonly kind: 'array';
  readonly flat: string | undefined;
  readonly items: readonly Code[];
}

/** A name, a literal, or anything else that stays on one line. */
export function text(flat: string, sort: TextCode['sort'] = 'other'): TextCode {
  return { kind: 'text', flat, sort };
}

// An argument of at most this length does not make a call worth breaking.
const shortArgument = Math.floor(lineWidth / 4);

/** `callee(values)`. */
export function call(callee: string, values: readonly Code[]): Code {
  const inner = joined(values, ', ');
  const flat = short(inner, `${callee}(`, ')');
  const [only] = values;
  const isLoneShort = only?.kind === 'text' && values.length === 1 && widthOf(only.flat) <= shortArgument;
  const isNew = callee.startsWith('new ');
  if (values.length === 0 || (isLoneShort && !isNew)) return text(`${callee}(${inner ?? ''})`);
  return { kind: 'call', flat, callee, values };
}

export function object(entries: readonly Entry[]): Code {
  if (entries.length === 0) return text('{}');
  const values: (string | undefined)[] = entries.map(({ key, value, comment }) =>
    comment === undefined ? flatEntry(key, value) : undefined,
  );
  return { kind: 'object', flat: short(together(values, ', '), '{ ', ' }'), entries };
}

export function array(items: readonly Code[]): Code {
  if (items.length === 0) return text('[]');
  const flat = isMatrix(items) ? undefined : short(joined(items, ', '), '[', ']');
  return { kind: 'array', flat, items };
}

function flatEntry(key: string, value: Code): string | undefined {
  return isShorthand(key, value) ? key : short(value.flat, `${key}: `, '');
}

/** Whether the value is a variable of the key's name. */
function isShorthand(key: string, value: Code): boolean {
  return value.kind === 'text' && value.sort === 'name' && value.flat === key;
}

/** Whether the items have so much in them, all in the same way, that each gets a line. */
function isMatrix(items: readonly Code[]): boolean {
  if (items.length < 2) return false;
  return (
    items.every((item) => item.kind === 'array' && item.items.length > 1) ||
    items.every((item) => item.kind === 'object' && item.entries.length > 1)
  );
}

function joined(codes: readonly Code[], separator: string): string | undefined {
  return together(
    codes.map((code) => code.flat),
    separator,
  );
}

function together(texts: readonly (string | undefined)[], separator: string): string | undefined {
  let length = 0;
  for (const each of texts) {
    // What is too long for a line is not put together: texts of outer expressions would repeat those of inner ones.
    if (each === undefined || (length += each.length) > lineWidth * 2) return undefined;
  }
  return texts.join(separator);
}

function short(inner: string | undefined, before: string, after: string): string | undefined {
  if (inner === undefined) return undefined;
  const flat = before + inner + after;
  return flat.length > lineWidth * 2 ? undefined : flat;
}

const wide =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}]/gu;

/** How many columns `line` takes; Chinese characters, say, take two. */
function widthOf(line: string): number {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: nearly all code is ASCII, where length is width.
  if (/^[\x00-\x7f]*$/.test(line)) return line.length;
  return [...line].length + (line.match(wide)?.length ?? 0);
}

/** `left value;` at the indentation, such as `const head = Head.config();`. */
export function statement(left: string, value: Code, indent = indentWidth): string {
  return `${' '.repeat(indent)}${assigned(left, value, indent, false)};`;
}

/** A call as a statement. */
export function action(code: Code, indent = indentWidth): string {
  return `${' '.repeat(indent)}${laidOut(code, indent, indent, 1)};`;
}

/** The beginning of an exported function, up to its brace. */
export function signature(name: string, parameters: readonly string[], result?: string): string {
  const end = result === undefined ? ')' : `): ${result}`;
  const line = `export function ${name}(${parameters.join(', ')}${end}`;
  if (parameters.length === 0 || widthOf(line) + 2 <= lineWidth) return line;
  return `export function ${name}(\n${parameters.map((each) => `  ${each},\n`).join('')}${end}`;
}

/** A value behind a key or an equals sign: on the same line, or, where its first words do not fit there, below. */
function assigned(left: string, value: Code, indent: number, isEntry: boolean): string {
  const column = indent + widthOf(left) + 1;
  const room = lineWidth - column - 1;
  if (value.flat !== undefined && widthOf(value.flat) <= room) return `${left} ${value.flat}`;
  if (value.kind === 'text') {
    const isBound = value.sort === 'number' || value.sort === 'boolean';
    const isShortKey = isEntry && value.sort === 'string' && widthOf(left) <= indentWidth + 1;
    if (isBound || isShortKey) return `${left} ${value.flat}`;
  } else if (widthOf(headOf(value)) <= room + 1) return `${left} ${broken(value, indent)}`;
  const inner = indent + indentWidth;
  return `${left}\n${' '.repeat(inner)}${laidOut(value, inner, inner, 1)}`;
}

/** The text up to the first place where a line may break. */
function headOf(code: Code): string {
  if (code.kind === 'text') return code.flat;
  if (code.kind === 'object') return '{';
  if (code.kind === 'array') return '[';
  return isHugged(code) ? `${code.callee}(${headOf(code.values[0]!)}` : `${code.callee}(`;
}

/** Whether the parentheses and the brackets of the only argument open on one line. */
function isHugged({ values }: CallCode): boolean {
  return values.length === 1 && (values[0]!.kind === 'object' || values[0]!.kind === 'array');
}

/** `code` from `column` on, with `tail` more columns to come on its last line. */
function laidOut(code: Code, indent: number, column: number, tail: number): string {
  if (code.kind === 'text') return code.flat;
  if (code.flat !== undefined && column + widthOf(code.flat) + tail <= lineWidth) return code.flat;
  return broken(code, indent);
}

/** `code` on several lines; lines below the first are indented. */
function broken(code: Code, indent: number): string {
  if (code.kind === 'text') return code.flat;
  if (code.kind === 'call' && isHugged(code)) return `${code.callee}(${broken(code.values[0]!, indent)})`;
  const inner = indent + indentWidth;
  if (code.kind === 'object')
    return `{\n${code.entries.map((entry) => entryLines(entry, inner)).join('')}${' '.repeat(indent)}}`;
  const items = code.kind === 'call' ? code.values : code.items;
  const [open, close] = code.kind === 'call' ? [`${code.callee}(`, ')'] : ['[', ']'];
  const areNumbers = items.every(
    (item) => item.kind === 'text' && (item.sort === 'number' || item.sort === 'negative'),
  );
  const lines =
    areNumbers && code.kind === 'array'
      ? filled(items, inner)
      : items.map((item) => `${' '.repeat(inner)}${laidOut(item, inner, inner, 1)},\n`).join('');
  return `${open}\n${lines}${' '.repeat(indent)}${close}`;
}

function entryLines({ key, value, comment }: Entry, indent: number): string {
  const margin = ' '.repeat(indent);
  const property = isShorthand(key, value) ? key : assigned(`${key}:`, value, indent, true);
  const lines = `${margin}${property},`;
  if (comment === undefined) return `${lines}\n`;
  return lines.includes('\n') ? `${margin}// ${comment}\n${lines}\n` : `${lines} // ${comment}\n`;
}

/** As many numbers on each line as fit. */
function filled(items: readonly Code[], indent: number): string {
  const margin = ' '.repeat(indent);
  let lines = '';
  let line = margin;
  for (const item of items) {
    const next = `${item.flat},`;
    if (line !== margin && line.length + 1 + next.length > lineWidth) {
      lines += `${line}\n`;
      line = margin;
    }
    line += line === margin ? next : ` ${next}`;
  }
  return `${lines}${line}\n`;
}

/** @file JSON with the place of every part: slower than JSON.parse, and used where a message needs a line. */
import { append } from '../append.js';
import { ConfigError } from '../errors.js';
import { longestWritten } from './format.js';
import { formatSpot, Lines, type Parsed } from './text.js';

/**
 * What `use` makes of a JSON text. It is parsed fast; where `use` finds something wrong, it is called again with the
 * places of all parts, unless the text is so long that they would take too much space.
 *
 * @throws ConfigError of `use`, and with line and column for what is no JSON.
 */
export function parseJson<R>(text: string, file: string | undefined, use: (parsed: Parsed) => R): R {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    scanJson(text, file, false);
    throw new ConfigError(`This is not JSON: ${(cause as Error).message}`, { place: file, cause });
  }
  // JSON.parse keeps the last of equal keys. What people write is short enough to be asked.
  if (text.length <= longestWritten && writtenKeys(text) !== keptKeys(value)) scanJson(text, file);
  try {
    return use({ value, file });
  } catch (error) {
    if (!(error instanceof ConfigError) || text.length > longestWritten) throw error;
    return use(scanJson(text, file));
  }
}

/** How many keys a JSON text has: colons outside of strings. */
function writtenKeys(text: string): number {
  let count = 0;
  let inString = false;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 92) at += 1;
    else if (code === 34) inString = !inString;
    else if (code === 58 && !inString) count += 1;
  }
  return count;
}

function keptKeys(value: unknown): number {
  let count = 0;
  const open = [value];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (typeof next !== 'object' || next === null) continue;
    const parts = Object.values(next);
    if (!Array.isArray(next)) count += parts.length;
    append(open, parts);
  }
  return count;
}

/** An array or record that is being read. */
interface Frame {
  readonly made: unknown[] | Record<string, unknown>;
  readonly spots: Map<string | number, number> | undefined;
  readonly close: ']' | '}';
  key: string | number;
}

const space = /[ \t\n\r]*/y;
const literal =
  /[{}[\]:,]|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])|(?:true|false|null)(?!\w)|[\s\S][^\s{}[\]:,"]{0,20}/y;
const constants = new Map<string, unknown>([
  ['true', true],
  ['false', false],
  ['null', null],
]);

/** Parses JSON without recursion. @throws ConfigError with line and column for what is no JSON, and for keys given twice. */
export function scanJson(text: string, file?: string, withSpots = true): Parsed {
  return new Scanner(text, file, withSpots).parse();
}

class Scanner {
  private at = 0;
  private readonly spots = new WeakMap<object, Map<string | number, number>>();
  private lines: Lines | undefined;

  constructor(
    private readonly text: string,
    private readonly file: string | undefined,
    private readonly withSpots: boolean,
  ) {}

  parse(): Parsed {
    const open: Frame[] = [];
    let result: unknown;
    for (;;) {
      let value: unknown;
      const frame = open.at(-1);
      const start = this.skipSpace();
      if (frame !== undefined) this.note(frame, start);
      const token = this.next(open.length === 0 ? 'a value' : `a value or '${frame!.close}'`);
      if (token === '[' || token === '{') {
        const inner = this.begin(token);
        if (!this.closes(inner)) {
          open.push(inner);
          continue;
        }
        value = inner.made;
      } else value = this.scalar(token, start);
      // A value is complete: so may be what holds it.
      for (;;) {
        const holder = open.at(-1);
        if (holder === undefined) {
          result = value;
          break;
        }
        (holder.made as Record<string | number, unknown>)[holder.key] = value;
        if (this.goesOn(holder)) break;
        value = open.pop()!.made;
      }
      if (open.length === 0) break;
    }
    if (this.skipSpace() < this.text.length) this.fail(this.at, 'expected the end of the text');
    const spotOf = (owner: object, key: string | number) => {
      const offset = this.spots.get(owner)?.get(key);
      return offset === undefined ? undefined : this.lineTable().spotAt(offset);
    };
    return { value: result, file: this.file, spotOf };
  }

  private lineTable(): Lines {
    this.lines ??= new Lines(this.text);
    return this.lines;
  }

  private begin(token: '[' | '{'): Frame {
    const made = token === '[' ? [] : (Object.create(null) as Record<string, unknown>);
    const spots = this.withSpots ? new Map<string | number, number>() : undefined;
    if (spots !== undefined) this.spots.set(made, spots);
    return { made, spots, close: token === '[' ? ']' : '}', key: 0 };
  }

  /** Whether the container that has just begun ends at once; if not, reads the first key of a record. */
  private closes(frame: Frame): boolean {
    this.skipSpace();
    if (this.text[this.at] === frame.close) {
      this.at += 1;
      return true;
    }
    if (frame.close === '}') this.readKey(frame);
    return false;
  }

  /** Whether a comma follows, after which the next part is read. */
  private goesOn(frame: Frame): boolean {
    const start = this.skipSpace();
    const token = this.next(`',' or '${frame.close}'`);
    if (token === frame.close) return false;
    if (token !== ',') this.fail(start, `expected ',' or '${frame.close}', got ${JSON.stringify(token)}`);
    if (frame.close === '}') this.readKey(frame);
    else frame.key = Number(frame.key) + 1;
    return true;
  }

  private readKey(frame: Frame): void {
    const start = this.skipSpace();
    const token = this.next('a key');
    if (token !== '"') this.fail(start, `expected a key in double quotes, got ${JSON.stringify(token)}`);
    frame.key = this.string(start);
    if (this.withSpots && Object.hasOwn(frame.made, frame.key)) {
      const first = formatSpot(this.file, this.lineTable().spotAt(frame.spots!.get(frame.key)!));
      this.fail(start, `the key ${JSON.stringify(frame.key)} is given twice, first at ${first}`);
    }
    frame.spots?.set(frame.key, start);
    const colon = this.skipSpace();
    if (this.next("':'") !== ':') this.fail(colon, "expected ':' after a key");
  }

  // Elements are found by where they begin, fields by their keys.
  private note(frame: Frame, start: number): void {
    if (frame.close === ']') frame.spots?.set(frame.key, start);
  }

  private skipSpace(): number {
    space.lastIndex = this.at;
    space.test(this.text);
    this.at = space.lastIndex;
    return this.at;
  }

  private next(expected: string): string {
    if (this.at >= this.text.length) this.fail(this.at, `the text ends where ${expected} should follow`);
    if (this.text[this.at] === '"') {
      this.at += 1;
      return '"';
    }
    literal.lastIndex = this.at;
    const token = literal.exec(this.text)![0];
    this.at = literal.lastIndex;
    return token;
  }

  private scalar(token: string, start: number): unknown {
    if (token === '"') return this.string(start);
    if (constants.has(token)) return constants.get(token);
    if (/^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(token)) return Number(token);
    return this.fail(start, `expected a value, got ${JSON.stringify(token)}`);
  }

  /** The rest of a string, behind its opening quote. */
  private string(start: number): string {
    let at = this.at;
    for (let code = this.text.charCodeAt(at); code !== 34; code = this.text.charCodeAt(at)) {
      if (Number.isNaN(code)) this.fail(start, 'the text ends within the string that begins here');
      if (code < 32)
        this.fail(at, 'a string holds a line break or control character; write \\n and the like');
      at += code === 92 ? 2 : 1;
    }
    this.at = at + 1;
    try {
      return JSON.parse(this.text.slice(start, this.at)) as string;
    } catch {
      return this.fail(start, 'the string that begins here has a backslash that means nothing');
    }
  }

  private fail(offset: number, problem: string): never {
    throw new ConfigError(`This is not JSON: ${problem}.`, {
      place: formatSpot(this.file, this.lineTable().spotAt(offset)),
    });
  }
}

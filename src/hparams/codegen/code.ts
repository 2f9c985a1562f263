/** @file Layout of generated expressions: on one line where that is short, else a part a line. */

/** The text of an expression or statement; its lines below the first are indented from the first. */
export type Code = string;

const longestGroup = 90;

/** The lines of `code`, one level further in. */
export function indented(code: Code): Code {
  return `  ${code.replaceAll('\n', '\n  ')}`;
}

/** `open`, the parts with commas between them, and `close`. */
function group(open: string, parts: readonly Code[], close: string, pad = ''): Code {
  const length = parts.reduce((sum, part) => sum + part.length + 2, open.length);
  if (length <= longestGroup && !parts.some((part) => part.includes('\n'))) {
    return open + pad + parts.join(', ') + pad + close;
  }
  return `${open}\n${parts.map((part) => `${indented(part)},\n`).join('')}${close}`;
}

/** `callee(values)`. */
export function call(callee: string, values: readonly Code[]): Code {
  const [only] = values;
  // The parentheses and the brackets of a lone argument open on one line.
  if (values.length === 1 && /^[[{]/.test(only!)) return `${callee}(${only})`;
  return group(`${callee}(`, values, ')');
}

/** A key with its value, and a comment that says where the value was set. */
export interface Entry {
  readonly key: string;
  readonly value: Code;
  readonly comment?: string | undefined;
}

export function object(entries: readonly Entry[]): Code {
  if (entries.length === 0) return '{}';
  const parts = entries.map(({ key, value, comment }) => {
    const entry = key === value ? key : `${key}: ${value}`;
    return comment === undefined ? entry : `// ${comment}\n${entry}`;
  });
  return group('{', parts, '}', ' ');
}

export function array(items: readonly Code[]): Code {
  return group('[', items, ']');
}

/** `{ name, other }`, as imports have it. */
export function namesInBraces(names: readonly string[]): Code {
  return group('{', names, '}', ' ');
}

/** A function: its head, such as `export function config`, parameters and statements. */
export function functionText(
  head: string,
  parameters: readonly string[],
  statements: readonly Code[],
  result?: string,
): Code {
  const end = result === undefined ? ')' : `): ${result}`;
  return `${group(`${head}(`, parameters, end)} {\n${statements.map(indented).join('\n')}\n}\n`;
}

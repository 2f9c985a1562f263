/** @file Text on its way to a terminal: characters that would control it or turn its text are written out. */
import { styleText } from 'node:util';

// Tabs and ends of lines, of Windows too, are layout.
const controls = /(?![\t\n]|\r\n)[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}\u206a-\u206f]/gu;

/**
 * The text as a terminal may be given it: controls are escapes such as `\u001b`, but tabs and ends of lines. JSON stays
 * the same data.
 */
export function printable(text: string): string {
  return text.replace(controls, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Replaces the escape character of styles of our own. Drawn at random, so that no text from elsewhere has it. */
const mark = `\ufdd0${Math.random().toString(36).slice(2)}`;

/** The text with its styles, all of them our own, for `writeText`. */
export function ownStyles(text: string): string {
  return text.replaceAll('\u001b', mark);
}

/** The text in a style, for `writeText`. */
export function styled(style: Parameters<typeof styleText>[0], text: string): string {
  const [begin = '', end = ''] = styleText(style, '\0', { validateStream: false }).split('\0');
  return `${ownStyles(begin)}${text}${ownStyles(end)}`;
}

interface TextStream {
  write(text: string): unknown;
}

/** Writes text for people, its controls written out. */
export function writeText(text: string, stream: TextStream = process.stdout): void {
  stream.write(printable(text).replaceAll(mark, '\u001b'));
}

/** Writes a line for people to stderr. */
export function warn(line: string): void {
  writeText(`${line}\n`, process.stderr);
}

/** Writes a result that another program may read: as it is, but for controls on a terminal. */
export function writeResult(text: string): void {
  if (process.stdout.isTTY === true) writeText(text);
  else process.stdout.write(text);
}

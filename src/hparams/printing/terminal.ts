/** @file Colours and widths of text in a terminal. */
import { styleText } from 'node:util';

/** What `styleText` calls a colour or a style. */
export type Style = Parameters<typeof styleText>[0];

/** Puts a style on a text, or leaves it as it is. */
export type Paint = (style: Style, text: string) => string;

/**
 * Paints where `colour` is true; where it is undefined, if `stream` is a terminal with colours. Then the environment
 * has a say, too: NO_COLOR, NODE_DISABLE_COLORS and FORCE_COLOR.
 */
export function painter(colour: boolean | undefined, stream: NodeJS.WriteStream = process.stdout): Paint {
  if (colour === false) return (_, text) => text;
  if (colour === true) return (style, text) => styleText(style, text, { validateStream: false });
  return (style, text) => styleText(style, text, { stream });
}

const wide =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}\p{Emoji_Presentation}]/u;
const invisible = /[\p{Mn}\p{Me}\p{Cf}]/u;

function columnsOf(character: string): number {
  // Most of what is printed is plain: the patterns are dear.
  if (character < '\u0300') return 1;
  return invisible.test(character) ? 0 : wide.test(character) ? 2 : 1;
}

/** The text, cut so that it takes at most `columns` columns of a terminal; what is cut shows as `…`. */
export function cutTo(text: string, columns: number): string {
  if (text.length * 2 <= columns) return text;
  let used = 0;
  let kept = 0;
  let fits = '';
  for (const character of text) {
    used += columnsOf(character);
    if (used > columns) return `${fits}…`;
    kept += character.length;
    if (used <= columns - 1) fits = text.slice(0, kept);
  }
  return text;
}

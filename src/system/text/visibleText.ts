/** @file Texts of unknown origin as a terminal or a report can show them. */

const longest = 160;

/** A text on one line that looks like its characters: control and bidirectional characters are escaped. */
export function visible(text: string): string {
  return text.replace(
    /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu,
    (character) => `\\u${character.codePointAt(0)!.toString(16).padStart(4, '0')}`,
  );
}

/** A text of several lines, each `visible`. */
export function visibleLines(text: string): string {
  return text.split('\n').map(visible).join('\n');
}

/** A text, its middle left out where it is long. */
export function shortened(text: string, most = longest): string {
  if (text.length <= most) return text;
  const half = Math.floor((most - 1) / 2);
  return `${text.slice(0, half)}…${text.slice(-half)}`;
}

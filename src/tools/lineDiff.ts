/** @file Line diff of two texts with context. */
import { alignLists } from '../hparams/index.js';
import { type Paint, plain } from '../system/text/index.js';

/** A line of a diff. A gap stands for omitted lines, and gives the line numbers behind it. */
export interface DiffLine {
  readonly kind: 'same' | 'removed' | 'added' | 'gap';
  readonly text: string;
}

function linesIn(text: string): string[] {
  const lines = text.split(/\r?\n/);
  if (lines.at(-1) === '') lines.pop();
  return lines;
}

interface NumberedLine extends DiffLine {
  readonly old: number;
  readonly new: number;
}

/** Lines of both texts, removed ones before those that replace them. */
function merged(before: readonly string[], after: readonly string[]): NumberedLine[] {
  const { oldOf, stayed } = alignLists(before, after);
  const lines: NumberedLine[] = [];
  let [i, j] = [0, 0];
  for (let next = 0; next <= after.length; next += 1) {
    const isEnd = next === after.length;
    if (!isEnd && !stayed[next]) continue;
    // Between two lines that stayed in order, all old lines were removed and all new ones added.
    const old = isEnd ? before.length : oldOf[next]!;
    for (; i < old; i += 1) lines.push({ kind: 'removed', text: before[i]!, old: i, new: j });
    for (; j < next; j += 1) lines.push({ kind: 'added', text: after[j]!, old: i, new: j });
    if (!isEnd) lines.push({ kind: 'same', text: after[j]!, old: i++, new: j++ });
  }
  return lines;
}

/** Diff of two texts with `context` lines around changes; empty for equal texts. */
export function lineDiff(before: string, after: string, context = 2): DiffLine[] {
  const lines = merged(linesIn(before), linesIn(after));
  const shown: DiffLine[] = [];
  let lastChange = Number.NEGATIVE_INFINITY;
  const nextChange: number[] = [];
  for (let at = lines.length - 1, next = Number.POSITIVE_INFINITY; at >= 0; at -= 1) {
    if (lines[at]!.kind !== 'same') next = at;
    nextChange[at] = next;
  }
  let isOpen = false;
  for (const [at, line] of lines.entries()) {
    if (line.kind !== 'same') lastChange = at;
    const isNear = at - lastChange <= context || nextChange[at]! - at <= context;
    if (isNear && !isOpen) shown.push({ kind: 'gap', text: `@@ -${line.old + 1} +${line.new + 1} @@` });
    if (isNear) shown.push({ kind: line.kind, text: line.text });
    isOpen = isNear;
  }
  return shown;
}

const marks = { same: ' ', removed: '-', added: '+', gap: '' } as const;
const colours = { same: undefined, removed: 'red', added: 'green', gap: 'cyan' } as const;

/** A diff as text, in the form that Markdown's `diff` blocks colour. */
export function diffText(lines: readonly DiffLine[], paint: Paint = plain): string {
  return lines
    .map(({ kind, text }) => {
      const line = `${marks[kind]}${text}`.trimEnd();
      const colour = colours[kind];
      return colour === undefined ? line : paint(colour, line);
    })
    .join('\n');
}

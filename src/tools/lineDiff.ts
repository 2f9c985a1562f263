/** @file Line diff of two texts, with context. */
import { alignLists } from '../hparams/diff/lists.js';
import { type Paint, plain } from './terminalOutput.js';

/** A line of a difference; a gap stands for lines that are left out, and tells the line numbers behind it. */
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

/** All lines of both texts: what went stands before what came in its place. */
function merged(before: readonly string[], after: readonly string[]): NumberedLine[] {
  const { oldOf, stayed } = alignLists(before, after);
  const lines: NumberedLine[] = [];
  let [i, j] = [0, 0];
  for (let next = 0; next <= after.length; next += 1) {
    const isEnd = next === after.length;
    if (!isEnd && !stayed[next]) continue;
    // Between two lines that stayed in order, no old line stayed, and no new one.
    const old = isEnd ? before.length : oldOf[next]!;
    for (; i < old; i += 1) lines.push({ kind: 'removed', text: before[i]!, old: i, new: j });
    for (; j < next; j += 1) lines.push({ kind: 'added', text: after[j]!, old: i, new: j });
    if (!isEnd) lines.push({ kind: 'same', text: after[j]!, old: i++, new: j++ });
  }
  return lines;
}

/** How `before` became `after`: lines that changed, with `context` lines around them; none where nothing changed. */
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

/** The difference as text, in the form that `diff` blocks of Markdown colour. */
export function diffText(lines: readonly DiffLine[], paint: Paint = plain): string {
  return lines
    .map(({ kind, text }) => {
      const line = `${marks[kind]}${text}`.trimEnd();
      const colour = colours[kind];
      return colour === undefined ? line : paint(colour, line);
    })
    .join('\n');
}

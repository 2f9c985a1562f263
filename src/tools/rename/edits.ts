/** @file Replacements in files, by position: gathered, applied, shown as a unified diff. */
import type { Paint } from '../paint.js';

/** One replacement; positions count from the start of the file as it is. */
export interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** A file before and after. */
export interface ChangedFile {
  /** Absolute. */
  readonly file: string;
  readonly before: string;
  readonly after: string;
  readonly edits: readonly Edit[];
}

/** The edits of several files. One that is added twice counts once. */
export class Edits {
  private readonly byFile = new Map<string, Map<string, Edit>>();

  add(file: string, edit: Edit): void {
    const edits = this.byFile.get(file) ?? new Map<string, Edit>();
    this.byFile.set(file, edits);
    edits.set(`${edit.start}:${edit.end}:${edit.text}`, edit);
  }

  get files(): string[] {
    return [...this.byFile.keys()].sort();
  }

  /** Of one file, by position; insertions at one place in the order in which they were added. */
  of(file: string): Edit[] {
    return [...(this.byFile.get(file)?.values() ?? [])].sort((a, b) => a.start - b.start || a.end - b.end);
  }

  /** What the files become; `read` gives their text. */
  apply(read: (file: string) => string): ChangedFile[] {
    return this.files.map((file) => {
      const before = read(file);
      const edits = this.of(file);
      return { file, before, edits, after: applyEdits(before, edits) };
    });
  }
}

function applyEdits(text: string, edits: readonly Edit[]): string {
  let made = '';
  let at = 0;
  for (const { start, end, text: replacement } of edits) {
    made += text.slice(at, start) + replacement;
    at = end;
  }
  return made + text.slice(at);
}

/** Lines that change together: which old lines, and what stands in their place. */
interface Block {
  /** Index of the first old line, and of the one behind the last. */
  readonly from: number;
  readonly to: number;
  readonly lines: readonly string[];
}

const context = 3;

/** The lines of a text, each with its end. */
function linesOf(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

function blocksOf({ before, edits }: ChangedFile): { old: string[]; blocks: Block[] } {
  const old = linesOf(before);
  const starts = [0];
  for (const line of old) starts.push(starts.at(-1)! + line.length);
  const lineAt = (position: number): number => {
    let low = 0;
    for (let high = old.length - 1; low < high; ) {
      const middle = (low + high + 1) >> 1;
      if (starts[middle]! <= position) low = middle;
      else high = middle - 1;
    }
    return low;
  };
  const groups: { from: number; to: number; edits: Edit[] }[] = [];
  for (const edit of edits) {
    // A whole line that is put between two others changes neither of them.
    const isInsertion = edit.start === edit.end && edit.text.endsWith('\n') && starts.includes(edit.start);
    const from = isInsertion ? starts.indexOf(edit.start) : lineAt(edit.start);
    const to = isInsertion ? from : lineAt(Math.max(edit.start, edit.end - 1)) + 1;
    const last = groups.at(-1);
    if (last !== undefined && from < last.to) {
      last.to = Math.max(last.to, to);
      last.edits.push(edit);
    } else groups.push({ from, to, edits: [edit] });
  }
  const blocks = groups.map(({ from, to, edits: own }) => {
    const offset = starts[from]!;
    const moved = own.map((edit) => ({ ...edit, start: edit.start - offset, end: edit.end - offset }));
    return { from, to, lines: linesOf(applyEdits(before.slice(offset, starts[to]), moved)) };
  });
  return { old, blocks };
}

/** How a file changes, as `diff -u` writes it, without a newline at the end. `name` is how the file is called. */
export function unifiedDiff(changed: ChangedFile, name: string, paint: Paint): string {
  const { old, blocks } = blocksOf(changed);
  const lines = [paint('bold', `--- a/${name}`), paint('bold', `+++ b/${name}`)];
  let shift = 0;
  for (let i = 0; i < blocks.length; ) {
    let end = i + 1;
    while (end < blocks.length && blocks[end]!.from - blocks[end - 1]!.to <= 2 * context) end += 1;
    const hunk = blocks.slice(i, end);
    const from = Math.max(0, hunk[0]!.from - context);
    const to = Math.min(old.length, hunk.at(-1)!.to + context);
    const added = hunk.reduce((sum, block) => sum + block.lines.length - (block.to - block.from), 0);
    const range = (start: number, count: number) => `${count === 0 ? start : start + 1},${count}`;
    lines.push(paint('cyan', `@@ -${range(from, to - from)} +${range(from + shift, to - from + added)} @@`));
    shift += added;
    lines.push(...hunkLines(old, hunk, from, to, paint));
    i = end;
  }
  return lines.join('\n');
}

function hunkLines(
  old: readonly string[],
  hunk: readonly Block[],
  from: number,
  to: number,
  paint: Paint,
): string[] {
  const written = (mark: string, line: string): string =>
    line.endsWith('\n') ? mark + line.slice(0, -1) : `${mark}${line}\n\\ No newline at end of file`;
  const lines: string[] = [];
  const keep = (start: number, end: number) =>
    lines.push(...old.slice(start, end).map((line) => written(' ', line)));
  let at = from;
  for (const block of hunk) {
    keep(at, block.from);
    lines.push(...old.slice(block.from, block.to).map((line) => paint('red', written('-', line))));
    lines.push(...block.lines.map((line) => paint('green', written('+', line))));
    at = block.to;
  }
  keep(at, to);
  return lines;
}

/** @file Replacements in the text of a file. */
import type { RenameLocation } from 'ts-morph';

/** One replacement; positions count from the start of the file as it is. */
export interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** The edit of one location of TypeScript's own renaming. */
export function editOf(location: RenameLocation, newName: string): Edit {
  const span = location.getTextSpan();
  const text = `${location.getPrefixText() ?? ''}${newName}${location.getSuffixText() ?? ''}`;
  return { start: span.getStart(), end: span.getEnd(), text };
}

/** `text` with all edits made. Of edits that overlap, the first to be given counts. */
export function applyEdits(text: string, edits: readonly Edit[]): string {
  const taken: Edit[] = [];
  for (const edit of edits) {
    const isFree = taken.every(({ start, end }) => edit.end <= start || edit.start >= end);
    const isKnown = taken.some(({ start, end }) => start === edit.start && end === edit.end && start < end);
    if (isFree && !isKnown) taken.push(edit);
  }
  let made = '';
  let at = 0;
  for (const { start, end, text: replacement } of taken.sort((a, b) => a.start - b.start || a.end - b.end)) {
    made += text.slice(at, start) + replacement;
    at = end;
  }
  return made + text.slice(at);
}

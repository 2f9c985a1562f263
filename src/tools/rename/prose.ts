/** @file Words in comments, messages and pages: nobody but a person can tell whether they mean what was renamed. */
import type { ChangedFile } from './edits.js';
import { escaped } from './pathText.js';
import { type Sources, ts, visitNodes } from './sources.js';

/**
 * Where the comments and texts of a changed source file, or a changed page, have the word `name`: outside of its edits,
 * and of the strings of which it is known what they mean (`settled`).
 */
export function commentsNaming(
  sources: Sources,
  { file, before, edits }: ChangedFile,
  name: string,
  settled: ReadonlySet<ts.Node>,
): number[] {
  const source = sources.program.getSourceFile(file);
  if (source === undefined && !/\.(md|markdown)$/.test(file)) return [];
  const code = source === undefined ? [] : codeRanges(source, settled);
  const word = new RegExp(`(?<![\\w$])${escaped(name)}(?![\\w$])`, 'g');
  return [...before.matchAll(word)]
    .map(({ index }) => index)
    .filter((at) => !edits.some(({ start, end }) => start <= at && at < Math.max(end, start + 1)))
    .filter((at) => !code.some(([start, end]) => start <= at && at < end));
}

/** The identifiers, and the strings that are but one word: what they mean is known by other ways. */
function codeRanges(source: ts.SourceFile, settled: ReadonlySet<ts.Node>): [start: number, end: number][] {
  const ranges: [number, number][] = [];
  visitNodes(source, (node) => {
    const isWord = ts.isStringLiteralLike(node) && /^[\w$]*$/.test(node.text);
    if (ts.isIdentifier(node) || isWord || settled.has(node)) ranges.push([node.getStart(), node.getEnd()]);
  });
  return ranges;
}

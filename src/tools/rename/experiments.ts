/** @file Names of experiments, as `--exp` has them, and the command lines that say them. */
import type { ClassEntry, Classes } from './classes.js';
import { withoutPageMarks } from './pages.js';
import { ts } from './sources.js';

/** `lm.Small` for the class Small that experiments/lm.ts exports; undefined for a class that has no such name. */
export function experimentName(entry: ClassEntry): string | undefined {
  const { fileName } = entry.node.getSourceFile();
  const below = /(?:^|\/)experiments\/(?!.*\/experiments\/)(.+)\.[cm]?[jt]s$/.exec(fileName)?.[1];
  const isExported =
    ts.isClassDeclaration(entry.node) &&
    ts.getModifiers(entry.node)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) === true;
  if (entry.kind !== 'experiment' || below === undefined || !isExported) return undefined;
  return `${withoutPageMarks(below).replaceAll('/', '.')}.${entry.name}`;
}

/** The experiments that a name, or the end of one, stands for in a file: a page means its own, if it has them. */
export function experimentsNamed(classes: Classes, name: string, file: string): ClassEntry[] {
  const { sources } = classes;
  const found = classes.all.filter((entry) => {
    const whole = experimentName(entry);
    return whole !== undefined && (whole === name || whole.endsWith(`.${name}`));
  });
  const shownBy = (entry: ClassEntry) => {
    const source = entry.node.getSourceFile();
    return sources.isPage(source) ? sources.fileOf(source) : undefined;
  };
  const own = found.filter((entry) => shownBy(entry) === file);
  return own.length > 0 ? own : found.filter((entry) => shownBy(entry) === undefined);
}

/** The command that `position` stands in: its line, with those that a backslash joins to it. */
export function commandAt(text: string, position: number): string {
  let start = text.lastIndexOf('\n', position - 1) + 1;
  while (start > 0 && /\\\s*$/.test(lineBefore(text, start))) start = text.lastIndexOf('\n', start - 2) + 1;
  let end = endOfLine(text, position);
  while (end < text.length && /\\\s*$/.test(text.slice(start, end))) end = endOfLine(text, end + 1);
  return text.slice(start, end);
}

function lineBefore(text: string, start: number): string {
  return text.slice(text.lastIndexOf('\n', start - 2) + 1, start - 1);
}

function endOfLine(text: string, position: number): number {
  const end = text.indexOf('\n', position);
  return end === -1 ? text.length : end;
}

/** The experiment that a command names, as it is written. */
export function experimentOf(command: string): string | undefined {
  const flag = /--exp(?:=|\s+)\\?["']?([\w$.-]+)/.exec(command)?.[1];
  return (
    flag ?? /\bluthier\s+(?:dump|analyze|codegen|graph|validate|snapshot|diff)\s+([\w$.]+)/.exec(command)?.[1]
  );
}

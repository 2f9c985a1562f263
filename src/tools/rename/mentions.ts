/** @file Mentions of an old name that types do not reach: in strings, comments, scripts and documents. */
import { Node, type SourceFile, SyntaxKind, ts } from 'ts-morph';
import type { RenameProject } from './renameProject.js';

/** A place for a person to look at. */
export interface Mention {
  /** Relative to the project. */
  readonly file: string;
  /** Counted from 1. */
  readonly line: number;
  /** The line, without the spaces around it. */
  readonly text: string;
}

/** Every line of the project with `name` out of reach of renaming by types, after the sources were changed. */
export function mentionsOf(
  project: RenameProject,
  name: string,
  isKept: (text: string) => boolean,
): Mention[] {
  const word = new RegExp(`(?<![\\w$])${name.replaceAll('$', '\\$')}(?![\\w$])`, 'g');
  const found = new Map<string, Mention>();
  const add = (file: string, text: string, position: number) => {
    const start = text.lastIndexOf('\n', position - 1) + 1;
    const end = text.indexOf('\n', position);
    const line = text.slice(0, start).split('\n').length;
    const shown = text.slice(start, end === -1 ? undefined : end).trim();
    if (!isKept(shown)) found.set(`${file}:${line}`, { file, line, text: shown });
  };
  for (const source of project.sources) {
    const text = source.getFullText();
    if (!text.includes(name)) continue;
    for (const position of untypedPositions(source, name, word))
      add(project.show(source.getFilePath()), text, position);
  }
  for (const [file, text] of project.texts())
    for (const { index } of text.matchAll(word)) add(project.show(file), text, index);
  return [...found.values()].sort((a, b) => (a.file === b.file ? a.line - b.line : a.file < b.file ? -1 : 1));
}

/** Positions of the name in comments, in strings and templates, and in objects without a type of their own. */
function untypedPositions(source: SourceFile, name: string, word: RegExp): number[] {
  const text = source.getFullText();
  const isCode = new Uint8Array(text.length);
  const positions: number[] = [];
  source.forEachDescendant((node) => {
    if (!Node.isIdentifier(node) && !Node.isPrivateIdentifier(node)) return;
    isCode.fill(1, node.getStart(), node.getEnd());
    if (node.getText() === name && isUntyped(node)) positions.push(node.getStart());
  });
  for (const { index } of text.matchAll(word)) if (isCode[index] === 0) positions.push(index);
  return positions;
}

/** Whether a member or key is of an untyped object. */
function isUntyped(node: Node): boolean {
  const parent = node.getParent();
  if (Node.isPropertyAccessExpression(parent) && parent.getNameNode() === node)
    return (parent.getExpression().getType().getFlags() & ts.TypeFlags.Any) !== 0;
  const isKey = Node.isPropertyAssignment(parent) || Node.isShorthandPropertyAssignment(parent);
  if (!isKey || parent.getNameNode() !== node) return false;
  // Another field of that name is declared here.
  if (node.getType().getProperty('_zod') !== undefined) return false;
  const object = parent.getParentIfKindOrThrow(SyntaxKind.ObjectLiteralExpression);
  const wanted = object.getContextualType()?.getNonNullableType().getProperty(node.getText());
  // A generic function infers its argument's type from the object itself.
  return wanted === undefined || wanted.getDeclarations().includes(parent);
}

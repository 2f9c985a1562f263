/** @file Where a name stands in TypeScript, and the properties that it means there. */
import type { Edit } from './edits.js';
import { type Sources, ts, visitNodes } from './sources.js';

/** A place where a name stands: an identifier, or a string that is it. */
export type Mention = ts.Identifier | ts.StringLiteralLike;

/** Every mention of `name` in `files`. */
export function mentionsOf(files: Iterable<ts.SourceFile>, name: string): Mention[] {
  const found: Mention[] = [];
  for (const file of files) {
    if (!file.text.includes(name)) continue;
    visitNodes(file, (node) => {
      const isName = ts.isIdentifier(node) || ts.isStringLiteralLike(node);
      if (isName && node.text === name) found.push(node);
    });
  }
  return found;
}

/** The types that the context asks of an object literal, or of another expression. */
export function wantedTypes(sources: Sources, node: ts.Expression): ts.Type[] {
  const { checker } = sources;
  const wanted = checker.getContextualType(node);
  const call = node.parent;
  // Object.assign takes anything, and writes it into what it is given first.
  const isAssigned =
    ts.isCallExpression(call) &&
    call.expression.getText() === 'Object.assign' &&
    call.arguments.indexOf(node) > 0;
  const target = isAssigned ? [checker.getTypeAtLocation(call.arguments[0]!)] : [];
  return wanted === undefined ? target : [...target, wanted];
}

/** The declarations of the properties that a mention means; none where it means no property, or types don't say. */
export function meantBy(sources: Sources, mention: Mention): ts.Declaration[] {
  const { checker } = sources;
  const { parent } = mention;
  const isKey = ts.isObjectLiteralElementLike(parent) && parent.name === mention;
  if (isKey && ts.isObjectLiteralExpression(parent.parent)) return meantByKey(sources, parent, mention);
  if (ts.isBindingElement(parent) && (parent.propertyName ?? parent.name) === mention) {
    if (!ts.isObjectBindingPattern(parent.parent) || parent.dotDotDotToken !== undefined) return [];
    return sources.declarationsIn(checker.getTypeAtLocation(parent.parent), mention.text);
  }
  const isMember = ts.isPropertyAccessExpression(parent) && parent.name === mention;
  const isDeclared = (ts.isClassElement(parent) || ts.isTypeElement(parent)) && parent.name === mention;
  const isElement = ts.isElementAccessExpression(parent) && parent.argumentExpression === mention;
  const isIndex = ts.isLiteralTypeNode(parent) && ts.isIndexedAccessTypeNode(parent.parent);
  if (isElement) return sources.declarationsIn(checker.getTypeAtLocation(parent.expression), mention.text);
  if (isIndex) {
    const { objectType } = parent.parent as ts.IndexedAccessTypeNode;
    return sources.declarationsIn(checker.getTypeFromTypeNode(objectType), mention.text);
  }
  return isMember || isDeclared ? sources.declarationsOf(checker.getSymbolAtLocation(mention)) : [];
}

function meantByKey(
  sources: Sources,
  property: ts.ObjectLiteralElementLike,
  mention: Mention,
): ts.Declaration[] {
  const { checker } = sources;
  const literal = property.parent as ts.ObjectLiteralExpression;
  const isTarget = ts.isIdentifier(mention) && isAssigned(literal);
  const destructured = isTarget ? checker.getPropertySymbolOfDestructuringAssignment(mention) : undefined;
  const wanted = wantedTypes(sources, literal).flatMap((type) => sources.declarationsIn(type, mention.text));
  return [property, ...sources.declarationsOf(destructured), ...wanted];
}

/** Whether a literal is a pattern: `({ heads } = config)`. */
function isAssigned(literal: ts.Expression): boolean {
  const { parent } = literal;
  if (ts.isParenthesizedExpression(parent) || ts.isArrayLiteralExpression(parent)) return isAssigned(parent);
  if (ts.isPropertyAssignment(parent)) return isAssigned(parent.parent);
  if (ts.isForOfStatement(parent)) return parent.initializer === literal;
  const isAssignment =
    ts.isBinaryExpression(parent) && parent.operatorToken.kind === ts.SyntaxKind.EqualsToken;
  return isAssignment && parent.left === literal;
}

/** The edit that gives the property meant by a mention another name; what is local keeps its own. */
export function editOf(mention: Mention, name: string): Edit {
  const { parent } = mention;
  const [start, end] = [mention.getStart(), mention.getEnd()];
  if (ts.isStringLiteralLike(mention)) return { start: start + 1, end: end - 1, text: name };
  if (ts.isShorthandPropertyAssignment(parent)) return { start, end, text: `${name}: ${mention.text}` };
  if (ts.isPropertyAssignment(parent) && parent.name === mention && isNamed(parent.initializer, name)) {
    return { start, end: parent.initializer.getEnd(), text: name };
  }
  if (ts.isBindingElement(parent)) {
    if (parent.propertyName === undefined) return { start, end, text: `${name}: ${mention.text}` };
    if (isNamed(parent.name, name)) return { start, end: parent.name.getEnd(), text: name };
  }
  return { start, end, text: name };
}

function isNamed(node: ts.Node, name: string): boolean {
  return ts.isIdentifier(node) && node.text === name;
}

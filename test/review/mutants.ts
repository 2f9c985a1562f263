/** @file Mutations of source files: changes of one line that compile to something else, by the syntax tree. */
import ts from 'typescript';

/** A change of one line. */
export interface Mutation {
  readonly kind: string;
  /** Place in the text that is replaced. */
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
}

const operators: Readonly<Record<string, string>> = {
  '+': '-',
  '-': '+',
  '*': '/',
  '/': '*',
  '%': '*',
  '**': '*',
};

const comparisons: Readonly<Record<string, string>> = {
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '===': '!==',
  '!==': '===',
  '&&': '||',
  '||': '&&',
};

/** Methods and those of the same signature, both ways. */
const pairs = [
  ...[
    ['add', 'sub'],
    ['mul', 'div'],
    ['sum', 'mean'],
    ['maximum', 'minimum'],
    ['relu', 'tanh'],
    ['exp', 'expm1'],
  ],
  ...[
    ['sin', 'cos'],
    ['sqrt', 'square'],
    ['less', 'greater'],
    ['equal', 'notEqual'],
    ['floor', 'ceil'],
    ['max', 'min'],
  ],
  ...[
    ['some', 'every'],
    ['push', 'unshift'],
    ['onesLike', 'zerosLike'],
    ['neg', 'abs'],
    ['find', 'findLast'],
  ],
];
const renamed = new Map(
  pairs.flatMap(([a, b]) => [
    [a!, b!],
    [b!, a!],
  ]),
);

/** What people read: a change of it computes the same. */
function isMessage(node: ts.Node): boolean {
  for (let at = node; !ts.isStatement(at) && at.parent !== undefined; at = at.parent) {
    const { parent } = at;
    if (ts.isNewExpression(parent) && /Error$/.test(parent.expression.getText())) return true;
    if (ts.isCallExpression(parent)) {
      if (/(?:^|\.)(?:describe|error|check|report)$/.test(parent.expression.getText())) return true;
    }
    if (ts.isPropertyAssignment(parent) && parent.name.getText() === 'error') return true;
  }
  return false;
}

function changedNumber(text: string): string {
  const value = Number(text.replaceAll('_', ''));
  return String(Number.isInteger(value) ? value + 1 : value * 1.4);
}

const isText = (node: ts.Node): boolean => ts.isStringLiteralLike(node) || ts.isTemplateExpression(node);

/** Whether a literal is the value that a field has where nobody sets it. */
const isDefault = ({ parent }: ts.Node): boolean =>
  ts.isCallExpression(parent) && /\.default$/.test(parent.expression.getText());

/** The changes of one node, each with its kind: what stands there, and what is to stand there. */
function* changesOf(node: ts.Node): Generator<readonly [kind: string, of: ts.Node, replacement: string]> {
  if (ts.isNumericLiteral(node) && !isMessage(node))
    yield [isDefault(node) ? 'default' : 'number', node, changedNumber(node.text)];
  else if (node.kind === ts.SyntaxKind.TrueKeyword || node.kind === ts.SyntaxKind.FalseKeyword)
    yield [isDefault(node) ? 'default' : 'boolean', node, String(node.kind === ts.SyntaxKind.FalseKeyword)];
  else if (ts.isStringLiteral(node) && !isMessage(node)) {
    const { parent } = node;
    const isName = ts.isImportDeclaration(parent) || ts.isExportDeclaration(parent);
    if (!isName && !ts.isPropertyAssignment(parent.parent))
      yield ['string', node, JSON.stringify(`${node.text}_`)];
  } else if (ts.isBinaryExpression(node)) {
    const { left, operatorToken, right } = node;
    const text = operatorToken.getText();
    if (Object.hasOwn(operators, text) && !isText(left) && !isText(right) && !isMessage(node))
      yield ['operator', operatorToken, operators[text]!];
    if (Object.hasOwn(comparisons, text)) yield ['comparison', operatorToken, comparisons[text]!];
  } else if (ts.isIfStatement(node)) yield ['condition', node.expression, `!(${node.expression.getText()})`];
  else if (ts.isConditionalExpression(node))
    yield ['condition', node.condition, `!(${node.condition.getText()})`];
  else if (ts.isExpressionStatement(node)) yield ['statement', node, ';'];
  else if (ts.isCallExpression(node)) yield* changesOfCall(node);
  else if (
    ts.isPropertyAssignment(node) ||
    ts.isShorthandPropertyAssignment(node) ||
    ts.isSpreadAssignment(node)
  ) {
    if (!isMessage(node)) yield ['property', node, '...{}'];
  }
}

function* changesOfCall(node: ts.CallExpression): Generator<readonly [string, ts.Node, string]> {
  const { expression: callee, arguments: given } = node;
  const [first, second] = given;
  if (first !== undefined && second !== undefined) {
    const [a, b] = [first.getText(), second.getText()];
    const both = { getStart: () => first.getStart(), getEnd: () => second.getEnd() } as ts.Node;
    if (a !== b) yield ['arguments', both, `${b}, ${a}`];
  }
  if (!ts.isPropertyAccessExpression(callee)) return;
  const method = renamed.get(callee.name.text);
  if (method !== undefined) yield ['method', callee.name, method];
  if (first !== undefined && /^(?:tf|Math)$/.test(callee.expression.getText()))
    yield ['call', node, `(${first.getText()})`];
}

/** All mutations of a file, in the order of its text. */
export function mutationsOf(text: string): Mutation[] {
  const file = ts.createSourceFile('file.ts', text, ts.ScriptTarget.Latest, true);
  const found: Mutation[] = [];
  const lineOf = (position: number): number => file.getLineAndCharacterOfPosition(position).line;
  const visit = (node: ts.Node): void => {
    if (ts.isTypeNode(node) || ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node)) return;
    for (const [kind, of, replacement] of changesOf(node)) {
      const [start, end] = [of.getStart(), of.getEnd()];
      if (lineOf(start) === lineOf(end)) found.push({ kind, start, end, replacement });
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

/** The text with the mutation. */
export const mutated = (text: string, { start, end, replacement }: Mutation): string =>
  text.slice(0, start) + replacement + text.slice(end);

/** The mutation as a reader of a diff sees it. */
export function shown(file: string, text: string, mutation: Mutation): string {
  const begin = text.lastIndexOf('\n', mutation.start - 1) + 1;
  const lineEnd = text.indexOf('\n', mutation.end);
  const old = text.slice(begin, lineEnd).trim();
  const moved = { ...mutation, start: mutation.start - begin, end: mutation.end - begin };
  const now = mutated(text.slice(begin, lineEnd), moved).trim();
  const line = text.slice(0, mutation.start).split('\n').length;
  return `${file}:${line} (${mutation.kind})\n  - ${old}\n  + ${now}`;
}

/** @file Meaning of expressions in source text: names, classes made from other classes, and values that are no class. */
import type ts from 'typescript';

/** Methods of experiments' base classes that return a class. */
const classMakers = new Set(['with', 'preset', 'of']);

/** A class that is made from another one: `Base.with({…}).preset({…})` has a base and two records. */
export interface Heritage {
  /** The dotted name that the class is made from, or of the function that makes it; empty where there is none. */
  readonly base: readonly string[];
  readonly records: readonly { readonly method: string; readonly record: ts.Expression }[];
  /** Those of the methods above that were called, the last one first; '' for any other method or function. */
  readonly calls: readonly string[];
}

/** An expression without parentheses and statements of its type. */
function bare(compiler: typeof ts, expression: ts.Expression): ts.Expression {
  let node = expression;
  while (
    compiler.isParenthesizedExpression(node) ||
    compiler.isAsExpression(node) ||
    compiler.isSatisfiesExpression(node) ||
    compiler.isNonNullExpression(node) ||
    compiler.isTypeAssertionExpression(node)
  )
    node = node.expression;
  return node;
}

export function heritageOf(compiler: typeof ts, expression: ts.Expression): Heritage {
  const base: string[] = [];
  const records: Heritage['records'][number][] = [];
  const calls: string[] = [];
  let node = expression;
  for (;;) {
    node = bare(compiler, node);
    if (compiler.isIdentifier(node)) return { base: [node.text, ...base], records, calls };
    if (compiler.isPropertyAccessExpression(node)) {
      base.unshift(node.name.text);
      node = node.expression;
    } else if (compiler.isCallExpression(node)) {
      const called: ts.Expression = node.expression;
      const isMethod = compiler.isPropertyAccessExpression(called) && classMakers.has(called.name.text);
      const method = isMethod ? called.name.text : '';
      records.unshift(...node.arguments.map((record) => ({ method, record })));
      // A property of a returned value may be anything.
      calls.push(...(base.length > 0 ? [''] : []), method);
      // These methods return a class of the family that they are called on.
      node = isMethod ? called.expression : called;
      base.length = 0;
    } else return { base: [], records, calls };
  }
}

/** The value of a constant. */
export type Value =
  | { readonly kind: 'class'; readonly node: ts.ClassExpression }
  | { readonly kind: 'record'; readonly node: ts.ObjectLiteralExpression }
  /** A name, or a class or other value that is made by calls. */
  | { readonly kind: 'made'; readonly heritage: Heritage }
  /** A number, say, or a function: no class. */
  | { readonly kind: 'plain' }
  | { readonly kind: 'unknown' };

/** The value of an expression, as far as it can be read. @param type a statement of its type */
export function valueIn(compiler: typeof ts, expression: ts.Expression, type?: ts.TypeNode): Value {
  const node = bare(compiler, expression);
  if (compiler.isClassExpression(node)) return { kind: 'class', node };
  if (compiler.isObjectLiteralExpression(node)) return { kind: 'record', node };
  if (isPlain(compiler, node) || (type !== undefined && isPlainType(compiler, type)))
    return { kind: 'plain' };
  const heritage = heritageOf(compiler, node);
  return heritage.base.length === 0 ? { kind: 'unknown' } : { kind: 'made', heritage };
}

function isPlain(compiler: typeof ts, node: ts.Expression): boolean {
  const { SyntaxKind } = compiler;
  if (compiler.isNewExpression(node))
    return !(compiler.isIdentifier(node.expression) && /^(Proxy|Function)$/.test(node.expression.text));
  if (compiler.isCallExpression(node)) {
    const [first] = node.arguments;
    const called = /^(Object|Array)\.(\w+)$/.exec(node.expression.getText());
    if (called === null || first === undefined) return false;
    // `Object.freeze(Small)` is a class yet.
    const isReturned = /^(assign|freeze|seal|preventExtensions|definePropert(y|ies)|setPrototypeOf)$/.test(
      called[2]!,
    );
    return !isReturned || compiler.isObjectLiteralExpression(first) || isPlain(compiler, first);
  }
  if (compiler.isBinaryExpression(node)) {
    const { kind } = node.operatorToken;
    const choices = [
      SyntaxKind.BarBarToken,
      SyntaxKind.AmpersandAmpersandToken,
      SyntaxKind.QuestionQuestionToken,
    ];
    if ((choices as ts.SyntaxKind[]).includes(kind))
      return [node.left, node.right].every((each) => isPlain(compiler, bare(compiler, each)));
    return kind !== SyntaxKind.CommaToken && !isSetting(compiler, kind);
  }
  return (
    compiler.isLiteralExpression(node) ||
    compiler.isTemplateExpression(node) ||
    compiler.isArrayLiteralExpression(node) ||
    compiler.isArrowFunction(node) ||
    compiler.isFunctionExpression(node) ||
    compiler.isPrefixUnaryExpression(node) ||
    compiler.isPostfixUnaryExpression(node) ||
    compiler.isTypeOfExpression(node) ||
    compiler.isVoidExpression(node) ||
    isVariable(compiler, node) ||
    [SyntaxKind.TrueKeyword, SyntaxKind.FalseKeyword, SyntaxKind.NullKeyword].includes(node.kind)
  );
}

/** A variable of the environment: `process.env.X`. */
const isVariable = (compiler: typeof ts, node: ts.Expression): boolean =>
  compiler.isPropertyAccessExpression(node) && /^process\.env\b/.test(node.getText());

const isSetting = (compiler: typeof ts, kind: ts.SyntaxKind): boolean =>
  kind >= compiler.SyntaxKind.FirstAssignment && kind <= compiler.SyntaxKind.LastAssignment;

function isPlainType(compiler: typeof ts, type: ts.TypeNode): boolean {
  const { SyntaxKind } = compiler;
  const kinds: ts.SyntaxKind[] = [
    SyntaxKind.NumberKeyword,
    SyntaxKind.StringKeyword,
    SyntaxKind.BooleanKeyword,
  ];
  return kinds.includes(type.kind) || compiler.isArrayTypeNode(type) || compiler.isTupleTypeNode(type);
}

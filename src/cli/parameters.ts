/** @file Number of arguments that a function takes at most. */
import { createRequire } from 'node:module';
import type ts from 'typescript';

/**
 * Reads the function's source text: its `length` counts no parameter from the first default on.
 *
 * @returns Infinity for a function with a rest parameter, one that reads `arguments`, and a native one.
 */
export function mostArguments(fn: (...values: never[]) => unknown): number {
  const text = Function.prototype.toString.call(fn);
  // Required here, for few commands need it, and loading it takes a third of a second.
  const compiler: typeof ts = createRequire(import.meta.url)('typescript');
  const [statement] = compiler.createSourceFile('f.js', `(${text})`, compiler.ScriptTarget.Latest).statements;
  if (statement === undefined || !compiler.isExpressionStatement(statement)) return Number.POSITIVE_INFINITY;
  const { expression } = statement.expression as ts.ParenthesizedExpression;
  const isArrow = compiler.isArrowFunction(expression);
  if (!isArrow && !compiler.isFunctionExpression(expression)) return Number.POSITIVE_INFINITY;
  const isOpen = !isArrow && /\barguments\b|\[native code\]/.test(text);
  const hasRest = expression.parameters.some(({ dotDotDotToken }) => dotDotDotToken !== undefined);
  return isOpen || hasRest ? Number.POSITIVE_INFINITY : expression.parameters.length;
}

/**
 * @file Mutations that StrykerJS lacks, after slips of engineers: a call, key, field or argument left out, two calls or
 * arguments in each other's place, a number one off, a default that takes the place of 0.
 */
import ts from 'typescript';

/** A change of a file's text: characters from `start` to before `end` become `replacement`. */
export interface Change {
  readonly kind: string;
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
}

type Slip = (node: ts.Node, text: (node: ts.Node) => string) => Omit<Change, 'kind'>[];

/** Where an item of a list is left out, with one of the commas around it. */
function withoutItem(items: ts.NodeArray<ts.Node>, index: number): Omit<Change, 'kind'> {
  const [start, end] =
    index + 1 < items.length
      ? [items[index]!.getStart(), items[index + 1]!.getStart()]
      : [index > 0 ? items[index - 1]!.getEnd() : items[index]!.getStart(), items[index]!.getEnd()];
  return { start, end, replacement: '' };
}

const isCall = (node: ts.Node | undefined): node is ts.ExpressionStatement => {
  if (node === undefined || !ts.isExpressionStatement(node)) return false;
  const { expression } = node;
  const called = ts.isAwaitExpression(expression) ? expression.expression : expression;
  return ts.isCallExpression(called) && called.expression.kind !== ts.SyntaxKind.SuperKeyword;
};

const slips: Readonly<Record<string, Slip>> = {
  DroppedCall: (node) =>
    isCall(node) ? [{ start: node.getStart(), end: node.getEnd(), replacement: ';' }] : [],

  SwappedCalls(node, text) {
    if (!ts.isBlock(node) && !ts.isSourceFile(node)) return [];
    return node.statements.flatMap((statement, index) => {
      const next = node.statements[index + 1];
      if (!isCall(statement) || !isCall(next) || text(statement) === text(next)) return [];
      const between = node.getSourceFile().text.slice(statement.getEnd(), next.getStart());
      return [
        {
          start: statement.getStart(),
          end: next.getEnd(),
          replacement: text(next) + between + text(statement),
        },
      ];
    });
  },

  DroppedItem(node) {
    if (ts.isArrayLiteralExpression(node) && node.elements.length > 1)
      return node.elements.map((_, index) => withoutItem(node.elements, index));
    if (ts.isObjectLiteralExpression(node))
      return node.properties.map((_, index) => withoutItem(node.properties, index));
    if (ts.isCallExpression(node) && node.arguments.length > 1)
      return [withoutItem(node.arguments, node.arguments.length - 1)];
    return [];
  },

  DroppedHole(node) {
    if (!ts.isTemplateExpression(node)) return [];
    return node.templateSpans.map(({ expression, literal }) => ({
      start: expression.getFullStart() - 2,
      end: literal.getStart() + 1,
      replacement: '',
    }));
  },

  SwappedArguments(node, text) {
    if (!ts.isCallExpression(node)) return [];
    return node.arguments.slice(1).flatMap((second, index) => {
      const first = node.arguments[index]!;
      if (!ts.isIdentifier(first) || !ts.isIdentifier(second)) return [];
      return [
        { start: first.getStart(), end: second.getEnd(), replacement: `${text(second)}, ${text(first)}` },
      ];
    });
  },

  NextNumber(node, text) {
    if (!ts.isNumericLiteral(node) || !/^\d+$/.test(text(node))) return [];
    return [{ start: node.getStart(), end: node.getEnd(), replacement: String(Number(text(node)) + 1) }];
  },

  DefaultOfFalsy(node) {
    if (!ts.isBinaryExpression(node) || node.operatorToken.kind !== ts.SyntaxKind.QuestionQuestionToken)
      return [];
    const { operatorToken } = node;
    return [{ start: operatorToken.getStart(), end: operatorToken.getEnd(), replacement: '||' }];
  },
};

/** All slips that a file allows, in the order of its text. Types and imports have none. */
export function slipsIn(fileName: string, content: string): Change[] {
  const source = ts.createSourceFile(fileName, content, ts.ScriptTarget.Latest, true);
  const changes: Change[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isTypeNode(node) || ts.isImportDeclaration(node) || ts.isInterfaceDeclaration(node)) return;
    for (const [kind, slip] of Object.entries(slips))
      for (const change of slip(node, (of) => of.getText(source))) changes.push({ kind, ...change });
    ts.forEachChild(node, visit);
  };
  visit(source);
  return changes.sort((a, b) => a.start - b.start);
}

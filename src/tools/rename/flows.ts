/** @file Where objects without a type of their own become values of fields: `{...base}`, `X.config(values)`. */
import { wantedTypes } from './mentions.js';
import { type Sources, ts, visitNodes } from './sources.js';

/** An expression whose property is taken for another's. */
export interface Flow {
  readonly node: ts.Expression;
  /** Declarations of the property in what is given. */
  readonly given: readonly ts.Declaration[];
  /** Declarations of the property in what is asked for. */
  readonly wanted: readonly ts.Declaration[];
}

/** Every place in `files` where an object with a property `name` is given for one that has it, too. */
export function flowsOf(sources: Sources, files: Iterable<ts.SourceFile>, name: string): Flow[] {
  const flows: Flow[] = [];
  for (const file of files) {
    visitNodes(file, (node) => {
      for (const { given, wanted } of givenIn(sources, node)) {
        const from = sources.declarationsIn(sources.checker.getTypeAtLocation(given), name);
        if (from.length === 0) continue;
        const to = wanted().flatMap((type) => sources.declarationsIn(type, name));
        if (to.length > 0) flows.push({ node: given, given: from, wanted: to });
      }
    });
  }
  return flows;
}

interface Given {
  readonly given: ts.Expression;
  readonly wanted: () => ts.Type[];
}

/** The expressions that a node hands on to something with a type. Literals show their keys themselves. */
function givenIn(sources: Sources, node: ts.Node): Given[] {
  const handed = (given: ts.Expression | undefined, at: ts.Expression | undefined = given): Given[] =>
    given === undefined ||
    at === undefined ||
    ts.isObjectLiteralExpression(given) ||
    ts.isLiteralExpression(given)
      ? []
      : [{ given, wanted: () => wantedTypes(sources, at) }];
  if (ts.isSpreadAssignment(node)) return handed(node.expression, node.parent);
  if (ts.isCallExpression(node) || ts.isNewExpression(node)) {
    return (node.arguments ?? []).flatMap((argument) => handed(argument));
  }
  if (ts.isVariableDeclaration(node)) return node.type === undefined ? [] : handed(node.initializer);
  if (ts.isReturnStatement(node)) return handed(node.expression);
  if (ts.isPropertyAssignment(node)) return handed(node.initializer);
  return [];
}

/** Whether a declaration is a key of a literal whose context asks for nothing: it is named as it is by chance. */
export function isFree(sources: Sources, declaration: ts.Declaration, name: string): boolean {
  const literal = declaration.parent;
  if (!ts.isObjectLiteralExpression(literal)) return false;
  return wantedTypes(sources, literal).every((type) => sources.declarationsIn(type, name).length === 0);
}

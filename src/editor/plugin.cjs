// @ts-check
/**
 * @file A plugin of the TypeScript language service: where an editor shows a hyperparameter, it shows what its schema
 * says in `.describe('…')` and `.default(…)`. Named in tsconfig.json; CommonJS, for tsserver loads it by `require`.
 */
'use strict';

/** @typedef {typeof import('typescript')} TS */
/** @typedef {{ description: string | undefined, default: string | undefined }} Notes */

// A schema may be a constant that is another constant: further than this, nobody follows by eye either.
const furthest = 8;
const longestDefault = 80;

/** @param {{ typescript: TS }} modules */
module.exports = function init({ typescript: ts }) {
  return { create: (/** @type {import('typescript').server.PluginCreateInfo} */ info) => create(ts, info) };
};

/**
 * @param {TS} ts
 * @param {import('typescript').server.PluginCreateInfo} info
 */
function create(ts, info) {
  const service = info.languageService;
  /** What the schema of the hyperparameter says, or undefined for any other symbol. An editor outlives any mistake here. */
  const notesOf = (
    /** @type {(program: import('typescript').Program) => import('typescript').Symbol | undefined} */ find,
  ) => {
    try {
      const program = service.getProgram();
      const symbol = program && find(program);
      return symbol && notesOfSymbol(ts, symbol, program.getTypeChecker());
    } catch (error) {
      info.project.projectService.logger.info(`luthier-editor: ${error}`);
      return undefined;
    }
  };
  return Object.assign(Object.create(null), service, {
    /** @type {import('typescript').LanguageService['getQuickInfoAtPosition']} */
    getQuickInfoAtPosition(fileName, position, ...rest) {
      const given = service.getQuickInfoAtPosition(fileName, position, ...rest);
      return (
        given &&
        annotated(
          given,
          notesOf((program) => symbolAt(ts, program, fileName, position)),
        )
      );
    },
    /** @type {import('typescript').LanguageService['getCompletionEntryDetails']} */
    getCompletionEntryDetails(fileName, position, name, options, source, preferences, data) {
      const given = service.getCompletionEntryDetails(
        fileName,
        position,
        name,
        options,
        source,
        preferences,
        data,
      );
      if (given === undefined) return given;
      return annotated(
        given,
        notesOf(() => service.getCompletionEntrySymbol(fileName, position, name, source)),
      );
    },
  });
}

/**
 * @template {{ documentation?: import('typescript').SymbolDisplayPart[], tags?: import('typescript').JSDocTagInfo[] }} T
 * @param {T} info
 * @param {Notes | undefined} notes
 * @returns {T}
 */
function annotated(info, notes) {
  if (notes === undefined) return info;
  const documentation = [...(info.documentation ?? [])];
  const tags = [...(info.tags ?? [])];
  if (notes.description !== undefined) {
    if (documentation.length > 0) documentation.push({ kind: 'lineBreak', text: '\n\n' });
    documentation.push({ kind: 'text', text: notes.description });
  }
  if (notes.default !== undefined && !tags.some((tag) => tag.name === 'default')) {
    tags.push({ name: 'default', text: [{ kind: 'text', text: notes.default }] });
  }
  return { ...info, documentation, tags };
}

/**
 * The symbol under the cursor; in `config({ field: … })` it is the field that the literal is checked against.
 *
 * @param {TS} ts
 * @param {import('typescript').Program} program
 * @param {string} fileName
 * @param {number} position
 */
function symbolAt(ts, program, fileName, position) {
  const file = program.getSourceFile(fileName);
  if (file === undefined) return undefined;
  /** @returns {import('typescript').Node} */
  const innermost = (/** @type {import('typescript').Node} */ node) => {
    const holds = (/** @type {import('typescript').Node} */ child) =>
      child.getStart(file) <= position && position <= child.getEnd() ? child : undefined;
    const child = ts.forEachChild(node, holds);
    return child === undefined ? node : innermost(child);
  };
  const token = innermost(file);
  const checker = program.getTypeChecker();
  const { parent } = token;
  const isKey =
    (ts.isPropertyAssignment(parent) || ts.isShorthandPropertyAssignment(parent)) && parent.name === token;
  if (isKey && ts.isObjectLiteralExpression(parent.parent)) {
    const wanted = checker.getContextualType(parent.parent);
    const field = wanted && propertyOf(checker, wanted, token.getText(file));
    if (field !== undefined) return field;
  }
  return checker.getSymbolAtLocation(token);
}

/**
 * @param {import('typescript').TypeChecker} checker
 * @param {import('typescript').Type} type
 * @param {string} name
 */
function propertyOf(checker, type, name) {
  return checker.getPropertyOfType(checker.getNonNullableType(type), name.replace(/^['"]|['"]$/g, ''));
}

/**
 * @param {TS} ts
 * @param {import('typescript').Symbol} symbol
 * @param {import('typescript').TypeChecker} checker
 * @returns {Notes | undefined}
 */
function notesOfSymbol(ts, symbol, checker) {
  // The types of a config lead back to the properties of `with({ … })`; of several, the last is the subclass's own.
  for (const declaration of [...(symbol.declarations ?? [])].reverse()) {
    const schema = schemaOf(ts, declaration, checker);
    if (schema === undefined || checker.getTypeAtLocation(schema).getProperty('_zod') === undefined) continue;
    /** @type {Notes} */
    const notes = { description: undefined, default: undefined };
    readSchema(ts, schema, checker, notes, 0);
    if (notes.description !== undefined || notes.default !== undefined) return notes;
  }
  return undefined;
}

/**
 * The expression that a declaration gives its name to.
 *
 * @param {TS} ts
 * @param {import('typescript').Declaration} declaration
 * @param {import('typescript').TypeChecker} checker
 * @returns {import('typescript').Expression | undefined}
 */
function schemaOf(ts, declaration, checker) {
  if (ts.isPropertyAssignment(declaration) || ts.isVariableDeclaration(declaration))
    return declaration.initializer;
  if (!ts.isShorthandPropertyAssignment(declaration)) return undefined;
  const value = checker.getShorthandAssignmentValueSymbol(declaration)?.valueDeclaration;
  return value && ts.isVariableDeclaration(value) ? value.initializer : undefined;
}

/**
 * Reads the calls of `schema` from the last to the first: what was said last holds.
 *
 * @param {TS} ts
 * @param {import('typescript').Expression} schema
 * @param {import('typescript').TypeChecker} checker
 * @param {Notes} notes
 * @param {number} steps
 */
function readSchema(ts, schema, checker, notes, steps) {
  let at = unwrapped(ts, schema);
  while (ts.isCallExpression(at)) {
    const called = at.expression;
    const [argument] = at.arguments;
    if (!ts.isPropertyAccessExpression(called)) break;
    if (argument !== undefined) noteCall(ts, called.name.text, argument, notes);
    at = unwrapped(ts, called.expression);
  }
  // `tagged(schema, …)` and the like: the schema is what they are given first.
  const inner = ts.isCallExpression(at) ? at.arguments[0] : named(ts, at, checker);
  if (inner !== undefined && steps < furthest) readSchema(ts, inner, checker, notes, steps + 1);
}

/**
 * @param {TS} ts
 * @param {string} method
 * @param {import('typescript').Expression} argument
 * @param {Notes} notes
 */
function noteCall(ts, method, argument, notes) {
  if (method === 'describe') notes.description ??= textOf(ts, argument);
  if (method === 'meta' && ts.isObjectLiteralExpression(argument)) {
    for (const property of argument.properties) {
      const isText = ts.isPropertyAssignment(property) && property.name.getText() === 'description';
      if (isText) notes.description ??= textOf(ts, property.initializer);
    }
  }
  if (method === 'default' || method === 'prefault') {
    const text = argument.getText().replaceAll(/\s+/g, ' ');
    if (isLiteral(ts, argument) && text.length <= longestDefault) notes.default ??= text;
  }
}

/**
 * The expression that an identifier stands for, in this file or another.
 *
 * @param {TS} ts
 * @param {import('typescript').Expression} expression
 * @param {import('typescript').TypeChecker} checker
 */
function named(ts, expression, checker) {
  if (!ts.isIdentifier(expression) && !ts.isPropertyAccessExpression(expression)) return undefined;
  let symbol = checker.getSymbolAtLocation(expression);
  if (symbol !== undefined && (symbol.flags & ts.SymbolFlags.Alias) !== 0)
    symbol = checker.getAliasedSymbol(symbol);
  const declaration = symbol?.valueDeclaration;
  return declaration && schemaOf(ts, declaration, checker);
}

/**
 * The text of a string literal, or of several with `+` between them.
 *
 * @param {TS} ts
 * @param {import('typescript').Expression} expression
 * @returns {string | undefined}
 */
function textOf(ts, expression) {
  const at = unwrapped(ts, expression);
  if (ts.isStringLiteralLike(at)) return at.text;
  if (!ts.isBinaryExpression(at) || at.operatorToken.kind !== ts.SyntaxKind.PlusToken) return undefined;
  const left = textOf(ts, at.left);
  const right = textOf(ts, at.right);
  return left === undefined || right === undefined ? undefined : left + right;
}

/**
 * @param {TS} ts
 * @param {import('typescript').Expression} expression
 * @returns {boolean}
 */
function isLiteral(ts, expression) {
  if (ts.isPrefixUnaryExpression(expression)) return isLiteral(ts, expression.operand);
  if (ts.isArrayLiteralExpression(expression))
    return expression.elements.every((each) => isLiteral(ts, each));
  if (ts.isObjectLiteralExpression(expression)) {
    return expression.properties.every(
      (each) => ts.isPropertyAssignment(each) && isLiteral(ts, each.initializer),
    );
  }
  const { kind } = expression;
  const words = [ts.SyntaxKind.TrueKeyword, ts.SyntaxKind.FalseKeyword, ts.SyntaxKind.NullKeyword];
  return ts.isLiteralExpression(expression) || words.includes(kind);
}

/**
 * @param {TS} ts
 * @param {import('typescript').Expression} expression
 * @returns {import('typescript').Expression}
 */
function unwrapped(ts, expression) {
  return ts.isParenthesizedExpression(expression) ? unwrapped(ts, expression.expression) : expression;
}

/** @file Changes by the code of a source file to state of other modules: classes, globals, values that it imports. */
import type ts from 'typescript';

/** Functions that change their first argument. */
const changing =
  /^(Object\.(assign|definePropert(y|ies)|setPrototypeOf)|Reflect\.(set|defineProperty|deleteProperty|setPrototypeOf))$/;
/** Methods of lists, maps and sets that change them. */
const changingMethod = /^(push|unshift|splice|set|add|delete|clear)$/;
/** Functions of a process that change its environment. */
const changingProcess = /^process\.(loadEnvFile|chdir|umask)$/;

/** Names under which CommonJS exports. */
const own = new Set(['module', 'exports']);

/** Looks through one file. */
class Looking {
  private readonly declared = new Set<string>();
  /** Names of the project's own modules. */
  private readonly imported = new Set<string>();

  constructor(
    private readonly source: ts.SourceFile,
    private readonly compiler: typeof ts,
  ) {
    this.declare(source);
  }

  found(): boolean {
    return this.isFoundIn(this.source);
  }

  /** Notes the names that the file declares, whichever scope they have, and those of other modules of the project. */
  private declare(node: ts.Node): void {
    const { compiler } = this;
    if (compiler.isImportDeclaration(node)) {
      if (compiler.isStringLiteral(node.moduleSpecifier) && /^[./#]/.test(node.moduleSpecifier.text))
        this.importNames(node.importClause);
      return;
    }
    const { name } = node as { name?: ts.Node };
    const isBinding =
      compiler.isVariableDeclaration(node) ||
      compiler.isParameter(node) ||
      compiler.isBindingElement(node) ||
      compiler.isFunctionLike(node) ||
      compiler.isClassLike(node) ||
      compiler.isEnumDeclaration(node);
    if (isBinding && name !== undefined && compiler.isIdentifier(name)) this.declared.add(name.text);
    compiler.forEachChild(node, (child) => this.declare(child));
  }

  private importNames(clause: ts.ImportClause | undefined): void {
    const { compiler } = this;
    if (clause?.name) this.imported.add(clause.name.text);
    const bindings = clause?.namedBindings;
    if (bindings === undefined) return;
    const named = compiler.isNamespaceImport(bindings) ? [bindings] : bindings.elements;
    for (const { name } of named) this.imported.add(name.text);
  }

  private isFoundIn(node: ts.Node): boolean {
    const { compiler } = this;
    if (compiler.isTypeNode(node) && !compiler.isExpressionWithTypeArguments(node)) return false;
    // Of an import of a package for its effects, no more is known.
    if (compiler.isImportDeclaration(node))
      return (
        node.importClause === undefined &&
        compiler.isStringLiteral(node.moduleSpecifier) &&
        !/^[./#]/.test(node.moduleSpecifier.text)
      );
    return (
      this.changes(node) ||
      (compiler.forEachChild(node, (child) => this.isFoundIn(child) || undefined) ?? false)
    );
  }

  /** Whether a node itself changes something of others. */
  private changes(node: ts.Node): boolean {
    const { compiler } = this;
    const { SyntaxKind } = compiler;
    if (compiler.isBinaryExpression(node)) {
      const { kind } = node.operatorToken;
      const isAssignment = kind >= SyntaxKind.FirstAssignment && kind <= SyntaxKind.LastAssignment;
      return isAssignment && this.isOthers(node.left);
    }
    if (compiler.isPrefixUnaryExpression(node) || compiler.isPostfixUnaryExpression(node)) {
      const isStep =
        node.operator === SyntaxKind.PlusPlusToken || node.operator === SyntaxKind.MinusMinusToken;
      return isStep && this.isOthers(node.operand);
    }
    if (compiler.isDeleteExpression(node)) return this.isOthers(node.expression);
    return compiler.isCallExpression(node) && this.callChanges(node);
  }

  private callChanges({ expression, arguments: [first] }: ts.CallExpression): boolean {
    const { compiler } = this;
    if (!compiler.isPropertyAccessExpression(expression)) return false;
    const { expression: owner, name } = expression;
    const called = compiler.isIdentifier(owner) ? `${owner.text}.${name.text}` : '';
    if (changingProcess.test(called)) return true;
    if (changing.test(called)) return first !== undefined && this.isOthers(first, true);
    if (!changingMethod.test(name.text)) return false;
    const root = this.rootOf(owner);
    return root !== undefined && this.imported.has(root);
  }

  /** Whether a place is a member of something that this file does not declare, or of any class; or, if `isWhole`, is one. */
  private isOthers(place: ts.Expression, isWhole = false): boolean {
    const { compiler } = this;
    let at = this.bare(place);
    const isMember = compiler.isPropertyAccessExpression(at) || compiler.isElementAccessExpression(at);
    if (!isMember && !isWhole) return false;
    for (; compiler.isPropertyAccessExpression(at); at = this.bare(at.expression))
      if (at.name.text === 'prototype') return true;
    const root = this.rootOf(at);
    return root !== undefined && !this.declared.has(root) && !own.has(root);
  }

  /** The name that a chain of members begins with. */
  private rootOf(node: ts.Expression): string | undefined {
    const { compiler } = this;
    let at = this.bare(node);
    while (compiler.isPropertyAccessExpression(at) || compiler.isElementAccessExpression(at))
      at = this.bare(at.expression);
    return compiler.isIdentifier(at) ? at.text : undefined;
  }

  /** An expression without its types. */
  private bare(node: ts.Expression): ts.Expression {
    const { compiler } = this;
    const isDressed =
      compiler.isParenthesizedExpression(node) ||
      compiler.isAsExpression(node) ||
      compiler.isNonNullExpression(node) ||
      compiler.isSatisfiesExpression(node);
    return isDressed ? this.bare(node.expression) : node;
  }
}

/** Whether a parsed file holds code that changes state of other modules. */
export function changesOthers(source: ts.SourceFile, compiler: typeof ts): boolean {
  return new Looking(source, compiler).found();
}

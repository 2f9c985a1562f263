/** @file Modules that a source file loads when it runs, by its syntax tree, and places where the tree does not tell which. */
import type ts from 'typescript';

/** A place in a file that loads or runs code which its text does not name. */
export interface Unfollowed {
  readonly line: number;
  /** `imports a computed path` */
  readonly what: string;
}

/** A specifier, as Node takes it. */
interface Specifier {
  readonly line: number;
  readonly text: string;
}

/** The modules that a file loads. */
export interface ModuleLoads {
  /** Each once. */
  readonly specifiers: readonly Specifier[];
  readonly unfollowed: readonly Unfollowed[];
}

/** Modules of Node by which a text runs code that it does not import. */
const running: Readonly<Record<string, string>> = {
  vm: 'evaluates text',
  child_process: 'starts a process',
  cluster: 'starts a process',
  repl: 'evaluates text',
  inspector: 'evaluates text',
};

/** Names whose values run or load code that a text need not name, wherever they are used. */
const evaluating: ReadonlyMap<string, string> = new Map([
  ['eval', 'evaluates text'],
  ['Function', 'evaluates text'],
  ['Worker', 'starts a thread'],
]);

/** The members of `module`, of Node and of `process` that load the module that an argument names. */
const loadingMembers: ReadonlyMap<string, string> = new Map([
  ['getBuiltinModule', 'loads a module of Node by its name'],
  ['dlopen', 'loads native code'],
  ['_load', 'imports a computed path'],
  ['_compile', 'evaluates text'],
  ['registerHooks', 'changes how modules are found'],
]);

/** Collects the modules that one file loads. */
class LoadReader {
  readonly specifiers = new Map<string, number>();
  readonly unfollowed = new Map<string, Unfollowed>();
  /** Names of functions that require. */
  private readonly requires = new Set(['require']);

  constructor(
    private readonly source: ts.SourceFile,
    private readonly compiler: typeof ts,
  ) {}

  read(): ModuleLoads {
    if (/\.[cm]?[jt]sx$/.test(this.source.fileName) && this.source.text.includes('@jsxImportSource'))
      this.refuse(this.source, 'imports what its JSX asks for');
    this.visit(this.source);
    const specifiers = [...this.specifiers].map(([text, line]) => ({ line, text }));
    return { specifiers, unfollowed: [...this.unfollowed.values()] };
  }

  private lineOf(node: ts.Node): number {
    return this.source.getLineAndCharacterOfPosition(node.getStart(this.source)).line + 1;
  }

  private refuse(node: ts.Node, what: string): void {
    const line = this.lineOf(node);
    this.unfollowed.set(`${line} ${what}`, { line, what });
  }

  /** Takes a specifier, or tells that it is computed. */
  private take(node: ts.Expression | undefined, call: ts.Node): void {
    const text = node === undefined ? undefined : this.constantText(node);
    if (text === undefined) {
      this.refuse(call, 'imports a computed path');
      return;
    }
    const runs = running[text.replace(/^node:/, '')];
    if (runs === undefined) this.add(text, call);
    else this.refuse(call, runs);
  }

  private add(specifier: string, node: ts.Node): void {
    if (!this.specifiers.has(specifier)) this.specifiers.set(specifier, this.lineOf(node));
  }

  /** The text of an expression of literals; undefined where it has names. */
  private constantText(node: ts.Expression): string | undefined {
    const { compiler } = this;
    if (compiler.isStringLiteralLike(node)) return node.text;
    if (compiler.isParenthesizedExpression(node) || compiler.isAsExpression(node))
      return this.constantText(node.expression);
    if (compiler.isTemplateExpression(node)) {
      const spans = node.templateSpans.map(({ expression, literal }) => {
        const text = this.constantText(expression);
        return text === undefined ? undefined : text + literal.text;
      });
      return spans.includes(undefined) ? undefined : node.head.text + spans.join('');
    }
    if (!compiler.isBinaryExpression(node)) return undefined;
    if (node.operatorToken.kind !== compiler.SyntaxKind.PlusToken) return undefined;
    const [left, right] = [this.constantText(node.left), this.constantText(node.right)];
    return left === undefined || right === undefined ? undefined : left + right;
  }

  private visit(node: ts.Node): void {
    const { compiler } = this;
    // Types load nothing. An import of nothing but `type` names still runs the module.
    if (compiler.isTypeNode(node) && !compiler.isExpressionWithTypeArguments(node)) return;
    if (compiler.isImportDeclaration(node)) {
      if (node.importClause?.phaseModifier !== compiler.SyntaxKind.TypeKeyword)
        this.take(node.moduleSpecifier, node);
      return;
    }
    if (compiler.isExportDeclaration(node)) {
      if (node.moduleSpecifier && !node.isTypeOnly) this.take(node.moduleSpecifier, node);
      return;
    }
    if (compiler.isImportEqualsDeclaration(node)) {
      const { moduleReference } = node;
      if (compiler.isExternalModuleReference(moduleReference) && !node.isTypeOnly)
        this.take(moduleReference.expression, node);
      return;
    }
    if (compiler.isInterfaceDeclaration(node) || compiler.isTypeAliasDeclaration(node)) return;
    if (compiler.isVariableDeclaration(node)) this.noteRequire(node);
    if (compiler.isCallExpression(node) || compiler.isNewExpression(node)) {
      if (this.readCall(node)) return;
    } else if (compiler.isIdentifier(node)) this.readName(node);
    compiler.forEachChild(node, (child) => this.visit(child));
  }

  /** `const load = createRequire(import.meta.url)` */
  private noteRequire({ name, initializer }: ts.VariableDeclaration): void {
    const { compiler } = this;
    if (initializer && compiler.isIdentifier(name) && this.makesRequire(initializer))
      this.requires.add(name.text);
  }

  /** Whether an expression is a function that requires from this file. */
  private makesRequire(node: ts.Expression): boolean {
    const { compiler } = this;
    if (!compiler.isCallExpression(node)) return false;
    const { expression, arguments: given } = node;
    const called = compiler.isPropertyAccessExpression(expression) ? expression.name : expression;
    if (!compiler.isIdentifier(called) || called.text !== 'createRequire') return false;
    return (
      given.length === 1 && /^(import\.meta\.(url|filename)|__filename)$/.test(given[0]!.getText(this.source))
    );
  }

  /** Takes a call or construction that loads. False where its parts are to be looked at as any others. */
  private readCall(node: ts.CallExpression | ts.NewExpression): boolean {
    const { compiler } = this;
    const { expression: called, arguments: given = [] } = node;
    const visitAll = () => {
      for (const each of given) this.visit(each);
      return true;
    };
    if (called.kind === compiler.SyntaxKind.ImportKeyword) {
      this.take(given[0], node);
      return visitAll();
    }
    if (compiler.isIdentifier(called)) {
      if (this.requires.has(called.text)) {
        this.take(given[0], node);
        return visitAll();
      }
      if (called.text === 'Worker' && compiler.isNewExpression(node)) return this.readThread(node, given[0]);
      // A module's own address, and paths from it.
      if (called.text === 'createRequire') {
        if (!this.makesRequire(node as ts.CallExpression)) this.refuse(node, 'imports from a computed place');
        return visitAll();
      }
      return false;
    }
    if (compiler.isCallExpression(called) && this.makesRequire(called)) {
      this.take(given[0], node);
      return visitAll();
    }
    if (!compiler.isPropertyAccessExpression(called) || called.name.text !== 'resolve') return false;
    const { expression: owner } = called;
    const isResolver =
      (compiler.isMetaProperty(owner) && owner.keywordToken === compiler.SyntaxKind.ImportKeyword) ||
      (compiler.isIdentifier(owner) && this.requires.has(owner.text)) ||
      this.makesRequire(owner);
    if (!isResolver) return false;
    this.take(given[0], node);
    return visitAll();
  }

  /** `new Worker(new URL('./rows.js', import.meta.url))` loads that file. */
  private readThread(node: ts.NewExpression, url: ts.Expression | undefined): boolean {
    const { compiler } = this;
    const isUrl =
      url !== undefined &&
      compiler.isNewExpression(url) &&
      url.expression.getText(this.source) === 'URL' &&
      url.arguments?.[1]?.getText(this.source) === 'import.meta.url';
    const path = isUrl ? this.constantText(url.arguments![0]!) : undefined;
    if (path === undefined) this.refuse(node, 'starts a thread');
    else this.add(/^\.|:/.test(path) ? path : `./${path}`, node);
    for (const each of node.arguments ?? []) this.visit(each);
    return true;
  }

  /** A name that stands for itself, or a member's. */
  private readName(node: ts.Identifier): void {
    const { compiler } = this;
    const { parent, text } = node;
    const isMember = compiler.isPropertyAccessExpression(parent) && parent.name === node;
    const isDeclared =
      (compiler.isVariableDeclaration(parent) && parent.name === node) ||
      compiler.isImportSpecifier(parent) ||
      (compiler.isPropertyAssignment(parent) && parent.name === node) ||
      compiler.isBindingElement(parent) ||
      compiler.isParameter(parent) ||
      compiler.isClassElement(parent) ||
      (compiler.isBinaryExpression(parent) &&
        parent.right === node &&
        parent.operatorToken.kind === compiler.SyntaxKind.InstanceOfKeyword);
    if (isMember) {
      const what = loadingMembers.get(text);
      if (what !== undefined) this.refuse(node, what);
    } else if (!isDeclared) {
      const what = this.requires.has(text) ? 'imports a computed path' : evaluating.get(text);
      const isOwner = compiler.isPropertyAccessExpression(parent) && parent.expression === node;
      // `require.main`, `Function.prototype`
      if (what !== undefined && !isOwner) this.refuse(node, what);
    }
  }
}

/** The modules that a parsed file loads. Its nodes must know their parents. */
export function loadsOf(source: ts.SourceFile, compiler: typeof ts): ModuleLoads {
  return new LoadReader(source, compiler).read();
}

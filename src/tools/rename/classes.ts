/** @file The configurable classes, functions and experiments of a program: what they extend, and what fields they have. */
import { type Sources, ts, visitNodes } from './sources.js';

/** What declares hyperparameters or constants. */
export interface ClassEntry {
  readonly name: string;
  readonly kind: 'class' | 'function' | 'experiment';
  readonly node: ts.ClassLikeDeclaration | ts.VariableDeclaration;
  readonly base: ClassEntry | undefined;
}

/** All of a program. */
export class Classes {
  readonly all: readonly ClassEntry[];
  private readonly entries = new Map<ts.Node, ClassEntry | undefined>();

  constructor(readonly sources: Sources) {
    const found: ClassEntry[] = [];
    for (const file of sources.program.getSourceFiles()) {
      if (file.isDeclarationFile) continue;
      visitNodes(file, (node) => {
        const entry = this.entryOf(node);
        if (entry?.base !== undefined || entry?.kind === 'function') found.push(entry);
      });
    }
    this.all = found;
  }

  /** The entry of a declaration, undefined for one that declares no fields. */
  entryOf(node: ts.Node | undefined): ClassEntry | undefined {
    if (node === undefined || !(ts.isClassLike(node) || ts.isVariableDeclaration(node))) return undefined;
    if (this.entries.has(node)) return this.entries.get(node);
    this.entries.set(node, undefined);
    const entry = this.makeEntry(node);
    this.entries.set(node, entry);
    return entry;
  }

  private makeEntry(node: ts.ClassLikeDeclaration | ts.VariableDeclaration): ClassEntry | undefined {
    if (ts.isVariableDeclaration(node)) return this.functionEntry(node);
    const name = node.name?.text ?? '';
    const clause = node.heritageClauses?.find(({ token }) => token === ts.SyntaxKind.ExtendsKeyword);
    const [extended] = clause?.types ?? [];
    if (extended === undefined) {
      if (name === 'Configurable') return { name, kind: 'class', node, base: undefined };
      return name === 'Experiment' ? { name, kind: 'experiment', node, base: undefined } : undefined;
    }
    const base = this.entryOf(this.headOf(extended.expression));
    return base && { name, kind: base.kind, node, base };
  }

  /** `const cosine = configurable(…)`. */
  private functionEntry(node: ts.VariableDeclaration): ClassEntry | undefined {
    const made = node.initializer;
    if (made === undefined || !ts.isCallExpression(made) || !ts.isIdentifier(node.name)) return undefined;
    const isMade = ts.isIdentifier(made.expression) && made.expression.text === 'configurable';
    return isMade ? { name: node.name.text, kind: 'function', node, base: undefined } : undefined;
  }

  /** The class at the head of `Base.with({…})`, also where a constant holds what `with` gave. */
  private headOf(expression: ts.Expression): ts.Node | undefined {
    if (ts.isParenthesizedExpression(expression) || ts.isAsExpression(expression)) {
      return this.headOf(expression.expression);
    }
    if (ts.isCallExpression(expression)) {
      const called = expression.expression;
      const isWith = ts.isPropertyAccessExpression(called) && called.name.text === 'with';
      return isWith ? this.headOf(called.expression) : undefined;
    }
    const declaration = this.resolved(expression)?.valueDeclaration;
    if (declaration === undefined || ts.isClassLike(declaration)) return declaration;
    const isConstant = ts.isVariableDeclaration(declaration) && declaration.initializer !== undefined;
    return isConstant ? this.headOf(declaration.initializer!) : undefined;
  }

  /** What a name stands for, imports followed. */
  resolved(node: ts.Node): ts.Symbol | undefined {
    const { checker } = this.sources;
    const symbol = checker.getSymbolAtLocation(node);
    return symbol && (symbol.flags & ts.SymbolFlags.Alias) !== 0 ? checker.getAliasedSymbol(symbol) : symbol;
  }

  /** The entry and all that extend it. */
  family(entry: ClassEntry): ClassEntry[] {
    return this.all.filter((each) => each === entry || this.ancestors(each).includes(entry));
  }

  /** What an entry extends, the nearest first. */
  ancestors(entry: ClassEntry): ClassEntry[] {
    const above: ClassEntry[] = [];
    for (let at = entry.base; at !== undefined; at = at.base) above.push(at);
    return above;
  }

  /** The type that has the entry's fields as properties. */
  fieldsType(entry: ClassEntry): ts.Type | undefined {
    const { checker } = this.sources;
    const { node, kind } = entry;
    if (kind === 'function') {
      const config = checker.getPropertyOfType(checker.getTypeAtLocation(node), 'config');
      const [signature] = config === undefined ? [] : checker.getTypeOfSymbol(config).getCallSignatures();
      return signature && checker.getReturnTypeOfSignature(signature);
    }
    const instance = checker.getTypeAtLocation(node);
    return kind === 'experiment' ? instance : this.phantom(instance, 'INPUTS');
  }

  /** The type of a property that is there for types alone. */
  private phantom(type: ts.Type, name: string): ts.Type | undefined {
    const symbol = type.getProperties().find((each) => each.name.startsWith(`__@${name}@`));
    return symbol && this.sources.checker.getTypeOfSymbol(symbol);
  }

  /** The entry that a type is a config of. */
  configured(type: ts.Type): ClassEntry | undefined {
    const built = this.phantom(type, 'BUILT');
    const made = built?.getCallSignatures()[0]?.getReturnType() ?? built;
    return this.entryOf(made?.symbol?.valueDeclaration);
  }

  /** Where the schemas of a field stand: its own, and those of the bases that declare it too. */
  declarations(entry: ClassEntry, field: string): ts.Declaration[] {
    const found = this.sources.declarationsIn(this.fieldsType(entry), field);
    // A class field that sets a constant says nothing of the schema.
    const schemas = found.filter(isSchemaProperty);
    const inherited = found.length > schemas.length && entry.base !== undefined;
    return inherited ? [...schemas, ...this.declarations(entry.base!, field)] : schemas;
  }

  /** The names of an entry's fields. */
  fieldNames(entry: ClassEntry): string[] {
    const properties = this.fieldsType(entry)?.getProperties() ?? [];
    return properties
      .map(({ name }) => name)
      .filter((name) => !name.startsWith('__@') && this.declarations(entry, name).length > 0);
  }
}

/** Whether a declaration may give a field its schema: a property of an object. */
export function isSchemaProperty(
  node: ts.Node,
): node is ts.PropertyAssignment | ts.ShorthandPropertyAssignment {
  return ts.isPropertyAssignment(node) || ts.isShorthandPropertyAssignment(node);
}

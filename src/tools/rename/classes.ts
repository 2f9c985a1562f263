/** @file Configurable classes and experiments in source text and declarations: their bases and the schemas of their fields. */
import {
  type ClassDeclaration,
  Node,
  type PropertyAssignment,
  type PropertySignature,
  type ShorthandPropertyAssignment,
  type SourceFile,
  SyntaxKind,
} from 'ts-morph';

/** Where a field of a class has its schema: a property of the object given to `with`, or of its type in declarations. */
export type Schema = PropertyAssignment | ShorthandPropertyAssignment | PropertySignature;

/** A class that has hyperparameters, or an experiment. */
export interface ClassEntry {
  readonly name: string;
  readonly kind: 'class' | 'experiment';
  readonly node: ClassDeclaration;
  readonly base: ClassEntry | undefined;
  /** Fields that this class itself, not its base, passes to `with`: expressions, or types in declarations. */
  readonly fields: readonly Node[];
}

/** The classes of a program. */
export class Classes {
  readonly all: readonly ClassEntry[];
  readonly #entries = new Map<ClassDeclaration, ClassEntry | undefined>();

  constructor(sources: readonly SourceFile[]) {
    this.all = sources
      .flatMap((file) => file.getDescendantsOfKind(SyntaxKind.ClassDeclaration))
      .flatMap((node) => this.#entryOf(node) ?? [])
      .filter(({ base }) => base !== undefined);
  }

  /** A class called `name` that others extend, of a package perhaps. */
  extended(name: string): ClassEntry | undefined {
    return [...this.#entries.values()].find((entry) => entry?.name === name);
  }

  /** The classes that an entry extends, the nearest first. */
  ancestors({ base }: ClassEntry): ClassEntry[] {
    return base === undefined ? [] : [base, ...this.ancestors(base)];
  }

  /** The entry and all that extend it. */
  family(entry: ClassEntry): ClassEntry[] {
    return this.all.filter((each) => each === entry || this.ancestors(each).includes(entry));
  }

  #entryOf(node: ClassDeclaration): ClassEntry | undefined {
    if (this.#entries.has(node)) return this.#entries.get(node);
    this.#entries.set(node, undefined);
    const entry = this.#makeEntry(node);
    this.#entries.set(node, entry);
    return entry;
  }

  #makeEntry(node: ClassDeclaration): ClassEntry | undefined {
    const name = node.getName() ?? '';
    const extended = node.getExtends()?.getExpression();
    if (extended === undefined) {
      const kind = name === 'Experiment' ? 'experiment' : name === 'Configurable' ? 'class' : undefined;
      return kind && { name, kind, node, base: undefined, fields: [] };
    }
    const { head, fields } = headOf(extended);
    const base = head && this.#entryOf(head);
    return base && { name, kind: base.kind, node, base, fields };
  }
}

/** The class from which an expression or type makes another one, and the fields that it adds. */
interface Head {
  readonly head: ClassDeclaration | undefined;
  readonly fields: readonly Node[];
}

const noHead: Head = { head: undefined, fields: [] };

/** The class at the head of `Base.with(…).preset(…)` or `mixin(Base)`, also through a constant that holds such a call's result. */
function headOf(expression: Node): Head {
  if (Node.isParenthesizedExpression(expression) || Node.isAsExpression(expression))
    return headOf(expression.getExpression());
  if (Node.isCallExpression(expression)) {
    const called = expression.getExpression();
    const method = Node.isPropertyAccessExpression(called) ? called.getName() : undefined;
    if (!Node.isPropertyAccessExpression(called) || (method !== 'with' && method !== 'preset'))
      return (
        expression
          .getArguments()
          .map(headOf)
          .find(({ head }) => head !== undefined) ?? noHead
      );
    const { head, fields } = headOf(called.getExpression());
    if (method === 'preset') return { head, fields };
    const [given] = expression.getArguments();
    return { head, fields: given === undefined ? fields : [...fields, given] };
  }
  return Node.isExpression(expression) ? declaredHead(expression) : noHead;
}

/** The head of what a name means: a class, or a constant by its value or, in declarations, its type. */
function declaredHead(name: Node): Head {
  const symbol = name.getSymbol();
  const declaration = (symbol?.getAliasedSymbol() ?? symbol)?.getValueDeclaration();
  if (Node.isClassDeclaration(declaration)) return { head: declaration, fields: [] };
  if (!Node.isVariableDeclaration(declaration)) return noHead;
  const made = declaration.getInitializer() ?? declaration.getTypeNode();
  return made === undefined ? noHead : Node.isTypeNode(made) ? typeHead(made) : headOf(made);
}

/** The head of a declared constant's type: `typeof Base`, or `WithFields<typeof Base, { … }>` as compilers write it for `with`. */
function typeHead(type: Node): Head {
  if (Node.isTypeQuery(type)) return declaredHead(type.getExprName());
  const given = Node.isTypeReference(type) || Node.isImportTypeNode(type) ? type.getTypeArguments() : [];
  const [base, added] = given;
  if (base === undefined) return noHead;
  const { head, fields } = typeHead(base);
  return { head, fields: added === undefined ? fields : [...fields, added] };
}

/** Where this very class gives a field its schema. */
export function schemasOf(entry: ClassEntry, field: string): Schema[] {
  return entry.fields.flatMap((given) => {
    const found = given.getType().getProperty(field)?.getDeclarations() ?? [];
    return found.filter(isSchema);
  });
}

/** The fields that this very class declares. */
export function ownFields(entry: ClassEntry): string[] {
  return entry.fields.flatMap((given) =>
    given
      .getType()
      .getProperties()
      .map((property) => property.getName()),
  );
}

function isSchema(node: Node): node is Schema {
  return (
    Node.isPropertyAssignment(node) ||
    Node.isShorthandPropertyAssignment(node) ||
    Node.isPropertySignature(node)
  );
}

/** `lm.Small` for the class Small that experiments/lm.ts exports; undefined for a class that has no such name. */
export function experimentName({ kind, name, node }: ClassEntry): string | undefined {
  const file = node.getSourceFile().getFilePath();
  const below = /(?:^|\/)experiments\/(?!.*\/experiments\/)(.+)\.[cm]?[jt]s$/.exec(file)?.[1];
  if (kind !== 'experiment' || below === undefined || !node.isExported()) return undefined;
  return `${below.replaceAll('/', '.')}.${name}`;
}

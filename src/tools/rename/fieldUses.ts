/** @file The uses of a field in TypeScript: whatever has its declaration as its root, and what is given for it. */
import type { ClassEntry, Classes } from './classes.js';
import { type Flow, flowsOf, isFree } from './flows.js';
import type { Looks } from './look.js';
import { type Mention, meantBy, mentionsOf, wantedTypes } from './mentions.js';
import { type Sources, ts } from './sources.js';

/** The field that is renamed. */
export interface FieldTarget {
  readonly name: string;
  readonly owner: ClassEntry;
  /** The classes that have the field. */
  readonly family: readonly ClassEntry[];
  /** Where its schemas stand, in the owner and where subclasses declare it anew. */
  readonly schemas: readonly (ts.PropertyAssignment | ts.ShorthandPropertyAssignment)[];
}

/** What is known of a property by its declarations. */
export type Verdict = 'ours' | 'other' | 'mixed' | 'unknown';

/** Finds the uses of one field. */
export class FieldUses {
  /** The declarations that stand for the field. */
  readonly declarations: Set<ts.Declaration>;
  /** The files whose types may lead to the field. */
  readonly scope: ReadonlySet<ts.SourceFile>;
  private readonly uses = new Set<Mention>();
  private readonly mentions: readonly { mention: Mention; meant: readonly ts.Declaration[] }[];
  private readonly flows: readonly Flow[];

  constructor(
    private readonly sources: Sources,
    private readonly classes: Classes,
    private readonly target: FieldTarget,
    private readonly looks: Looks,
  ) {
    this.declarations = new Set(target.schemas);
    // Where nothing is imported of a class, types cannot lead to its fields.
    this.scope = sources.dependents(target.schemas.map((schema) => schema.getSourceFile()));
    this.mentions = mentionsOf(this.scope, target.name).map((mention) => ({
      mention,
      meant: meantBy(sources, mention),
    }));
    this.flows = flowsOf(sources, this.scope, target.name);
    while (this.grow());
  }

  /** The mentions that are the field. */
  get found(): readonly Mention[] {
    return [...this.uses];
  }

  /** The mentions that are not, or of which that is not known. */
  get others(): readonly Mention[] {
    return this.mentions.flatMap(({ mention }) => (this.uses.has(mention) ? [] : [mention]));
  }

  /** Whether a property with these declarations is the field. */
  verdict(declarations: readonly ts.Declaration[]): Verdict {
    if (declarations.length === 0) return 'unknown';
    const own = declarations.filter((each) => this.declarations.has(each)).length;
    return own === 0 ? 'other' : own === declarations.length ? 'ours' : 'mixed';
  }

  /** Takes in what the declarations so far lead to; whether there was anything. */
  private grow(): boolean {
    const before = this.uses.size + this.declarations.size;
    for (const { mention, meant } of this.mentions) {
      if (this.uses.has(mention)) continue;
      if (!this.isOverride(mention) && !meant.some((each) => this.declarations.has(each))) continue;
      this.uses.add(mention);
      const { parent } = mention;
      // What reads this object, or this instance, means the field by it.
      const isKey = ts.isObjectLiteralElementLike(parent) && parent.name === mention;
      if (isKey || this.isOverride(mention)) this.declarations.add(parent as ts.Declaration);
    }
    for (const flow of this.flows) this.follow(flow);
    return this.uses.size + this.declarations.size > before;
  }

  /** Whether a mention names the class field by which an experiment sets the constant. */
  private isOverride(mention: Mention): boolean {
    const { parent } = mention;
    if (!ts.isClassElement(parent) || parent.name !== mention || !ts.isClassLike(parent.parent)) return false;
    const entry = this.classes.entryOf(parent.parent);
    return entry?.kind === 'experiment' && this.target.family.includes(entry);
  }

  private follow(flow: Flow): void {
    if (!flow.wanted.some((each) => this.declarations.has(each))) return;
    for (const given of flow.given) {
      if (this.declarations.has(given)) continue;
      const elsewhere = this.flows.find(
        (other) => other.given.includes(given) && this.verdict(other.wanted) !== 'ours',
      );
      if (!isFree(this.sources, given, this.target.name) || !this.sources.isOwn(given.getSourceFile())) {
        this.looks.atNode(
          flow.node,
          `what is given here has a ${this.target.name} of its own, declared at ${this.sources.place(given)}`,
        );
      } else if (elsewhere !== undefined) {
        this.looks.atNode(
          given,
          `this object is given to something else, too, at ${this.sources.place(elsewhere.node)}`,
        );
      } else this.declarations.add(given);
    }
  }

  /** Lists the other mentions of which it is not known what they are. */
  lookAtUnknown(settled: ReadonlySet<Mention>): void {
    for (const mention of this.others) {
      if (settled.has(mention)) continue;
      const { parent } = mention;
      if (ts.isPropertyAccessExpression(parent) && parent.name === mention) {
        const { flags } = this.sources.checker.getTypeAtLocation(parent.expression);
        if ((flags & ts.TypeFlags.Any) !== 0)
          this.looks.atNode(mention, 'the type of the object is not known');
      } else if (ts.isPropertySignature(parent) && this.isInFamily(parent)) {
        this.looks.atNode(mention, 'a type inside of the class names it, too');
      } else if (ts.isObjectLiteralElementLike(parent) && parent.name === mention) {
        if (this.isUnexplained(parent, mention.text))
          this.looks.atNode(mention, 'the object goes where any keys may');
      } else if (ts.isStringLiteralLike(mention) && !this.isOneOfWords(mention)) {
        this.looks.atNode(mention, 'a text that is the name');
      }
    }
  }

  private isInFamily(node: ts.Node): boolean {
    for (let at = node.parent; at !== undefined; at = at.parent) {
      if (this.target.family.some((entry) => entry.node === at)) return true;
    }
    return false;
  }

  private isUnexplained(key: ts.ObjectLiteralElementLike, name: string): boolean {
    const { checker } = this.sources;
    const literal = key.parent;
    if (!ts.isObjectLiteralExpression(literal)) return false;
    // A schema declares another field of the same name.
    const isSchema =
      ts.isPropertyAssignment(key) &&
      checker.getTypeAtLocation(key.initializer).getProperty('_zod') !== undefined;
    if (isSchema || key.parent.parent === undefined) return false;
    return wantedTypes(this.sources, literal).length > 0 && isFree(this.sources, key, name);
  }

  /** Whether the context takes this very word, so that its type says if it fits. */
  private isOneOfWords(mention: ts.StringLiteralLike): boolean {
    const wanted = this.sources.checker.getContextualType(mention);
    const parts = wanted?.isUnion() ? wanted.types : wanted === undefined ? [] : [wanted];
    return parts.some((part) => part.isStringLiteral() && part.value === mention.text);
  }
}

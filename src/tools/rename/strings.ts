/** @file Names of fields and paths in string literals of TypeScript, where it is clear whose they are. */
import type { Classes } from './classes.js';
import type { Edit } from './edits.js';
import type { FieldTarget, FieldUses } from './fieldUses.js';
import type { ExperimentPaths } from './flagTexts.js';
import type { Looks } from './look.js';
import { escaped, type Known, type Step, stepsAt, type Walker } from './pathText.js';
import { type Sources, ts, visitNodes } from './sources.js';

/** Functions that take an object and a path in it. */
const pathFunctions = new Set(['getPath', 'setPath', 'unsetPath', 'history']);

/** What is found in string literals: edits by literal. */
export interface StringUses {
  readonly edits: { literal: ts.StringLiteralLike; edit: Edit }[];
  /** Literals of which it is known what they are, be it another field. */
  readonly settled: Set<ts.StringLiteralLike>;
}

/** Finds the field in the string literals of the project. */
export class StringFinder {
  private readonly result: StringUses = { edits: [], settled: new Set() };

  constructor(
    private readonly sources: Sources,
    private readonly classes: Classes,
    private readonly target: FieldTarget,
    private readonly uses: FieldUses,
    private readonly walker: Walker,
    private readonly paths: ExperimentPaths,
    private readonly looks: Looks,
    private readonly newName: string,
  ) {}

  find(): StringUses {
    for (const file of this.sources.files) {
      if (!file.text.includes(this.target.name)) continue;
      visitNodes(file, (node) => {
        if (ts.isStringLiteralLike(node) && node.text.includes(this.target.name)) this.literal(node);
      });
    }
    return this.result;
  }

  private literal(node: ts.StringLiteralLike): void {
    // An escape would shift the positions.
    if (node.getText().slice(1, -1) !== node.text) return;
    if (this.flagText(node)) return;
    const root = this.uses.scope.has(node.getSourceFile()) ? this.rootOf(node) : undefined;
    if (root !== undefined) this.path(node, root.known);
    else if (node.text === this.target.name && this.isName(node))
      this.edit(node, { name: '', start: 0, end: node.text.length });
    else if (node.text !== this.target.name && this.isPathLike(node.text)) {
      this.pathInText(node);
    }
  }

  private pathInText(node: ts.StringLiteralLike): void {
    const file = node.getSourceFile();
    const at = node.getStart() + node.getText().indexOf(this.target.name);
    this.looks.at(this.sources.fileOf(file), at, 'a path in a text');
  }

  /** Reads `--set path=value`, or what stands behind `'--set'` in a list; whether the literal is that. */
  private flagText(node: ts.StringLiteralLike): boolean {
    const prefix = /^--(?:set|unset|sweep)(?:=|\s+)/.exec(node.text)?.[0];
    if (prefix === undefined && !followsFlag(node)) return false;
    const parsed = stepsAt(node.text, prefix?.length ?? 0);
    const isWhole =
      parsed !== undefined && (parsed.end === node.text.length || node.text[parsed.end] === '=');
    if (!isWhole) return false;
    for (const { step, declarations } of this.paths.meaning(parsed.steps, this.paths.all)) {
      if (step.name !== this.target.name) continue;
      this.result.settled.add(node);
      const verdict = this.uses.verdict(declarations);
      if (verdict === 'ours') this.edit(node, step);
      else if (verdict !== 'other') this.looks.atNode(node, 'it is not known whose field this flag sets');
    }
    return true;
  }

  /** What the path in a literal begins at, where the literal is known to be one. */
  private rootOf(node: ts.StringLiteralLike): { known: Known } | undefined {
    const { parent } = node;
    if (ts.isCallExpression(parent)) {
      const { expression: called, arguments: given } = parent;
      const name = ts.isIdentifier(called) ? called.text : '';
      if (pathFunctions.has(name) && given[1] === node) {
        return { known: [this.sources.checker.getTypeAtLocation(given[0]!)] };
      }
      if (given[1] === node) return this.reported(called);
    }
    const isRulePath =
      ts.isArrayLiteralExpression(parent) &&
      ts.isPropertyAssignment(parent.parent) &&
      parent.parent.name.getText() === 'path';
    const rule = isRulePath ? this.ruled(node) : undefined;
    if (rule === undefined) return undefined;
    let { known } = rule;
    for (const before of (parent as ts.ArrayLiteralExpression).elements) {
      if (before === node) break;
      const step = ts.isNumericLiteral(before) ? Number(before.text) : before.getText().slice(1, -1);
      known = this.walker.into(known, step).known;
    }
    return { known };
  }

  /** `report(message, path)` in a class's own `validate`. */
  private reported(called: ts.Expression): { known: Known } | undefined {
    const declaration = this.sources.checker.getSymbolAtLocation(called)?.valueDeclaration;
    const method = declaration?.parent;
    if (
      declaration === undefined ||
      !ts.isParameter(declaration) ||
      !method ||
      !ts.isMethodDeclaration(method)
    ) {
      return undefined;
    }
    const entry = this.classes.entryOf(method.parent);
    const isHook = method.name.getText() === 'validate' && method.parameters[1] === declaration;
    return isHook && entry?.kind === 'class' ? { known: this.walker.fieldsOf(entry) } : undefined;
  }

  /** The path of a rule in `X.with(fields, rules)`. */
  private ruled(node: ts.Node): { known: Known } | undefined {
    let at: ts.Node = node;
    for (let { parent } = node; parent !== undefined; at = parent, parent = parent.parent) {
      const isWith =
        ts.isCallExpression(parent) &&
        ts.isPropertyAccessExpression(parent.expression) &&
        parent.expression.name.text === 'with';
      if (!isWith || (parent as ts.CallExpression).arguments[1] !== at) continue;
      const owner = this.classes.all.find(({ node: each }) => {
        const clauses = ts.isClassLike(each) ? (each.heritageClauses ?? []) : [];
        return clauses.some(({ types }) => types.some(({ expression }) => expression === parent));
      });
      return owner && { known: this.walker.fieldsOf(owner) };
    }
    return undefined;
  }

  private path(node: ts.StringLiteralLike, root: Known): void {
    const parsed = stepsAt(node.text);
    if (parsed === undefined || parsed.end !== node.text.length) return;
    let known = root;
    for (const step of parsed.steps) {
      const next = this.walker.into(known, step.name);
      known = next.known;
      if (step.name !== this.target.name) continue;
      const verdict = this.uses.verdict(next.declarations);
      if (verdict === 'ours') this.edit(node, step);
      else if (verdict === 'other') this.result.settled.add(node);
      else this.looks.atNode(node, 'it is not known whose field this path leads to');
    }
  }

  private edit(node: ts.StringLiteralLike, { start, end }: Step): void {
    const offset = node.getStart() + 1;
    this.result.settled.add(node);
    this.result.edits.push({
      literal: node,
      edit: { start: offset + start, end: offset + end, text: this.newName },
    });
  }

  /** Whether a word stands where names of a config's fields are taken, beside a config that has the field. */
  private isName(node: ts.StringLiteralLike): boolean {
    const { checker } = this.sources;
    const call = node.parent;
    if (!ts.isCallExpression(call)) return false;
    const wanted = checker.getContextualType(node);
    const words = wanted?.isUnion() ? wanted.types : wanted === undefined ? [] : [wanted];
    if (!words.some((word) => word.isStringLiteral() && word.value === node.text)) return false;
    const receiver = ts.isPropertyAccessExpression(call.expression) ? [call.expression.expression] : [];
    const evidence = [...receiver, ...call.arguments.filter((argument) => argument !== node)];
    return evidence
      .map((each) => checker.getTypeAtLocation(each))
      .flatMap((type) => [type, ...typeArgumentsOf(checker, type)])
      .some((type) => this.uses.verdict(this.sources.declarationsIn(type, node.text)) === 'ours');
  }

  private isPathLike(text: string): boolean {
    const name = escaped(this.target.name);
    return new RegExp(`(?:[\\w\\]]\\.${name}(?![\\w$-])|(?<![\\w$-])${name}(?:\\.\\w|\\[|=))`).test(text);
  }
}

/** Whether the string before this one, in a list or a call, is a flag that takes a path. */
function followsFlag(node: ts.StringLiteralLike): boolean {
  const { parent } = node;
  let items: readonly ts.Expression[] = [];
  if (ts.isArrayLiteralExpression(parent)) items = parent.elements;
  else if (ts.isCallExpression(parent)) items = parent.arguments;
  const before = items[items.indexOf(node) - 1];
  return before !== undefined && ts.isStringLiteralLike(before) && /^--(set|unset|sweep)$/.test(before.text);
}

function typeArgumentsOf(checker: ts.TypeChecker, type: ts.Type): readonly ts.Type[] {
  const isReference = ((type as ts.ObjectType).objectFlags & ts.ObjectFlags.Reference) !== 0;
  return [
    ...(type.aliasTypeArguments ?? []),
    ...(isReference ? checker.getTypeArguments(type as ts.TypeReference) : []),
  ];
}

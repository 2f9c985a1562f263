/** @file Configs as expressions, and as statements where they need names. */

import { carriedBy, carrierTags, hasCarried, isCarrier } from '../nodes/carriers.js';
import { append } from '../nodes/containers.js';
import { type ConfigNode, fieldTags, originText, rawValue } from '../nodes/node.js';
import { addTag, clearTags, explicitTags } from '../tags.js';
import type { PathLink } from '../walking/paths.js';
import { type Code, call, type Entry, object, stringText, type ValueContext, valueCode } from './code.js';
import { configType, type Imports, type Names, nameCandidates, targetName } from './imports.js';
import { type Body, itemsIn, type Plan, planFor } from './plan.js';

/** How configs are written. */
export interface WriterOptions {
  readonly names: Names;
  readonly imports: Imports;
  /** The function that uses the configs. */
  readonly main: Body;
  /** Configs that have functions of their own. */
  readonly fixtures?: ReadonlyMap<ConfigNode, Body>;
  readonly inStatements?: boolean;
  readonly maxComplexity?: number | undefined;
  readonly history?: boolean | undefined;
  /** The root's path. */
  readonly at?: PathLink;
  /** The path to call a config by, where it is not that in the root. */
  readonly paths?: ReadonlyMap<ConfigNode, PathLink | undefined>;
  /** The expression of a value with a replacement. */
  special?(value: unknown): Code | undefined;
}

// Parsers and type checkers recurse; people stop reading much earlier.
const deepestExpression = 10;

/** Writes the configs in `root` into bodies of functions; `value` then gives the expression of each. */
export class ConfigWriter {
  /** The functions of fixtures. */
  readonly bodies: Body[] = [];
  private readonly plans: ReadonlyMap<ConfigNode, Plan>;
  private readonly expressions = new Map<Plan, Code>();
  private readonly contexts = new Map<Body, ValueContext>();
  private readonly inStatements: boolean;

  constructor(
    root: unknown,
    private readonly options: WriterOptions,
  ) {
    this.inStatements = options.inStatements === true;
    const items = itemsIn(root, options.at);
    // Classes keep their own names wherever they can: they choose before the variables.
    for (const { node, path } of items.values()) {
      if (!isCarrier(node)) targetName(options.imports, node.info, this.pathOf(node, path));
    }
    this.plans = planFor(
      root,
      items,
      options.main,
      options.fixtures ?? new Map(),
      { depth: deepestExpression, complexity: options.maxComplexity ?? Number.POSITIVE_INFINITY },
      ({ node, fields }) =>
        !isCarrier(node) && (node.tags !== undefined || (this.inStatements && fields.length > 0)),
    );
    for (const plan of this.plans.values()) this.write(plan);
  }

  private pathOf(node: ConfigNode, path: PathLink | undefined): PathLink | undefined {
    const { paths } = this.options;
    return paths?.has(node) === true ? paths.get(node) : path;
  }

  /** Writes a config: as an expression where it is used, or as statements that name it. */
  private write(plan: Plan): void {
    const { fixture, home, node } = plan;
    const body = fixture ?? home;
    if (isCarrier(node)) {
      this.expressions.set(plan, this.carrier(plan, body));
      return;
    }
    const isAssigned = this.inStatements && plan.fields.length > 0;
    let code = isAssigned ? this.assignments(plan, body) : this.nested(plan, body);
    if (node.tags !== undefined) {
      if (!isAssigned) code = this.declare(body, this.localName(plan), code);
      append(body.statements, this.tagStatements(node, code));
    }
    if (fixture !== undefined) code = this.callOf(fixture, code, home);
    if (plan.isVariable && code !== plan.variable) code = this.declare(home, this.nameIt(plan), code);
    this.expressions.set(plan, code);
  }

  /** `TAG.new(value)`; further tags are around it. */
  private carrier({ node, path }: Plan, body: Body): Code {
    const link = { parent: path, segment: 'value' };
    let values = hasCarried(node) ? [this.value(carriedBy(node), body, link)] : [];
    for (const tag of carrierTags(node)) {
      values = [call(`${this.options.imports.require(tag, 'tag', tag.name, path)}.new`, values)];
    }
    return values[0]!;
  }

  private declare(body: Body, name: string, code: Code): Code {
    body.statements.push(`const ${name} = ${code};`);
    return name;
  }

  /** Name of a config in its own function. */
  private localName(plan: Plan): string {
    return plan.fixture === undefined ? this.nameIt(plan) : this.options.names.take(['made']);
  }

  private tagStatements(node: ConfigNode, config: Code): string[] {
    const { imports } = this.options;
    const lines: string[] = [];
    for (const [name, change] of explicitTags(node)) {
      const about = [config, stringText(name)];
      const isCut = change.removed.length > 0;
      if (isCut) lines.push(`${call(imports.library(clearTags), about)};`);
      const wanted = isCut ? fieldTags(node, node.info.fields.get(name)!) : change.added;
      const tags = wanted.map((tag) => imports.require(tag, 'tag', tag.name, undefined));
      if (tags.length > 0) lines.push(`${call(imports.library(addTag), [...about, ...tags])};`);
    }
    return lines;
  }

  /** `X.config({ … })`. */
  private nested(plan: Plan, body: Body): Code {
    const entries = this.entries(plan, body);
    return call(this.callee(plan), entries.length === 0 ? [] : [object(entries)]);
  }

  /** `const x = X.config();`, and an assignment for each field. */
  private assignments(plan: Plan, body: Body): Code {
    const entries = this.entries(plan, body);
    const name = this.localName(plan);
    const made = this.declare(body, name, call(this.callee(plan), []));
    for (const { key, value, comment } of entries) {
      const said = comment === undefined ? '' : `// ${comment}\n`;
      body.statements.push(`${said}${name}.${key} = ${value};`);
    }
    return made;
  }

  private callee({ node, path }: Plan): string {
    return `${targetName(this.options.imports, node.info, this.pathOf(node, path))}.${node.kind}`;
  }

  private entries({ node, path, fields }: Plan, body: Body): Entry[] {
    const comments = this.options.history === true ? lastOrigins(node) : undefined;
    const context = this.contextOf(body);
    return fields.map((field) => {
      const key = field.name;
      const value = valueCode(rawValue(node, field), context, { parent: path, segment: key });
      return { key, value, comment: comments?.get(key) };
    });
  }

  /** The expression of `value` in `body`. */
  value(value: unknown, body: Body, path: PathLink | undefined): Code {
    return valueCode(value, this.contextOf(body), path);
  }

  /** How values are written in `body`. */
  private contextOf(body: Body): ValueContext {
    let context = this.contexts.get(body);
    if (context === undefined) {
      const config = (node: ConfigNode): Code => {
        const plan = this.plans.get(node)!;
        if (plan.isVariable) mention(plan, body);
        return this.expressions.get(plan)!;
      };
      const { imports, special = () => undefined } = this.options;
      context = { config, special, exported: (value) => imports.find(value) };
      this.contexts.set(body, context);
    }
    return context;
  }

  private callOf(fixture: Body, made: Code, home: Body): Code {
    fixture.statements.push(`return ${made};`);
    this.bodies.push(fixture);
    for (const parameter of fixture.parameters) mention(parameter, home);
    return call(
      fixture.name,
      [...fixture.parameters].map(({ variable }) => variable!),
    );
  }

  private nameIt(plan: Plan): string {
    const prefix = plan.uses > 1 ? 'shared' : '';
    const path = this.pathOf(plan.node, plan.path);
    const candidates = path === undefined ? ['root'] : nameCandidates(path, plan.node.info.name, prefix);
    plan.variable ??= this.options.names.take(candidates);
    return plan.variable;
  }

  /** The parameters of a fixture's function. */
  parameters({ parameters }: Body): string[] {
    return [...parameters].map(
      ({ variable, node }) => `${variable}: ${configType(this.options.imports, node.info, node.kind)}`,
    );
  }
}

/** Notes that `body` uses the name of `plan`: where another function made it, it is a parameter. */
function mention(plan: Plan, body: Body): void {
  if (plan.home !== body) body.parameters.add(plan);
}

/** Where each field was last written. */
function lastOrigins(node: ConfigNode): Map<string, string> {
  const origins = new Map<string, string>();
  const seen = new Set<string>();
  for (let write = node.last; write !== undefined; write = write.previous) {
    if (seen.has(write.field)) continue;
    seen.add(write.field);
    const place = originText(write.origin);
    if (place !== undefined) origins.set(write.field, commentText(place));
  }
  return origins;
}

/** A flag's text may hold anything: nothing of it may end the comment. */
function commentText(place: string): string {
  return place.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ').trim();
}

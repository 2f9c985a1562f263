/** @file Configs as TypeScript: a module whose function makes an equal config. */
import { getPath } from '../access.js';
import { Configurable } from '../configurable.js';
import { derive } from '../derive.js';
import { showValue } from '../describe.js';
import { ConfigError } from '../errors.js';
import { type ConfigNode, fieldTags, nodeOf, originText, rawValue } from '../node.js';
import type { PathLink } from '../paths.js';
import { addTag, clearTags, explicitTags } from '../tags.js';
import { action, type Code, call, type Entry, object, statement, text } from './code.js';
import { itemsIn } from './graph.js';
import { Imports, type Modules } from './imports.js';
import { isIdentifier, stringText } from './literals.js';
import { Names, nameCandidates } from './names.js';
import { Body, type Plan, planFor } from './plan.js';
import { valueCode } from './values.js';

/** What `codegen` takes. */
export interface CodegenOptions {
  /**
   * The modules to import from, by the specifier to write: `{ './layers.js': await import('./layers.js') }`. Classes,
   * functions, tags and other constants are looked up in them by identity; the first module that exports one wins. The
   * library's own functions are imported from 'luthier' where no module here has them.
   */
  readonly modules: Modules;
  /** The name of the function; the default is `config`. */
  readonly functionName?: string;
  /** Sub-configs that get a function of their own: its name by their path, such as `{ 'model.encoder': 'encoder' }`. */
  readonly fixtures?: Readonly<Record<string, string>>;
  /** `nested`, the default: `Root.config({ … })` around its parts. `statements`: a name for each config, and assignments. */
  readonly style?: 'nested' | 'statements';
  /** At most so many values stand in one expression; larger parts get names. There is no limit by default. */
  readonly maxComplexity?: number;
  /** Says in a comment where each value was set. */
  readonly history?: boolean;
}

// Parsers and type checkers recurse; people stop reading much earlier.
const deepestExpression = 10;

/**
 * `root`, a config or containers of configs, as the text of a TypeScript module whose function makes an equal config
 * with the same sharing and tags. Only values that were set or edited are stated. The text is laid out as the project's
 * formatter would, however large the config is.
 *
 * @throws ConfigError for classes that no module exports, and values that cannot be written as code, with their path.
 */
export function codegen(root: unknown, options: CodegenOptions): string {
  return new Generator(root, options).module();
}

class Generator {
  private readonly names = new Names();
  private readonly main: Body;
  private readonly bodies: Body[] = [];
  private readonly imports: Imports;
  private readonly plans: ReadonlyMap<ConfigNode, Plan>;
  private readonly expressions = new Map<Plan, Code>();
  private readonly inStatements: boolean;

  constructor(
    private readonly root: unknown,
    private readonly options: CodegenOptions,
  ) {
    this.inStatements = options.style === 'statements';
    this.main = new Body(this.functionName(options.functionName ?? 'config', 'functionName'));
    const fixtures = this.fixtures();
    this.imports = new Imports(options.modules, this.names);
    const items = itemsIn(root);
    // Classes keep their own names wherever they can: they choose before the variables.
    for (const { node, path } of items.values()) this.target(node, path);
    this.plans = planFor(
      root,
      items,
      this.main,
      fixtures,
      { depth: deepestExpression, complexity: options.maxComplexity ?? Number.POSITIVE_INFINITY },
      ({ node, fields }) => node.tags !== undefined || (this.inStatements && fields.length > 0),
    );
  }

  module(): string {
    for (const plan of this.plans.values()) this.write(plan);
    const result = this.value(this.root, this.main, undefined);
    this.main.statements.push(statement('return', result));
    const functions = [this.main, ...this.bodies].map(
      (body) =>
        `export function ${body.name}(${this.parameters(body)}) {\n${body.statements.join('\n')}\n}\n`,
    );
    const imports = this.imports.text();
    return [...(imports === '' ? [] : [imports]), ...functions].join('\n');
  }

  private functionName(name: string, option: string): string {
    if (isIdentifier(name) && this.names.isFree(name)) return this.names.take([name]);
    throw new ConfigError(
      `codegen: ${showValue(name)} cannot be the name of a function here (option ${option}).`,
    );
  }

  private fixtures(): Map<ConfigNode, Body> {
    const fixtures = new Map<ConfigNode, Body>();
    for (const [path, name] of Object.entries(this.options.fixtures ?? {})) {
      const node = nodeOf(getPath(this.root, path));
      const isOther = node !== undefined && node !== nodeOf(this.root) && !fixtures.has(node);
      if (!isOther) {
        const problem = node === undefined ? 'is no config' : 'has a function already';
        throw new ConfigError(`codegen: what stands at '${path}' ${problem} (option fixtures).`, { path });
      }
      fixtures.set(node, new Body(this.functionName(name, 'fixtures')));
    }
    return fixtures;
  }

  private target({ info }: ConfigNode, path: PathLink | undefined): string {
    const what = info.cls.prototype instanceof Configurable ? 'class' : 'target';
    return this.imports.require(info.cls, what, info.name, path);
  }

  /** Writes what makes the config: an expression for where it is used, or statements that give it a name. */
  private write(plan: Plan): void {
    const { fixture, home, node } = plan;
    const body = fixture ?? home;
    const isAssigned = this.inStatements && plan.fields.length > 0;
    let code = isAssigned ? this.assignments(plan, body) : this.nested(plan, body);
    if (node.tags !== undefined) {
      if (!isAssigned) code = this.declare(body, this.localName(plan), code);
      body.statements.push(...this.tagStatements(node, code));
    }
    if (fixture !== undefined) code = this.callOf(fixture, code, home);
    const hasName = code.kind === 'text' && code.flat === plan.variable;
    if (plan.isVariable && !hasName) code = this.declare(home, this.nameIt(plan), code);
    this.expressions.set(plan, code);
  }

  private declare(body: Body, name: string, code: Code): Code {
    body.statements.push(statement(`const ${name} =`, code));
    return text(name, 'name');
  }

  /** What a config is called where it is made: in its own function it has a name of its own. */
  private localName(plan: Plan): string {
    return plan.fixture === undefined ? this.nameIt(plan) : this.names.take(['made']);
  }

  private tagStatements(node: ConfigNode, config: Code): string[] {
    const lines: string[] = [];
    for (const [name, change] of explicitTags(node)) {
      const about = [config, text(stringText(name), 'string')];
      const isCut = change.removed.length > 0;
      if (isCut) lines.push(action(call(this.imports.library(clearTags), about)));
      const wanted = isCut ? fieldTags(node, node.info.fields.get(name)!) : change.added;
      const tags = wanted.map((tag) => text(this.imports.require(tag, 'tag', tag.name, undefined)));
      if (tags.length > 0) lines.push(action(call(this.imports.library(addTag), [...about, ...tags])));
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
      const assignment = statement(`${name}.${key} =`, value);
      body.statements.push(comment === undefined ? assignment : commented(assignment, comment));
    }
    return made;
  }

  private callee({ node, path }: Plan): string {
    return `${this.target(node, path)}.${node.kind}`;
  }

  private entries({ node, path, fields }: Plan, body: Body): Entry[] {
    const comments = this.options.history === true ? lastOrigins(node) : undefined;
    return fields.map(({ name }, i) => {
      const value = this.value(rawValue(node, fields[i]!), body, { parent: path, segment: name });
      return { key: name, value, comment: comments?.get(name) };
    });
  }

  private value(value: unknown, body: Body, path: PathLink | undefined): Code {
    const config = (node: ConfigNode): Code => {
      const plan = this.plans.get(node)!;
      if (plan.isVariable) mention(plan, body);
      return this.expressions.get(plan)!;
    };
    return valueCode(value, { imports: this.imports, config }, path);
  }

  private callOf(fixture: Body, made: Code, home: Body): Code {
    fixture.statements.push(statement('return', made));
    this.bodies.push(fixture);
    for (const parameter of fixture.parameters) mention(parameter, home);
    const values = [...fixture.parameters].map(({ variable }) => text(variable!, 'name'));
    return call(fixture.name, values);
  }

  private nameIt(plan: Plan): string {
    const prefix = plan.uses > 1 ? 'shared' : '';
    const candidates =
      plan.path === undefined ? ['root'] : nameCandidates(plan.path, plan.node.info.name, prefix);
    plan.variable ??= this.names.take(candidates);
    return plan.variable;
  }

  private parameters({ parameters }: Body): string {
    return [...parameters].map((plan) => `${plan.variable}: ${this.typeOf(plan)}`).join(', ');
  }

  private typeOf({ node, path }: Plan): string {
    const target = this.target(node, path);
    // What a configurable function's config is called is known to its own types alone.
    if (!(node.info.cls.prototype instanceof Configurable))
      return `ReturnType<typeof ${target}.${node.kind}>`;
    const type = node.kind === 'partial' ? 'PartialConfig' : 'Config';
    return `${this.imports.type(derive, type)}<${target}>`;
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

function commented(assignment: string, comment: string): string {
  if (!assignment.includes('\n')) return `${assignment} // ${comment}`;
  return `${/^ */.exec(assignment)![0]}// ${comment}\n${assignment}`;
}

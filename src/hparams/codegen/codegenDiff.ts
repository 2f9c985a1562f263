/** @file Diffs as TypeScript modules: a function that derives the new config from the old one. */

import {
  AddedPart,
  bringsValue,
  type Diff,
  type DiffPlace,
  type DiffValue,
  OldPart,
  type PartConfig,
  type Path,
} from '../diff/changes.js';
import { type ConfigEdits, groupChanges, type ValueEdits } from '../diff/groupChanges.js';
import { getPath } from '../editing/access.js';
import { derive } from '../editing/derive.js';
import { deepCopy, unset, updateCallable } from '../editing/edit.js';
import { ConfigError } from '../errors.js';
import { isCarrierClass } from '../fields/fields.js';
import { withFieldTags } from '../nodes/carriers.js';
import { newNode } from '../nodes/config.js';
import { mapContainers } from '../nodes/containers.js';
import { type ConfigNode, fieldTags } from '../nodes/node.js';
import { addTag, removeTag } from '../tags.js';
import { formatLink, formatPath, type Segment } from '../walking/paths.js';
import {
  array,
  type Code,
  call,
  functionText,
  indented,
  keyText,
  memberText,
  object,
  stringText,
} from './code.js';
import { functionName, moduleText } from './codegen.js';
import { configType, Imports, type Modules, Names, nameCandidates, targetName } from './imports.js';
import { Body } from './plan.js';
import { ConfigWriter } from './writer.js';

/** Options of `codegenDiff`. */
interface CodegenDiffOptions {
  /** As for `codegen`. */
  readonly modules: Modules;
  /** The name of the function; the default is `edit`. */
  readonly functionName?: string;
}

/**
 * `diff`, of two configs, as the text of a TypeScript module with a function that takes the old config and derives the
 * new one, as `applyDiff` does. Configs that change or move have names that are taken before anything changes.
 *
 * @throws ConfigError for a diff of containers of configs, for a config that becomes one of another kind, and for all
 *   that `codegen` cannot write.
 */
export function codegenDiff(diff: Diff, options: CodegenDiffOptions): string {
  return new DiffGenerator(diff, options).module();
}

class DiffGenerator {
  private readonly names = new Names();
  private readonly imports: Imports;
  private readonly body: Body;
  private readonly places: ReadonlyMap<Path, DiffPlace>;
  /** Variable names of old configs. */
  private readonly variables = new Map<Path, string>();
  private readonly added: readonly ConfigNode[];
  private readonly edits: ReadonlyMap<Path, ConfigEdits>;
  private readonly replaced: { readonly value: DiffValue } | undefined;
  private readonly writer: ConfigWriter;

  constructor(diff: Diff, options: CodegenDiffOptions) {
    this.body = new Body(functionName(this.names, options.functionName ?? 'edit', 'functionName'));
    this.names.take(['root']);
    this.names.take(['draft']);
    this.imports = new Imports(options.modules, this.names);
    this.places = new Map(diff.places.map((place) => [place.path, place]));
    const { configs, root } = groupChanges(diff.changes);
    this.edits = configs;
    const [whole] = root.whole;
    if (root.parts.size + root.inserts.length > 0) {
      throw new ConfigError('codegenDiff edits one config; this is a diff of containers of configs.');
    }
    this.replaced = whole === undefined || whole.kind === 'delete' ? undefined : { value: whole.value };
    this.added = diff.added.map(({ info, kind }) => newNode(info, kind));
    for (const [i, part] of diff.added.entries()) this.fill(this.added[i]!, part);
    for (const { info, path } of diff.added) {
      if (!isCarrierClass(info.cls)) targetName(this.imports, info, path);
    }
    const values = diff.changes.filter(bringsValue).map(({ value }) => value);
    const used = new Set(configs.keys());
    for (const value of [...diff.added.map((part) => part.values), ...values]) {
      mapContainers(value, (leaf) => leaf instanceof OldPart && used.add(leaf.path));
    }
    for (const path of used) this.nameOld(path, used);
    for (const [path, each] of configs) this.changeClass(path, each);
    this.writer = new ConfigWriter(this.withAdded(values), {
      names: this.names,
      imports: this.imports,
      main: this.body,
      paths: new Map(this.added.map((node, i) => [node, diff.added[i]!.path])),
      special: (value) => (value instanceof OldPart ? this.variables.get(value.path)! : undefined),
    });
    for (const [path, each] of configs) this.write(path, each);
  }

  module(): string {
    const { name, statements } = this.body;
    const root = this.variables.size > 0 ? this.at(undefined) : undefined;
    const type =
      root === undefined
        ? this.imports.type(derive, 'AnyConfig')
        : configType(this.imports, root.info, root.kind);
    const head = `export function ${name}`;
    if (this.replaced !== undefined) {
      const copied = `const draft = ${this.imports.library(deepCopy)}(root);`;
      const code = `return ${this.value(this.replaced.value)};`;
      if (root === undefined) return this.text(head, `_root: ${type}`, [...statements, code]);
      return this.text(head, `root: ${type}`, [copied, ...statements, code]);
    }
    if (root === undefined) return this.text(`${head}<C extends ${type}>`, 'root: C', ['return root;'], 'C');
    const becomes = this.edits.get(undefined)?.class[0];
    const result = becomes === undefined ? type : configType(this.imports, becomes.value, root.kind);
    const end = becomes === undefined ? '' : ` as unknown as ${result}`;
    const recipe = `(draft) => {\n${statements.map(indented).join('\n')}\n}`;
    const made = `return ${this.imports.library(derive)}(root, ${recipe})${end};`;
    return this.text(head, `root: ${type}`, [made], result);
  }

  private text(head: string, parameter: string, statements: readonly Code[], result?: string): string {
    return moduleText(this.imports, [functionText(head, [parameter], statements, result)]);
  }

  private at(path: Path): DiffPlace {
    const place = this.places.get(path);
    if (place !== undefined) return place;
    throw new ConfigError('codegenDiff: the diff does not define the config at one of its paths.');
  }

  /** Makes the config of a part that is added. */
  private fill(node: ConfigNode, { values, tags }: PartConfig): void {
    for (const [name, value] of Object.entries(values)) node.values[name] = this.withAdded(value);
    for (const { field, tag, present } of tags) {
      const info = node.info.fields.get(field)!;
      const others = fieldTags(node, info).filter((each) => each !== tag);
      node.tags = withFieldTags(node.tags, info, present ? [...others, tag] : others);
    }
  }

  private withAdded(value: DiffValue): unknown {
    return mapContainers(value, (leaf) => (leaf instanceof AddedPart ? this.added[leaf.index]!.proxy : leaf));
  }

  /** Writes the variable of the old config at `path`, after those of its ancestors in `used`. */
  private nameOld(path: Path, used: ReadonlySet<Path>): void {
    const open: { path: NonNullable<Path>; owner: Path; steps: Segment[] }[] = [];
    for (let at = path; at !== undefined && !this.variables.has(at); ) {
      const here: NonNullable<Path> = at;
      const steps = [here.segment];
      at = here.parent;
      while (at !== undefined && !used.has(at)) {
        steps.push(at.segment);
        at = at.parent;
      }
      open.push({ path: here, owner: at, steps: steps.reverse() });
    }
    if (!this.variables.has(undefined)) this.variables.set(undefined, 'draft');
    for (const each of open.reverse()) {
      const { info, kind } = this.at(each.path);
      this.refuseCarrier(each.path);
      const name = this.names.take(nameCandidates(each.path, info.name, ''));
      const owner = this.variables.get(each.owner)!;
      const found =
        each.steps.length === 1
          ? `${owner}.${String(each.steps[0])}`
          : `${this.imports.library(getPath)}(${owner}, ${stringText(formatPath(each.steps))})`;
      const type = configType(this.imports, info, kind);
      this.body.statements.push(`const ${name} = ${found} as ${type};`);
      this.variables.set(each.path, name);
    }
  }

  private refuseCarrier(path: Path): void {
    if (!isCarrierClass(this.at(path).info.cls)) return;
    const where = formatLink(path);
    throw new ConfigError(
      `codegenDiff: ${where} is a value with tags of its own, which code cannot change or move. Use applyDiff, or write the whole container.`,
      { path: where },
    );
  }

  private changeClass(path: Path, { class: classes, kind: kinds }: ConfigEdits): void {
    for (const { old, value } of kinds) {
      const where = formatLink(path) || '<root>';
      throw new ConfigError(
        `codegenDiff: ${where} becomes a ${value} in the place of a ${old}, which derive() cannot do. Use applyDiff, or write the new config.`,
        { path: formatLink(path) },
      );
    }
    for (const { value } of classes) {
      const target = targetName(this.imports, value, path);
      const name = this.names.take(nameCandidates(undefined, value.name, ''));
      const update = this.imports.library(updateCallable);
      const old = this.variables.get(path)!;
      this.body.statements.push(`const ${name} = ${update}(${old}, ${target}, { dropInvalid: true });`);
      this.variables.set(path, name);
    }
  }

  private value(value: DiffValue): Code {
    return this.writer.value(this.withAdded(value), this.body, undefined);
  }

  /** Writes the changes of one config. */
  private write(path: Path, edits: ConfigEdits): void {
    const { statements } = this.body;
    const config = this.variables.get(path)!;
    const info = edits.class[0]?.value ?? this.at(path).info;
    const run = (callee: Function, ...values: Code[]): number =>
      statements.push(`${call(this.imports.library(callee), [config, ...values])};`);
    for (const { kind, field, tag } of edits.tags) {
      const name = this.imports.require(tag, 'tag', tag.name, path);
      run(kind === 'addTag' ? addTag : removeTag, stringText(field), name);
    }
    for (const [name, inner] of edits.fields) {
      // Fields that the new class lacks went with the old one.
      if (!info.fields.has(name)) continue;
      const [change] = inner.whole;
      const place = `${config}.${name}`;
      if (change?.kind === 'delete') run(unset, stringText(name));
      else if (change !== undefined) statements.push(`${place} = ${this.value(change.value)};`);
      else {
        const old = this.names.take([name]);
        statements.push(`const ${old} = ${place} as ${containerType(inner)};`);
        statements.push(`${place} = ${this.contents(old, inner)} as typeof ${place};`);
      }
    }
  }

  /** The list or record that `old`, an expression, becomes. */
  private contents(old: Code, edits: ValueEdits): Code {
    return edits.isList ? this.list(old, edits) : this.record(old, edits);
  }

  /** The new code of a container's part; undefined if it is removed or only moved. */
  private part(old: Code, edits: ValueEdits): Code | undefined {
    const [change] = edits.whole;
    if (change?.kind === 'delete') return undefined;
    if (change !== undefined) return this.value(change.value);
    const isSame = edits.parts.size + edits.inserts.length === 0;
    return isSame ? undefined : this.contents(`(${old} as ${containerType(edits)})`, edits);
  }

  private record(old: Code, { parts }: ValueEdits): Code {
    const gone: Code[] = [];
    const entries = [...parts.values()].flatMap(({ key, edits }) => {
      const value = this.part(old + memberText(String(key)), edits);
      if (value === undefined) gone.push(stringText(String(key)));
      return value === undefined ? [] : [{ key: keyText(String(key)), value }];
    });
    const kept = `Object.entries(${old}).filter(([key]) => !${array(gone)}.includes(key))`;
    const rest = `...${gone.length === 0 ? old : `Object.fromEntries(${kept})`}`;
    return object([{ key: rest, value: rest }, ...entries]);
  }

  private list(old: Code, edits: ValueEdits): Code {
    const arrivals = edits.arrivals();
    const parts = new Map<unknown, { code: Code | undefined; stays: boolean }>();
    for (const { key, edits: inner } of edits.parts.values())
      parts.set(key, { code: this.part(`${old}[${key}]`, inner), stays: inner.item.length === 0 });
    const items: Code[] = [];
    let next = 0;
    const places = new Set([...arrivals.keys(), ...parts.keys()]) as Set<number>;
    for (const at of [...places].sort((a, b) => a - b)) {
      if (at > next) items.push(`...${old}.slice(${next}${Number.isFinite(at) ? `, ${at}` : ''})`);
      for (const change of arrivals.get(at) ?? []) {
        const index = change.path?.segment;
        if (change.kind === 'insert') items.push(this.value(change.value));
        else items.push(parts.get(index)?.code ?? `${old}[${String(index)}]`);
      }
      const part = parts.get(at);
      if (part?.stays === true && part.code !== undefined) items.push(part.code);
      next = part === undefined ? at : at + 1;
    }
    if (Number.isFinite(next)) items.push(`...${old}.slice(${next})`);
    return array(items);
  }
}

function containerType(edits: ValueEdits): string {
  return edits.isList ? 'unknown[]' : 'Record<string, unknown>';
}

/** @file A diff as TypeScript: a module whose function derives the new config from the old one. */

import { type ConfigEdits, groupChanges } from '../diff/edits.js';
import {
  AddedPart,
  bringsValue,
  type Diff,
  type DiffPlace,
  type DiffValue,
  OldPart,
  type PartConfig,
  type Path,
  PathTable,
} from '../diff/types.js';
import { unset } from '../editing/assign.js';
import { deepCopy } from '../editing/copy.js';
import { derive } from '../editing/derive.js';
import { updateCallable } from '../editing/edit.js';
import { ConfigError } from '../errors.js';
import { isCarrierClass } from '../fields/fields.js';
import { newNode } from '../nodes/config.js';
import { mapContainers } from '../nodes/containers.js';
import { type ConfigNode, fieldTags } from '../nodes/node.js';
import { withFieldTags } from '../nodes/nodeTags.js';
import { addTag, removeTag } from '../tags.js';
import { formatLink } from '../walking/paths.js';
import { action, type Code, call, object, signature, statement, text } from './code.js';
import { functionName, moduleText } from './codegen.js';
import { writeContents } from './contents.js';
import { configType, Imports, type Modules, targetName } from './imports.js';
import { Names, nameCandidates, stringText } from './names.js';
import { Places } from './places.js';
import { Body } from './plan.js';
import { ConfigWriter } from './writer.js';

/** What `codegenDiff` takes. */
export interface CodegenDiffOptions {
  /** As for `codegen`. */
  readonly modules: Modules;
  /** The name of the function; the default is `edit`. */
  readonly functionName?: string;
}

/**
 * `diff`, of two configs, as the text of a TypeScript module with a function that takes the old config and derives the
 * new one, as `applyDiff` does. Configs that move have names that are taken before anything changes.
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
  private readonly table = new PathTable();
  private readonly places: Places;
  private readonly added: readonly ConfigNode[];
  private readonly body: Body;
  private readonly edits: ReadonlyMap<Path, ConfigEdits>;
  private readonly replaced: { readonly value: DiffValue } | undefined;
  private readonly writer: ConfigWriter;

  constructor(
    private readonly diff: Diff,
    options: CodegenDiffOptions,
  ) {
    const name = functionName(this.names, options.functionName ?? 'edit', 'functionName');
    this.names.take(['root']);
    this.names.take(['draft']);
    this.imports = new Imports(options.modules, this.names);
    this.places = new Places(diff.places, this.table, this.names, this.imports, ({ info, kind }) =>
      configType(this.imports, info, kind),
    );
    const { configs, root } = groupChanges(diff.changes, (path) => this.table.intern(path));
    this.edits = configs;
    const [whole] = root.whole;
    if (root.parts.size + root.inserts.length > 0) {
      throw new ConfigError('codegenDiff edits one config; this is a diff of containers of configs.');
    }
    this.replaced = whole === undefined || whole.kind === 'delete' ? undefined : { value: whole.value };
    this.body = new Body(name, this.replaced === undefined ? 4 : 2);
    for (const [path, edits] of configs) this.check(path, edits);
    this.added = diff.added.map(({ info, kind }) => newNode(info, kind));
    for (const [i, part] of diff.added.entries()) this.fill(this.added[i]!, part);
    for (const { values } of diff.added) this.use(values);
    const values = this.newValues();
    this.use(values);
    for (const { info, path } of diff.added) {
      if (!isCarrierClass(info.cls)) targetName(this.imports, info, path);
    }
    this.nameOld();
    this.changeClasses();
    this.writer = new ConfigWriter(this.withAdded(values), {
      names: this.names,
      imports: this.imports,
      main: this.body,
      paths: new Map(this.added.map((node, i) => [node, diff.added[i]!.path])),
      special: (value) => (value instanceof OldPart ? text(this.places.text(value.path), 'name') : undefined),
    });
    for (const [path, each] of configs) this.write(path, each);
  }

  module(): string {
    const { name, statements } = this.body;
    const lines = statements.join('\n');
    const root = this.places.isUsed ? this.places.at(undefined) : undefined;
    const type = root === undefined ? this.imports.type(derive, 'AnyConfig') : this.type(root);
    if (this.replaced !== undefined) {
      const code = statement('return', this.value(this.replaced.value));
      if (root === undefined)
        return this.text(`${signature(name, [`_root: ${type}`])} {\n${lines}${lines && '\n'}${code}\n}\n`);
      const copied = statement('const draft =', call(this.imports.library(deepCopy), [text('root')]));
      return this.text(
        `${signature(name, [`root: ${type}`])} {\n${[copied, ...statements, code].join('\n')}\n}\n`,
      );
    }
    if (root === undefined)
      return this.text(`export function ${name}<C extends ${type}>(root: C): C {\n  return root;\n}\n`);
    const becomes = this.edits.get(undefined)?.class[0];
    const result = becomes === undefined ? type : configType(this.imports, becomes.value, root.kind);
    const end = becomes === undefined ? '' : ` as unknown as ${result}`;
    return this.text(
      `${signature(name, [`root: ${type}`], result)} {\n  return ${this.imports.library(derive)}(root, (draft) => {\n${lines}\n  })${end};\n}\n`,
    );
  }

  private text(code: string): string {
    return moduleText(this.imports, [code]);
  }

  private type({ info, kind }: DiffPlace): string {
    return configType(this.imports, info, kind);
  }

  private check(path: Path, { kind }: ConfigEdits): void {
    this.places.use(path);
    const [change] = kind;
    if (change === undefined) return;
    const where = formatLink(path) || '<root>';
    throw new ConfigError(
      `codegenDiff: ${where} becomes a ${change.value} in the place of a ${change.old}, which derive() cannot do. Use applyDiff, or write the new config.`,
      { path: formatLink(path) },
    );
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

  private use(value: DiffValue): void {
    mapContainers(value, (leaf) => {
      if (leaf instanceof OldPart) this.places.use(leaf.path);
      return leaf;
    });
  }

  /** What the changes put into the config. */
  private newValues(): DiffValue[] {
    return this.diff.changes.filter(bringsValue).map(({ value }) => value);
  }

  private nameOld(): void {
    const replaced = new Set<Path>();
    for (const change of this.diff.changes) {
      if (change.kind === 'set' || change.kind === 'modify' || change.kind === 'delete')
        replaced.add(this.table.intern(change.path));
    }
    this.places.write(
      this.body,
      'draft',
      (path) => replaced.has(path),
      (path) => this.edits.get(path)?.class.length === 1,
    );
  }

  private changeClasses(): void {
    const drop = object([{ key: 'dropInvalid', value: text('true', 'boolean') }]);
    for (const [path, { class: changes }] of this.edits) {
      for (const { value } of changes) {
        const target = targetName(this.imports, value, path);
        const made = call(this.imports.library(updateCallable), [
          text(this.places.text(path)),
          text(target),
          drop,
        ]);
        const name = this.names.take(nameCandidates(undefined, value.name, ''));
        this.body.statements.push(statement(`const ${name} =`, made, this.body.indent));
        this.places.rename(path, name);
      }
    }
  }

  private value(value: DiffValue): Code {
    return this.writer.value(this.withAdded(value), this.body, undefined);
  }

  /** Writes the changes of one config. */
  private write(path: Path, edits: ConfigEdits): void {
    const { statements, indent } = this.body;
    const place = this.places.text(path);
    const { info: old } = this.places.at(path);
    const info = edits.class[0]?.value ?? old;
    const run = (callee: Function, ...values: Code[]): number =>
      statements.push(action(call(this.imports.library(callee), [text(place), ...values]), indent));
    for (const { kind, field, tag } of edits.tags) {
      const name = this.imports.require(tag, 'tag', tag.name, path);
      run(kind === 'addTag' ? addTag : removeTag, text(stringText(field), 'string'), text(name));
    }
    for (const [name, inner] of edits.fields) {
      const [change] = inner.whole;
      const field = info.fields.get(name);
      // Fields that the new class lacks went with the old one.
      if (field === undefined) continue;
      if (change === undefined) {
        const context = {
          body: this.body,
          names: this.names,
          value: (value: DiffValue) => this.value(value),
        };
        writeContents(`${place}.${name}`, name, inner, field.check, context);
      } else if (change.kind === 'delete') run(unset, text(stringText(name), 'string'));
      else statements.push(statement(`${place}.${name} =`, this.value(change.value), indent));
    }
  }
}

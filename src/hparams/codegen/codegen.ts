/** @file Configs as TypeScript modules: a function, or a class with methods, that makes equal configs. */
import { getPath } from '../editing/access.js';
import { ConfigError } from '../errors.js';
import { showValue } from '../fields/describe.js';
import { refusedKeys } from '../nodes/containers.js';
import { type ConfigNode, nodeOf } from '../nodes/node.js';
import { functionText, indented, isIdentifier } from './code.js';
import { Imports, type Modules, Names } from './imports.js';
import { Body, itemsIn } from './plan.js';
import { ConfigWriter, type WriterOptions } from './writer.js';

/** Options of `codegen`. */
export interface CodegenOptions {
  /**
   * The modules to import from, by the specifier to write: `{ './layers.js': await import('./layers.js') }`. Classes,
   * functions, tags and other constants are looked up in them by identity; the first module that exports one wins. The
   * library's own functions are imported from 'luthier/hparams' where no module here has them.
   */
  readonly modules: Modules;
  /** The name of the function; the default is `config`. */
  readonly functionName?: string;
  /** Sub-configs that get a function of their own: its name by their path, such as `{ 'model.encoder': 'encoder' }`. */
  readonly fixtures?: Readonly<Record<string, string>>;
  /** `nested`, the default: `Root.config({ … })` around its parts. `statements`: a name for each config, and assignments. */
  readonly style?: 'nested' | 'statements';
  /** Most values in one expression; larger parts get names. Unlimited by default. */
  readonly maxComplexity?: number;
  /** Adds comments with the place that set each value. */
  readonly history?: boolean;
}

/**
 * `root`, a config or containers of configs, as the text of a TypeScript module whose function makes an equal config
 * with the same sharing and tags. Only values that were set or edited are stated.
 *
 * @throws ConfigError for classes that no module exports, and values that cannot be written as code, with their path.
 */
export function codegen(root: unknown, options: CodegenOptions): string {
  const names = new Names();
  const main = new Body(functionName(names, options.functionName ?? 'config', 'functionName'));
  const fixtures = fixturesOf(root, options, names);
  const imports = new Imports(options.modules, names);
  const { maxComplexity, history, style } = options;
  const inStatements = style === 'statements';
  const writer = new ConfigWriter(root, {
    ...{ names, imports, main, fixtures, inStatements, maxComplexity, history },
  });
  main.statements.push(`return ${writer.value(root, main, undefined)};`);
  const functions = [main, ...writer.bodies].map((body) =>
    functionText(`export function ${body.name}`, writer.parameters(body), body.statements),
  );
  return moduleText(imports, functions);
}

/** The text of a module. */
export function moduleText(imports: Imports, functions: readonly string[]): string {
  const text = imports.text();
  return [...(text === '' ? [] : [text]), ...functions].join('\n');
}

/** Takes the name of a function. @throws ConfigError where it cannot have this name. */
export function functionName(names: Names, name: string, option: string): string {
  if (isIdentifier(name) && names.isFree(name)) return names.take([name]);
  throw new ConfigError(`${showValue(name)} cannot be the name of a generated function (option ${option}).`);
}

function fixturesOf(root: unknown, options: CodegenOptions, names: Names): Map<ConfigNode, Body> {
  const fixtures = new Map<ConfigNode, Body>();
  for (const [path, name] of Object.entries(options.fixtures ?? {})) {
    const node = nodeOf(getPath(root, path));
    if (node === undefined || node === nodeOf(root) || fixtures.has(node)) {
      const problem = node === undefined ? 'is no config' : 'has a function already';
      throw new ConfigError(`codegen: the value at '${path}' ${problem} (option fixtures).`, { path });
    }
    fixtures.set(node, new Body(functionName(names, name, 'fixtures')));
  }
  return fixtures;
}

/** Options of `codegenClass`. */
export interface CodegenClassOptions extends Omit<CodegenOptions, 'functionName' | 'fixtures'> {
  /** The name of the class. */
  readonly className: string;
  /** Base class, whose methods are overridden. One of the modules exports it. */
  readonly baseClass: Function;
  /** Text of the file's `@file` comment. */
  readonly fileComment: string;
  /** Text of the class's docstring. */
  readonly comment: string;
}

/**
 * Source of a TypeScript module with a class that has a method for each entry of `values`, configs or containers of
 * configs. A method returns an equal value, with the same sharing and tags, also across methods.
 *
 * @throws ConfigError for classes that no module exports, and values without a form as code, with their path.
 */
export function codegenClass(
  values: Readonly<Record<string, unknown>>,
  options: CodegenClassOptions,
): string {
  const { maxComplexity, history, style } = options;
  const names = new Names();
  if (!isIdentifier(options.className) || !names.isFree(options.className)) {
    throw new ConfigError(`${showValue(options.className)} cannot be the name of a class.`);
  }
  const className = names.take([options.className]);
  for (const name of Object.keys(values)) {
    if (!isIdentifier(name) || refusedKeys.has(name)) {
      throw new ConfigError(`codegenClass: '${name}' cannot be the name of a method.`);
    }
  }
  const imports = new Imports(options.modules, names);
  const base = imports.require(options.baseClass, 'class', options.baseClass.name, undefined);
  const shared = { names, imports, maxComplexity, history, inStatements: style === 'statements' };
  const { before, members } = (isSharedBetween(values) ? methodsOfOne : separateMethods)(values, shared);
  const header = `${comment(options.comment)}export class ${className} extends ${base}`;
  const body = members.length === 0 ? '{}' : `{\n${members.map(indentedLines).join('\n')}}`;
  return `${comment(`@file ${options.fileComment}`)}${moduleText(imports, [...before, `${header} ${body}\n`])}`;
}

type Writing = Omit<WriterOptions, 'main'>;

/** The members of a class, and the functions in front of it. */
interface Members {
  readonly before: readonly string[];
  readonly members: readonly string[];
}

/** Methods that share no configs. */
function separateMethods(values: Readonly<Record<string, unknown>>, options: Writing): Members {
  const members = Object.entries(values).map(([name, value]) => {
    const main = new Body(name);
    const at = { parent: undefined, segment: name };
    const writer = new ConfigWriter(value, { ...options, main, at });
    const made = `return ${writer.value(value, main, at)};`;
    return functionText(`override ${name}`, [], [...main.statements, made]);
  });
  return { before: [], members };
}

/** Methods that share configs: one function makes all values. */
function methodsOfOne(values: Readonly<Record<string, unknown>>, options: Writing): Members {
  const main = new Body(options.names.take(['makeConfigs']));
  const writer = new ConfigWriter(values, { ...options, main });
  const made = `return ${writer.value(values, main, undefined)};`;
  return {
    before: [functionText(`function ${main.name}`, [], [...main.statements, made])],
    members: [
      `readonly #configs = ${main.name}();\n`,
      ...Object.keys(values).map((name) =>
        functionText(`override ${name}`, [], [`return this.#configs.${name};`]),
      ),
    ],
  };
}

function indentedLines(member: string): string {
  return `${indented(member.trimEnd())}\n`;
}

/** Whether a config is in more than one of the values, or is stated only because it does. */
function isSharedBetween(values: Readonly<Record<string, unknown>>): boolean {
  const together = itemsIn(values);
  const alone = Object.values(values).flatMap((value) => [...itemsIn(value).values()]);
  return (
    alone.length !== together.size ||
    alone.some(({ node, fields }) => together.get(node)!.fields.length !== fields.length)
  );
}

/** A doc comment. */
function comment(said: string): string {
  // No text may end the comment.
  const safe = said.replaceAll('*/', '*\\/');
  if (!safe.includes('\n')) return `/** ${safe} */\n`;
  const lines = safe.split('\n').map((line) => ` * ${line}`.trimEnd());
  return `/**\n${lines.join('\n')}\n */\n`;
}

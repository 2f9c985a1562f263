/** @file Configs as TypeScript: a module whose function makes an equal config. */
import { getPath } from '../editing/access.js';
import { ConfigError } from '../errors.js';
import { showValue } from '../fields/describe.js';
import { type ConfigNode, nodeOf } from '../nodes/node.js';
import { signature, statement } from './code.js';
import { Imports, type Modules } from './imports.js';
import { isIdentifier, Names } from './names.js';
import { Body } from './plan.js';
import { ConfigWriter } from './writer.js';

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

/**
 * `root`, a config or containers of configs, as the text of a TypeScript module whose function makes an equal config
 * with the same sharing and tags. Only values that were set or edited are stated. The text is laid out as the project's
 * formatter would, however large the config is.
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
  main.statements.push(statement('return', writer.value(root, main, undefined)));
  const functions = [main, ...writer.bodies].map(
    (body) => `${signature(body.name, writer.parameters(body))} {\n${body.statements.join('\n')}\n}\n`,
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
      throw new ConfigError(`codegen: what stands at '${path}' ${problem} (option fixtures).`, { path });
    }
    fixtures.set(node, new Body(functionName(names, name, 'fixtures')));
  }
  return fixtures;
}

/** @file Configs as TypeScript: a class whose methods make equal configs. */
import { ConfigError } from '../errors.js';
import { showValue } from '../fields/describe.js';
import { refusedKeys } from '../nodes/containers.js';
import { type ConfigNode, rawValue } from '../nodes/node.js';
import { edgesIn } from '../walking/walk.js';
import { statement, text } from './code.js';
import { type CodegenOptions, moduleText } from './codegen.js';
import { Imports } from './imports.js';
import { isIdentifier, Names } from './names.js';
import { Body, itemsIn } from './plan.js';
import { ConfigWriter, type WriterOptions } from './writer.js';

/** What `codegenClass` takes. */
export interface CodegenClassOptions extends Omit<CodegenOptions, 'functionName' | 'fixtures'> {
  /** The name of the class. */
  readonly className: string;
  /** What it extends; its methods are overridden. One of the modules exports it. */
  readonly baseClass: Function;
  /** What the file is, for the comment that opens it. */
  readonly fileComment: string;
  /** What the class is, for the comment before it. */
  readonly comment: string;
}

/**
 * The text of a TypeScript module with a class that has a method for each entry of `values`, configs or containers of
 * configs: what the method returns equals the value, with the same sharing and tags, also between methods.
 *
 * @throws ConfigError for classes that no module exports, and values that cannot be written as code, with their path.
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
  const write = isSharedBetween(values) ? methodsOfOne : separateMethods;
  const { functions, members } = write(values, shared);
  const header = `${comment(options.comment)}export class ${className} extends ${base}`;
  const body = members.length === 0 ? '{}' : `{\n${members.join('\n')}}`;
  const module = moduleText(imports, [...functions, `${header} ${body}\n`]);
  return `${comment(`@file ${options.fileComment}`)}${module}`;
}

type Writing = Omit<WriterOptions, 'main'>;

interface Written {
  readonly functions: readonly string[];
  readonly members: readonly string[];
}

/** Each method makes what it returns. */
function separateMethods(values: Readonly<Record<string, unknown>>, options: Writing): Written {
  const members = Object.entries(values).map(([name, value]) => {
    const main = new Body(name, 4);
    const at = { parent: undefined, segment: name };
    const writer = new ConfigWriter(value, { ...options, main, at });
    main.statements.push(statement('return', writer.value(value, main, at), 4));
    return method(name, main.statements);
  });
  return { functions: [], members };
}

/** One function makes everything, for what one method returns is part of what another returns. */
function methodsOfOne(values: Readonly<Record<string, unknown>>, options: Writing): Written {
  const main = new Body(options.names.take(['makeConfigs']));
  const writer = new ConfigWriter(values, { ...options, main });
  main.statements.push(statement('return', writer.value(values, main, undefined)));
  const make = `function ${main.name}() {\n${main.statements.join('\n')}\n}\n`;
  const field = `  readonly #configs = ${main.name}();\n`;
  const members = Object.keys(values).map((name) =>
    method(name, [statement('return', text(`this.#configs.${name}`), 4)]),
  );
  return { functions: [make], members: [field, ...members] };
}

function method(name: string, statements: readonly string[]): string {
  return `  override ${name}() {\n${statements.join('\n')}\n  }\n`;
}

/** Whether a config stands in more than one of the values. */
function isSharedBetween(values: Readonly<Record<string, unknown>>): boolean {
  const owner = new Map<ConfigNode, string>();
  const claim = (part: unknown, by: string): boolean =>
    edgesIn(part, undefined).every(({ node }) => {
      const known = owner.get(node);
      owner.set(node, known ?? by);
      return known === undefined || known === by;
    });
  const outerFirst = [...itemsIn(values).values()].reverse();
  return !(
    Object.entries(values).every(([name, value]) => claim(value, name)) &&
    outerFirst.every(({ node, fields }) =>
      fields.every((field) => claim(rawValue(node, field), owner.get(node)!)),
    )
  );
}

const lineWidth = 110;

/** A doc comment; a text that does not fit on a line is broken between words. */
function comment(said: string): string {
  // Nothing that is said may end the comment.
  const safe = said.replaceAll('*/', '*\\/');
  const line = `/** ${safe} */\n`;
  if (!safe.includes('\n') && line.length <= lineWidth + 1) return line;
  const lines = safe.split('\n').flatMap((paragraph) => wrapped(paragraph, lineWidth - 3));
  return `/**\n${lines.map((each) => ` * ${each}`.trimEnd()).join('\n')}\n */\n`;
}

function wrapped(paragraph: string, width: number): string[] {
  const lines = [''];
  for (const word of paragraph.split(' ')) {
    const last = lines.at(-1)!;
    if (last !== '' && last.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = last === '' ? word : `${last} ${word}`;
  }
  return lines;
}

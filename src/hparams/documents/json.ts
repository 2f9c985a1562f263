/** @file Configs as JSON: a list of configs that refer to each other by number, so that sharing is kept. */

import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { ConfigError } from '../errors.js';
import { nameOf, specifierOfDeclared } from '../fields/classNames.js';
import { showValue } from '../fields/describe.js';
import { setJsonForm } from '../nodes/config.js';
import { type ConfigNode, isExplicit, type Origin, originText, rawValue } from '../nodes/node.js';
import { origin } from '../nodes/record.js';
import { describeDifferences } from '../printing/print.js';
import { explicitTags, fileOfTag } from '../tags.js';
import { isEqual } from '../walking/equal.js';
import { shortPath } from '../walking/paths.js';
import { walk } from '../walking/walk.js';
import { Decoder } from './decodeDocument.js';
import {
  type DocumentProblem,
  documentIn,
  format,
  isRecord,
  type JsonConfig,
  type JsonDocument,
  longestJson,
  type ReadOptions,
  tagNames,
  throwProblems,
  version,
} from './document.js';
import { Encoder } from './marks.js';
import { ModuleList } from './modules.js';
import { parseJson } from './parse.js';
import { checkText, type Parsed } from './text.js';

/** Parts of a document besides configs. */
interface WriteOptions {
  /** Adds the path of each config. Default: false. */
  paths?: boolean;
  /** The modules of classes, constants and tags that the library lacks. Default: true. */
  modules?: boolean;
}

/**
 * `root`, a config or arrays and records of configs, as data for `JSON.stringify`. Only explicit values are kept, and
 * tags that were added or removed; history is not. Names that the library lacks are listed by the modules that have them,
 * which `loadModules` loads.
 *
 * @throws ConfigError with all values that have no JSON form, and their paths.
 */
export function toJSON(root: unknown, options: WriteOptions = {}): JsonDocument {
  const { document, problems } = encodeAll(root, options);
  throwProblems(problems, 'toJSON()');
  return document;
}

// JSON.stringify passes a property's name, which is no options.
setJsonForm((config) => toJSON(config));

/** The document of `root`, and the values that it lacks because they have no form. */
export function encodeAll(
  root: unknown,
  options: WriteOptions = {},
): { document: JsonDocument; problems: DocumentProblem[] } {
  const problems: DocumentProblem[] = [];
  const configs: JsonConfig[] = [];
  const modules = options.modules === false ? undefined : new ModuleList();
  let place: () => string | undefined = () => undefined;
  const encoder = new Encoder(
    (path, problem) => problems.push({ path, problem: `${path}: ${problem}`, place: place() }),
    (file, name) => modules?.addFile(file(), name),
  );
  walk(root, {
    leave(node, path) {
      const values: JsonConfig['values'] = {};
      for (const field of node.info.fields.values()) {
        if (!isExplicit(node, field.name)) continue;
        place = () => writtenAt(node, field.name);
        values[field.name] = encoder.encode(rawValue(node, field), { parent: path, segment: field.name });
      }
      encoder.numbers.set(node, configs.length);
      const name = nameOf(node.info.cls);
      modules?.add(specifierOfDeclared(node.info.cls), name);
      for (const { added, removed } of explicitTags(node).values())
        for (const tag of [...added, ...removed]) modules?.addFile(fileOfTag(tag), `#${tag.name}`);
      configs.push({
        class: name,
        ...(node.kind === 'config' ? {} : { kind: node.kind }),
        ...(options.paths === true ? { path: shortPath(path) } : {}),
        ...tagNames(node),
        values,
      });
    },
  });
  place = () => undefined;
  const encoded = encoder.encode(root, undefined);
  const document = { format, version, root: encoded, configs, ...modules?.entry } as const;
  return { document, problems };
}

function writtenAt(node: ConfigNode, field: string): string | undefined {
  for (let write = node.last; write !== undefined; write = write.previous) {
    if (write.field === field && write.kind !== 'tags') return originText(write.origin);
  }
  return undefined;
}

/**
 * The inverse of `toJSON`, from its document or the document's text. Every value is checked as if written in code.
 * Classes are found by name among those that the program has used, and `classes`; nothing is imported or run.
 *
 * @throws ConfigError with all problems: text that is not JSON, unknown classes, fields, constants and tags, invalid
 * values, a version that is newer than this library.
 */
export function fromJSON(document: JsonDocument | string, options: ReadOptions = {}): unknown {
  const writer = origin();
  if (typeof document !== 'string') return readDocument({ value: document }, writer, options);
  const text = checkText(document, options.maxBytes ?? longestJson);
  return parseJson(text, undefined, (parsed) => readDocument(parsed, writer, options));
}

/** Reads a parsed document; that of an experiment has the configs' document inside. */
export function readDocument(parsed: Parsed, writer: Origin, options: ReadOptions): unknown {
  const place = parsed.file ?? originText(writer);
  const document = documentIn(parsed.value) ?? parsed.value;
  const { root, configs } = partsOfDocument(document, place);
  const decoder = new Decoder(parsed, writer, options);
  for (const [number, entry] of configs.entries()) decoder.readEntry(entry, configs, number);
  const value = decoder.attempt(() =>
    decoder.read(root, { link: undefined, depth: 0, owner: document as object, key: 'root' }),
  );
  throwProblems(decoder.problems(root, configs), 'The config document', parsed.file);
  return value;
}

function partsOfDocument(
  document: unknown,
  place: string | undefined,
): { root: unknown; configs: readonly unknown[] } {
  if (!isRecord(document) || document.format !== format) {
    throw new ConfigError(`This is not a config document: it has no "format": "${format}".`, { place });
  }
  const { version: found } = document;
  if (typeof found === 'number' && Number.isInteger(found) && found > version) {
    throw new ConfigError(
      `The config document has version ${found}; this program reads versions up to ${version}. A newer release of it wrote the document.`,
      { place },
    );
  }
  if (found !== version) {
    throw new ConfigError(
      `The config document has version ${showValue(found)}; versions are integers from 1.`,
      { place },
    );
  }
  const configs = Object.hasOwn(document, 'configs') ? document.configs : [];
  if (!Array.isArray(configs) || !Object.hasOwn(document, 'root')) {
    throw new ConfigError('A config document has "root", and a list "configs".', { place });
  }
  return { root: document.root, configs };
}

/** Prefix of packed configs, with the version of the packing. */
const prefix = 'luthier-config:1:';

/** `root` as one line of letters, digits, `-`, `_` and `:`: its JSON, compressed. @throws ConfigError as `toJSON` does. */
export function configToString(root: unknown): string {
  return prefix + deflateRawSync(JSON.stringify(toJSON(root))).toString('base64url');
}

/** The inverse of `configToString`. @throws ConfigError as `fromJSON` does, and for truncated or changed text. */
export function configFromString(text: string, options: ReadOptions = {}): unknown {
  const packed = text.trim();
  if (!packed.startsWith(prefix)) {
    throw new ConfigError(`A packed config begins with '${prefix}', got ${showValue(text)}.`);
  }
  const body = packed.slice(prefix.length);
  if (!/^[\w-]+$/.test(body)) throw new ConfigError('The packed config holds invalid characters.');
  const maxBytes = options.maxBytes ?? longestJson;
  let json: string;
  try {
    // A few bytes can unpack to gigabytes.
    json = inflateRawSync(Buffer.from(body, 'base64url'), { maxOutputLength: maxBytes }).toString('utf8');
  } catch (cause) {
    const isLong = (cause as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE';
    const problem = isLong
      ? `unpacks to more than ${maxBytes} bytes, which the option maxBytes may allow`
      : 'is cut off or was changed';
    throw new ConfigError(`The packed config ${problem}.`, { cause });
  }
  return fromJSON(json, options);
}

/**
 * Writes `root` as `toJSON` does and reads it back.
 *
 * @throws ConfigError with all that would not survive: values without a form, classes that their name does not lead back
 *   to, values that are refused when read.
 */
export function checkSerializable(root: unknown, options: ReadOptions = {}): void {
  const { document, problems } = encodeAll(root);
  throwProblems(problems, 'checkSerializable()');
  const back = readDocument({ value: document }, origin(), options);
  if (isEqual(back, root)) return;
  const [first] = describeDifferences(root, back);
  throw new ConfigError(
    `The config does not survive a round trip${first === undefined ? ': a class has the name of another' : `: ${first}`}.`,
  );
}

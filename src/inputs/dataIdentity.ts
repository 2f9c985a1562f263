/** @file Identity of an input's data: tokenizer, files, contents. */

import { type Config, type Configurable, classOf, deepCopy, iterate } from '../hparams/index.js';
import type { JsonValue } from './jsonValue.js';

/** Identity of a tokenizer: what its ids depend on. */
interface TokenizerIdentity {
  /** Name of its class. */
  readonly class: string;
  /** Equal where the ids are: the class with its size and a digest of its vocabulary. */
  readonly identity: string;
  /** Fields of its config that it filled in from the corpus; set, they give the same ids with any corpus. */
  readonly learned: { readonly [field: string]: JsonValue };
}

/** A file when it was read. */
export interface DataFile {
  /** The path in messages. */
  readonly name: string;
  /** Absolute path. */
  readonly path: string;
  /** Bytes. */
  readonly size: number;
}

/** Identity of an input's data; parts that an input does not have are absent. */
export interface DataIdentity {
  /** Ids are below it. */
  readonly vocabSize?: number;
  readonly tokenizer?: TokenizerIdentity;
  /** The files of the split, in their order. */
  readonly files?: readonly DataFile[];
  /** Size and digest of all tokens of the split. */
  readonly contents?: string;
}

/**
 * A copy of a dataset's config whose tokenizers have the fields learned from the corpus of `identity`, where the config
 * sets none; the config itself where there is nothing to fill in.
 */
export function withTokenizerOf<T extends Configurable>(
  config: Config<T>,
  { tokenizer }: DataIdentity,
): Config<T> {
  if (tokenizer === undefined) return config;
  const learned = Object.entries(tokenizer.learned);
  const copied = deepCopy(config);
  let changed = false;
  for (const { config: part } of iterate(copied, { defaults: true })) {
    if (classOf(part).name !== tokenizer.class) continue;
    for (const [field, value] of learned) {
      const fields = part as unknown as Record<string, JsonValue>;
      if (fields[field] !== null) continue;
      fields[field] = value;
      changed = true;
    }
  }
  return changed ? copied : config;
}

const count = (value: number, noun: string): string => `${value} ${noun}${value === 1 ? '' : 's'}`;

/** Differences of an input's files and contents from the recorded ones, a phrase each. */
export function dataChanges(recorded: DataIdentity, now: DataIdentity): string[] {
  if (recorded.contents === now.contents) return [];
  const before = new Map(recorded.files?.map((file) => [file.name, file.size]));
  const after = new Map(now.files?.map((file) => [file.name, file.size]));
  const changes = [...before].flatMap(([name, size]) => {
    const found = after.get(name);
    if (found === undefined) return [`${name} is gone`];
    return found === size ? [] : [`${name} has ${count(found, 'byte')}, had ${size}`];
  });
  const added = [...after.keys()].filter((name) => !before.has(name)).map((name) => `${name} is new`);
  return [
    ...changes,
    ...added,
    `the data is ${now.contents ?? 'unknown'}, was ${recorded.contents ?? 'unknown'}`,
  ];
}

/** @file Identity of an input's data: tokenizer, files, contents. */

import { type Config, type Configurable, classOf, deepCopy, iterate } from '../hparams/index.js';
import type { JsonValue } from './jsonValue.js';

/** Identity of a tokenizer: everything that its ids depend on. */
interface TokenizerIdentity {
  /** Name of its class. */
  readonly class: string;
  /** Equal for equal ids: class, size and a digest of the vocabulary. */
  readonly identity: string;
  /** Config fields learned from the corpus; if set, they give the same ids with any corpus. */
  readonly learned: { readonly [field: string]: JsonValue };
}

/** A file as it was read. */
export interface DataFile {
  /** The path in messages. */
  readonly name: string;
  /** Absolute path. */
  readonly path: string;
  /** Bytes. */
  readonly size: number;
}

/** Identity of an input's data; properties that an input lacks are absent. */
export interface DataIdentity {
  /** Exclusive limit of ids. */
  readonly vocabSize?: number;
  readonly tokenizer?: TokenizerIdentity;
  /** The files of the split, in order. */
  readonly files?: readonly DataFile[];
  /** Size and digest of all tokens of the split. */
  readonly contents?: string;
}

/**
 * Copies a dataset's config and sets its tokenizers' unset fields to those learned from the corpus of `identity`;
 * returns the config itself if there are none.
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

/** Describes how an input's files and contents differ from the recorded ones, one phrase each. */
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

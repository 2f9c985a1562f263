/** @file Identity of an input's data: tokenizer, files, contents. */

import { type Config, type Configurable, classOf, deepCopy, formatPath, iterate } from '../hparams/index.js';
import type { JsonValue } from './jsonValue.js';
import { type PartState, type PartStates, partAt } from './recordedParts.js';
import type { CorpusFile } from './text/corpusFiles.js';

/** A file as it was read. */
export interface DataFile {
  /** The path in messages. */
  readonly name: string;
  /** Absolute path. */
  readonly path: string;
  /** Bytes. */
  readonly size: number;
  /** Of all its bytes; runs of before have none. */
  readonly sha256?: string;
}

/** A folder of files that are known together. */
export interface DataFolder {
  /** The path in messages. */
  readonly name: string;
  /** Absolute path. */
  readonly path: string;
  readonly numFiles: number;
  /** Bytes of all files, in records of runs. */
  readonly size?: number;
  /** Of the names and bytes of all files, in records of runs; those of before have none. */
  readonly sha256?: string;
  /** The files to digest. Records leave them out. */
  readonly members?: readonly CorpusFile[];
}

/** Identity of an input's data; properties that an input lacks are absent. */
export interface DataIdentity {
  /** Exclusive limit of ids. */
  readonly vocabSize?: number;
  /** That of the batches' `ids`. */
  readonly tokenizer?: PartState;
  /** Its other parts that read files or learn. */
  readonly parts?: PartStates;
  /** The files of the split, in order. */
  readonly files?: readonly DataFile[];
  /** The folders of files in classes. */
  readonly folders?: readonly DataFolder[];
  /** Size and digest of all tokens of the split. */
  readonly contents?: string;
}

/** The identity of an input's data with that of its parts; the tokenizer of `ids` occurs once. */
export function recordedIdentity(input: {
  dataIdentity(): DataIdentity;
  recordedParts(): PartStates;
}): DataIdentity {
  const identity = input.dataIdentity();
  const { tokenizer } = identity;
  const parts = Object.entries(input.recordedParts()).filter(
    ([, part]) => part.class !== tokenizer?.class || part.identity !== tokenizer.identity,
  );
  return { ...identity, ...(parts.length > 0 && { parts: Object.fromEntries(parts) }) };
}

/** All recorded states of an input. */
const statesOf = ({ tokenizer, parts = {} }: DataIdentity): PartStates =>
  tokenizer === undefined ? parts : { ...parts, '(ids)': tokenizer };

/**
 * Copies a dataset's config and sets unset fields of its parts to the state recorded in `identity`: learned
 * vocabularies, contents of files. Returns the config itself if there is nothing to set.
 */
export function withRecorded<T extends Configurable>(config: Config<T>, identity: DataIdentity): Config<T> {
  const states = statesOf(identity);
  if (Object.keys(states).length === 0) return config;
  const copied = deepCopy(config);
  let changed = false;
  for (const { config: part, path } of iterate(copied, { defaults: true })) {
    const learned = partAt(states, formatPath(path), classOf(part).name)?.learned ?? {};
    for (const [field, value] of Object.entries(learned)) {
      const fields = part as unknown as Record<string, JsonValue>;
      if (fields[field] !== null) continue;
      fields[field] = value;
      changed = true;
    }
  }
  return changed ? copied : config;
}

/** Parts whose state is not the one they had before: their paths, with both identities. */
export function changedParts(
  before: DataIdentity,
  now: DataIdentity,
): { readonly path: string; readonly before: string; readonly now: string }[] {
  const states = statesOf(before);
  return Object.entries(now.parts ?? {}).flatMap(([path, state]) => {
    const recorded = partAt(states, path, state.class);
    const isSame = recorded === undefined || recorded.identity === state.identity;
    return isSame ? [] : [{ path, before: recorded.identity, now: state.identity }];
  });
}

const short = (digest: string): string => digest.slice(0, 16);

const count = (value: number, noun: string): string => `${value} ${noun}${value === 1 ? '' : 's'}`;

/**
 * Describes how an input's files and contents differ from the recorded ones, one phrase each. Equal contents are the same data in
 * whatever files: elsewhere, or compressed again.
 */
export function dataChanges(recorded: DataIdentity, now: DataIdentity): string[] {
  return [...fileChanges(recorded, now), ...folderChanges(recorded, now)];
}

/** Folders whose files have other names or bytes. */
function folderChanges(recorded: DataIdentity, now: DataIdentity): string[] {
  const before = new Map(recorded.folders?.map((folder) => [folder.name, folder]));
  return (now.folders ?? []).flatMap(({ name, sha256, numFiles }) => {
    const was = before.get(name)?.sha256;
    if (was === sha256 || !was || !sha256) return [];
    return [
      `${name} has other bytes in ${count(numFiles, 'file')} (sha256 ${short(sha256)}, was ${short(was)})`,
    ];
  });
}

function fileChanges(recorded: DataIdentity, now: DataIdentity): string[] {
  if (now.contents !== undefined && recorded.contents === now.contents) return [];
  const before = new Map(recorded.files?.map((file) => [file.name, file]));
  const after = new Map(now.files?.map((file) => [file.name, file]));
  const changes = [...before].flatMap(([name, file]) => {
    const found = after.get(name);
    if (found === undefined) return [`${name} is gone`];
    if (found.size !== file.size) return [`${name} has ${count(found.size, 'byte')}, had ${file.size}`];
    if (found.sha256 === file.sha256 || !found.sha256 || !file.sha256) return [];
    return [`${name} has other bytes (sha256 ${short(found.sha256)}, was ${short(file.sha256)})`];
  });
  const added = [...after.keys()].filter((name) => !before.has(name)).map((name) => `${name} is new`);
  const contents =
    recorded.contents === now.contents
      ? []
      : [`the data is ${now.contents ?? 'unknown'}, was ${recorded.contents ?? 'unknown'}`];
  return [...changes, ...added, ...contents];
}

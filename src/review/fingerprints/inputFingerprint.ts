/** @file Fingerprint of an input: rows near its beginning, far from it and at its end, on every host; its state, its text. */
import { readFileSync } from 'node:fs';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, type Config, classOf, copyWith, toJSON } from '../../hparams/index.js';
import {
  arraysOf,
  type BaseInput,
  type Batch,
  batchCount,
  InputError,
  type InputSource,
  type InputState,
  nextBatch,
  peekBatch,
  specsOf,
  withRecorded,
} from '../../inputs/index.js';
import { digest, reasonOf } from './digests.js';
import type { PartDigest } from './fingerprintedParts.js';

/** Rows of a batch that is read. */
const MOST_ROWS = 4;
/** Rows that were given out before a batch that is read of data without end: later epochs, unless the data is large. */
const FAR = [67, 1009, 30_011, 1_000_003];

/** Rows that are shown where they differ. */
const SHOWN_ROWS = 12;
/** Elements of a batch that is read whole. */
const MOST_ELEMENTS = 1 << 20;

/** Sources of the read-ahead thread. */
const sources = ['batchTiming', 'ahead/prefetch', 'ahead/prefetchProtocol', 'ahead/prefetchWorker'].map(
  (name) => name + extname(import.meta.url),
);

/** The contents of a batch. */
const contentsOf = (batch: Batch | undefined): unknown =>
  batch && [...arraysOf(batch)].map(([path, { shape, dtype, data }]) => [path, shape, dtype, data]);

function attempt(act: () => unknown): unknown {
  try {
    return act();
  } catch (error) {
    return reasonOf(error);
  }
}

/** An input's first batches, by each way to come to one. */
async function* beginningOf(input: BaseInput): AsyncGenerator<unknown> {
  const first = await nextBatch(input);
  yield contentsOf(first);
  if (first === undefined) return;
  const state = input.getState();
  yield [state, batchCount(specsOf(first), input.batchUnit), contentsOf(await nextBatch(input))];
  yield contentsOf(await peekBatch(input));
  input.setState(state);
  yield contentsOf(await nextBatch(input));
  input.reset();
  yield contentsOf(await nextBatch(input));
  const { ids } = first;
  if (ids !== undefined)
    yield attempt(() => input.idsToStrings(ids as Parameters<BaseInput['idsToStrings']>[0]));
}

type Rows = Record<string, readonly [digest: string, text: string]>;

/**
 * Batches far from the beginning, or around the end, of an input whose state is the number of rows before a batch.
 *
 * @param rows gets their rows.
 */
async function* restOf(input: BaseInput, start: InputState, rows: Rows): AsyncGenerator<unknown> {
  if (typeof start.position !== 'number') return;
  const after = async (position: number): Promise<Batch | undefined> => {
    input.setState({ ...start, position });
    const batch = await nextBatch(input);
    Object.assign(rows, numbered(rowsIn(batch), position));
    return batch;
  };
  if (input.isEndless) {
    for (const position of FAR) yield contentsOf(await after(position));
    return;
  }
  let [some, none] = [0, 1];
  while ((await after(none)) !== undefined) [some, none] = [none, 2 * none];
  while (none - some > 1) {
    const middle = Math.floor((some + none) / 2);
    if ((await after(middle)) === undefined) none = middle;
    else some = middle;
  }
  yield [none, contentsOf(await after(some)), contentsOf(await after(Math.floor(some / 2)))];
}

/** Numbers of an array that are shown. */
const MOST_SHOWN = 24;

/** The rows of a batch, each with its digest and a text of it. */
function* rowsIn(batch: Batch | undefined): Generator<readonly [digest: string, text: string]> {
  if (batch === undefined) return;
  const arrays = [...arraysOf(batch)].filter(([, { shape }]) => shape.length > 0);
  for (let row = 0; row < (arrays[0]?.[1].shape[0] ?? 0); row++) {
    const parts = arrays.map(([path, { shape, data }]) => {
      const size = data.length / shape[0]!;
      return [path, data.slice(row * size, (row + 1) * size)] as const;
    });
    const texts = parts.map(([path, values]) => {
      const shown = [...values.subarray(0, MOST_SHOWN)].map((value) => Number(value.toPrecision(6)));
      return `${path} ${shown.join(' ')}${values.length > MOST_SHOWN ? ' …' : ''}`;
    });
    yield [digest(parts), texts.join(', ')];
  }
}

/** Rows by their places in the data. */
const numbered = (rows: Iterable<Rows[string]>, from = 0): Rows =>
  Object.fromEntries([...rows].map((row, i) => [`row ${from + i}`, row]));

/** The rows of a batch, and of those that an input gives next. */
async function rowsFrom(input: BaseInput, first: Batch | undefined): Promise<Rows> {
  const rows: (readonly [string, string])[] = [];
  for (let batch = first; batch !== undefined; batch = await nextBatch(input)) {
    for (const row of rowsIn(batch)) if (rows.push(row) === SHOWN_ROWS) break;
    if (rows.length === SHOWN_ROWS) break;
  }
  return numbered(rows);
}

/** Whether batches as jobs read them have more places than a small one, and are not too large. */
function isReadWhole({ batchSize }: Config<BaseInput>, small: Batch | undefined): boolean {
  if (small === undefined || batchSize <= MOST_ROWS) return false;
  const elements = [...arraysOf(small)].reduce((sum, [, { data }]) => sum + data.length, 0);
  return (elements / MOST_ROWS) * batchSize <= MOST_ELEMENTS;
}

/** The first batch as jobs read it, with all its places, where that is another one than the small one; and its rows. */
async function firstBatch(
  config: Config<BaseInput>,
  small: BaseInput,
): Promise<{ readonly whole: unknown; readonly rows: Rows }> {
  const first = await nextBatch(small);
  // To open data is dear: an input more only where it gives others.
  if (!isReadWhole(config, first)) return { whole: undefined, rows: await rowsFrom(small, first) };
  const input = build(config);
  try {
    const batch = await nextBatch(input);
    return { whole: contentsOf(batch), rows: await rowsFrom(input, batch) };
  } finally {
    await input.close();
  }
}

/** Values that an input gives: `apart` those that follow from names and classes, and tell of no row; and rows, the first ones first. */
async function* givenBy(
  config: Config<BaseInput>,
  apart: (value: unknown) => void,
): AsyncGenerator<unknown, Rows> {
  const whole: BaseInput & InputSource = build(config);
  if (whole.followsTraining)
    throw new InputError(
      `${classOf(config).name} '${whole.name}' samples its batches from the model in training.`,
    );
  const { batchSize, numInfeedHosts, infeedHostIndex } = config;
  const small = copyWith(config, { batchSize: Math.min(batchSize, MOST_ROWS) });
  const input = build(small);
  let rows: Rows;
  try {
    apart(input.name);
    yield [whole.getGlobalBatchSize(), input.isEndless];
    const start = input.getState();
    const { files = [], folders = [], ...identity } = input.dataIdentity();
    const named = folders.map(({ name, numFiles }) => [name, numFiles]);
    apart([start, identity, [...files.map(({ name, size }) => [name, size]), ...named]]);
    if (identity.tokenizer !== undefined)
      apart(attempt(() => toJSON(withRecorded(config, identity), { modules: false })));
    yield* beginningOf(input);
    const others: Rows = {};
    yield* restOf(input, start, others);
    input.setState(start);
    const first = await firstBatch(config, input);
    yield first.whole;
    rows = { ...first.rows, ...others, ...first.rows };
  } finally {
    await input.close();
  }
  for (const host of new Set([0, numInfeedHosts - 1])) {
    if (host === infeedHostIndex) continue;
    const other = build(copyWith(small, { infeedHostIndex: host }));
    yield contentsOf(await nextBatch(other));
    await other.close();
  }
  return rows;
}

/** Digest of an input's batches, as far as there is data. */
export async function inputDigest(config: Config<BaseInput>): Promise<PartDigest> {
  try {
    const [given, others]: [string[], string[]] = [[], []];
    const values = givenBy(config, (value) => others.push(digest(value)));
    for (;;) {
      const { done, value } = await values.next();
      if (done === true) return { hash: digest(given, others), given: digest(given), rows: value };
      given.push(digest(value));
    }
  } catch (error) {
    return { notCompared: reasonOf(error), failed: ['all'] };
  }
}

/** The sources of the thread that reads inputs ahead, where one may; batches are the same without it. */
export function readingAhead(configs: readonly Config<BaseInput>[]): PartDigest {
  if (configs.every((config) => build(config).prefetch === 'never')) return { hash: 'none' };
  const hashes = sources.map((name) => {
    const file = fileURLToPath(new URL(`../../inputs/${name}`, import.meta.url));
    return [`src/inputs/${name}`, digest(readFileSync(file, 'utf8'))];
  });
  return { hash: 'a thread', notRun: Object.fromEntries(hashes) };
}

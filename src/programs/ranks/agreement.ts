/** @file Agreement of ranks: on the same job, the next turn, and the end where one cannot go on. */
import { hostname } from 'node:os';
import { broadcastBytes, gatherJson, type Ranks } from '../../collectives/index.js';
import {
  describeConfigs,
  JobError,
  type JobOptions,
  type JobRanks,
  settingChanges,
  versions,
} from '../../runs/index.js';
import { UsageError } from '../../system/text/index.js';

/** Another rank could not do its part; this one has changed nothing. */
export class RankFailure extends JobError {}

/** Differences that are shown. */
const SHOWN = 3;

/**
 * Compares this rank's job with rank 0's, and notes the machines of all.
 *
 * @throws UsageError on every rank where one differs, with the differences.
 */
export async function checkSameJob(ranks: JobRanks, job: JobOptions): Promise<void> {
  const { luthier, node } = versions();
  const { name, jobLogDir, mode } = job;
  const own = {
    facts: { luthier, node, experiment: name, job_log_dir: jobLogDir, mode },
    settings: describeConfigs(job),
    host: hostname(),
  };
  const all = await gatherJson(ranks, own);
  ranks.hosts = all.map(({ host }) => host);
  const first = all[0]!;
  for (const [rank, other] of all.entries()) {
    const facts = (Object.keys(own.facts) as (keyof typeof own.facts)[])
      .filter((fact) => other.facts[fact] !== first.facts[fact])
      .map((fact) => `${fact}: ${first.facts[fact]} → ${other.facts[fact]}`);
    const found = [...facts, ...settingChanges(first.settings, other.settings)];
    if (found.length === 0) continue;
    const more = found.length > SHOWN ? `; ${found.length - SHOWN} more` : '';
    throw new UsageError(
      `Rank ${rank} runs another job than rank 0: ${found.slice(0, SHOWN).join('; ')}${more}. Start all ranks with the ` +
        'same files, flags and environment.',
    );
  }
}

/**
 * Does on every rank the part that each has in front of a collective. Tells rank 0 where another one was asked to stop.
 *
 * @throws on every rank where it fails on one: its own error there, elsewhere a RankFailure with the message.
 */
export async function agree<T>(ranks: JobRanks, act: () => Promise<T>): Promise<T> {
  let failure: { readonly error: unknown } | undefined;
  let result: T | undefined;
  try {
    result = await act();
  } catch (error) {
    failure = { error };
  }
  const told = Float32Array.of(failure ? 1 : 0, ranks.stop?.received ? 1 : 0);
  await ranks.allReduce(told);
  const [failed, stopped] = told as unknown as [number, number];
  if (stopped > 0 && ranks.rank === 0) ranks.stop?.request('SIGTERM');
  if (failed === 0) return result as T;
  const messages = await gatherJson(
    ranks,
    failure ? String((failure.error as Error)?.message ?? failure.error) : null,
  );
  if (failure) throw failure.error;
  const rank = messages.findIndex((message) => message !== null);
  throw new RankFailure(`Rank ${rank} cannot go on: ${messages[rank]}`);
}

/** A turn of all ranks, as rank 0 announces it. */
export type Turn = 'step' | 'gather' | 'save' | 'norms' | 'evaluate' | 'peek' | 'end';
const TURNS: readonly Turn[] = ['step', 'gather', 'save', 'norms', 'evaluate', 'peek', 'end'];

/** Announces a turn on rank 0. */
export async function announce(ranks: JobRanks, turn: Turn): Promise<void> {
  await ranks.broadcast(Uint8Array.of(TURNS.indexOf(turn)));
  ranks.hasEnded = turn === 'end';
}

/** Waits on another rank for the next turn. */
export async function nextTurn(ranks: JobRanks): Promise<Turn> {
  const told = new Uint8Array(1);
  await ranks.broadcast(told);
  const turn = TURNS[told[0]!]!;
  ranks.hasEnded = turn === 'end';
  return turn;
}

/** Tells the other ranks a value of JSON. */
export async function tell(ranks: Ranks, value: unknown): Promise<void> {
  await broadcastBytes(ranks, new TextEncoder().encode(JSON.stringify(value)));
}

/** The value that rank 0 tells. */
export async function hear<T>(ranks: Ranks): Promise<T> {
  return JSON.parse(new TextDecoder().decode(await broadcastBytes(ranks, new Uint8Array())));
}

/** @file Processes that write a share of the shards between them. */
import { extname } from 'node:path';
import { type DoneShard, InputError } from '../../inputs/index.js';
import { Answerer, Child, WorkerPool } from '../../system/index.js';
import type { CacheAnswer, CacheQuestion } from './cacheWorker.js';

/**
 * Writes a share in `processes` processes: of a share I of N, process p has the share I + N p of N · `processes`.
 *
 * @throws the first error of one, after which the others are ended: their shards that are whole stay.
 */
export async function writeInProcesses(
  question: CacheQuestion,
  processes: number,
  done: (shard: DoneShard) => void,
): Promise<void> {
  const { index, count } = question.share;
  const shares = Array.from({ length: processes }, (_, p) => {
    return { index: index + count * p, count: count * processes };
  });
  const module = new URL(`./cacheWorker${extname(import.meta.url)}`, import.meta.url);
  const begin = async () => new Child<CacheQuestion, CacheAnswer>(module);
  const pool = new WorkerPool(() => new Answerer(begin, ({ kind }) => kind !== 'shard'));
  const heard = (answer: CacheAnswer) => answer.kind === 'shard' && done(answer.shard);
  const write = async (worker: ReturnType<typeof pool.worker>, share: CacheQuestion['share']) => {
    const { messages, error } = await worker.ask({ ...question, share }, undefined, heard);
    if (error !== undefined) {
      const output = error.output.trim();
      throw new InputError(
        `A caching process failed. ${error.message} Run the command again: complete shards are kept.` +
          (output === '' ? '' : ` It said: ${output}`),
        { cause: error },
      );
    }
    const last = messages.at(-1)!;
    if (last.kind === 'failed') throw Object.assign(new Error(last.message), { name: last.name });
  };
  await pool.each(shares, processes, write, 1).finally(() => pool.end());
}

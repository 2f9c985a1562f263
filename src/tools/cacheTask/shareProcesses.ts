/** @file Processes that write a share of the shards between them. */
import { extname } from 'node:path';
import { type DoneShard, InputError } from '../../inputs/index.js';
import { Child, ChildError } from '../../system/index.js';
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
  const worker = new URL(`./cacheWorker${extname(import.meta.url)}`, import.meta.url);
  const children = Array.from({ length: processes }, () => new Child<CacheQuestion, CacheAnswer>(worker));
  try {
    await Promise.all(
      children.map(async (child, p) => {
        const share = { index: index + count * p, count: count * processes };
        child.send({ ...question, share });
        for (;;) {
          const answer = await answerOf(child);
          if (answer.kind === 'shard') done(answer.shard);
          else if (answer.kind === 'done') return;
          else throw Object.assign(new Error(answer.message), { name: answer.name });
        }
      }),
    );
  } finally {
    await Promise.all(children.map((child) => child.kill()));
  }
}

async function answerOf(child: Child<CacheQuestion, CacheAnswer>): Promise<CacheAnswer> {
  try {
    return await child.receive();
  } catch (error) {
    if (!(error instanceof ChildError)) throw error;
    const output = error.output.trim();
    throw new InputError(
      `A caching process failed. ${error.message} Run the command again: complete shards are kept.` +
        (output === '' ? '' : ` It said: ${output}`),
      { cause: error },
    );
  }
}

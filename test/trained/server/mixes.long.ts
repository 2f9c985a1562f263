/** @file Continuous batching behind HTTP: clients of all lengths that leave at any time, and texts that are each its own. */
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { loadRun } from '../../../src/trained/index.js';
import { runCommand, temporaryDirectory } from '../../command.js';
import { draw, title, tries } from '../../faults/campaign.js';
import { Served } from './served.js';

const ROWS = 4;
const LEAST_GROWTH = 48 * 2 ** 20;

/** A request, and after how many milliseconds its client leaves, if it does. */
const requests = fc.record({
  prompt: fc.stringMatching(/^[1-9 and]{1,20}$/),
  max_tokens: fc.integer({ min: 1, max: 20 }),
  temperature: fc.constantFrom(0, 0.7, 1.5),
  seed: fc.nat(9),
  n: fc.constantFrom(1, 1, 2, 3),
  frequency_penalty: fc.constantFrom(0, 1),
  logprobs: fc.constantFrom(null, 2),
  stop: fc.constantFrom(null, '1', ' a'),
  stream: fc.boolean(),
  isChat: fc.boolean(),
  leaves: fc.oneof({ weight: 2, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: fc.nat(40) }),
});

type Request = typeof requests extends fc.Arbitrary<infer R> ? R : never;

/** Texts of an answer's choices. */
async function textsOf(response: Response, { n, stream }: Request): Promise<string[]> {
  if (!stream) {
    const { choices } = (await response.json()) as any;
    return choices.map(({ text, message }: any) => text ?? message.content);
  }
  const texts = Array<string>(n).fill('');
  for (const event of (await response.text()).split('\n\n')) {
    if (!event.startsWith('data: {')) continue;
    for (const { index, text, delta } of JSON.parse(event.slice(6)).choices)
      texts[index] += text ?? delta.content ?? '';
  }
  return texts;
}

test(title('requests that come and leave get what each gets alone, and leave nothing behind'), async () => {
  const directory = temporaryDirectory();
  const flags = ['--exp=tiny.Tiny', `--job_log_dir=${directory}`, '--set', 'numTrainSteps=20'];
  expect(await runCommand(flags)).toMatchObject({ code: 0, stderr: '' });
  const served = await Served.start(directory, [`--batch_size=${ROWS}`]);
  const run = await loadRun(directory, { batchSize: ROWS });
  let [compared, left] = [0, 0];

  const ask = async (request: Request): Promise<void> => {
    const { isChat, leaves, prompt, logprobs, ...body } = request;
    const leaving = new AbortController();
    const timer = leaves === null ? undefined : setTimeout(() => leaving.abort(), leaves);
    const given = isChat
      ? {
          messages: [{ role: 'user', content: prompt }],
          ...(logprobs && { logprobs: true, top_logprobs: logprobs }),
        }
      : { prompt, logprobs };
    try {
      const response = await fetch(`${served.url}/v1/${isChat ? 'chat/completions' : 'completions'}`, {
        ...{ method: 'POST', headers: { 'content-type': 'application/json' } },
        ...{ body: JSON.stringify({ ...body, ...given }), signal: leaving.signal },
      });
      expect(response.status, JSON.stringify(request)).toBe(200);
      const texts = await textsOf(response, request);
      const { max_tokens: maxTokens, temperature, seed, frequency_penalty: frequencyPenalty, stop } = request;
      for (const [i, text] of texts.entries()) {
        const settings = { maxTokens, temperature, seed: seed + i, frequencyPenalty, stop: stop ?? [] };
        expect(text, JSON.stringify(request)).toBe(await run.generate(prompt, settings));
      }
      compared++;
    } catch (error) {
      if ((error as Error).name !== 'AbortError') throw error;
      left++;
    } finally {
      clearTimeout(timer);
    }
  };
  const askAll = async (all: Request[]): Promise<void> => {
    const work = async () => {
      for (let next = all.pop(); next !== undefined; next = all.pop()) await ask(next);
    };
    await Promise.all(Array.from({ length: 12 }, work));
  };
  const metric = async (name: string): Promise<number> => {
    const text = await (await fetch(`${served.url}/metrics`)).text();
    return Number(new RegExp(`^${name}(?:{[^}]*})? (\\S+)$`, 'm').exec(text)![1]);
  };

  const count = tries(4000, 240);
  // The first part warms the programs and the heap up.
  const [warm, rest] = [draw(requests, count / 4, 0x3a11), draw(requests, count, 0x3a12)];
  await askAll(warm);
  const before = await metric('process_resident_memory_bytes');
  await askAll(rest);
  while ((await served.slots()) > 0) await sleep(20);
  for (const name of ['luthier_rows_busy', 'luthier_completions_waiting', 'luthier_cache_tokens'])
    while ((await metric(name)) > 0) await sleep(20);
  expect((await metric('process_resident_memory_bytes')) - before).toBeLessThan(LEAST_GROWTH);
  expect(Math.min(compared, left)).toBeGreaterThan(count / 20);
  expect(await metric('luthier_rows')).toBe(ROWS);
  served.running.child.kill('SIGTERM');
  expect(await served.running.finished).toMatchObject({ code: 0, signal: null, stderr: '' });
  await run.dispose();
});

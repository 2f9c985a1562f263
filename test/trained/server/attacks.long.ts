/** @file A server under attack: sockets, requests and shutdowns by the hundred leave no slot, no handle and no process. */
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { beforeAll, expect, test } from 'vitest';
import { runCommand, temporaryDirectory } from '../../command.js';
import { draw, title, tries } from '../../faults/campaign.js';
import { bodies, clients, kinds } from './clients.js';
import { closed } from './rawClient.js';
import { Served } from './served.js';

const directory = temporaryDirectory();

beforeAll(async () => {
  const flags = ['--exp=tiny.Tiny', `--job_log_dir=${directory}`, '--set', 'numTrainSteps=1'];
  expect(await runCommand(flags)).toMatchObject({ code: 0, stderr: '' });
});

/** Ends a server, which has nothing to say of all that. */
async function ended({ running }: Served): Promise<void> {
  running.child.kill('SIGTERM');
  expect(await running.finished).toMatchObject({ code: 0, signal: null, stderr: '' });
}

test(title('silent, slow and pipelined sockets, held and then closed'), async () => {
  const served = await Served.start(directory);
  await served.slots();
  const before = served.handles;
  for (const drawn of draw(fc.array(kinds, { minLength: 50, maxLength: 50 }), tries(10, 1), 0x50c4)) {
    const sockets = await Promise.all(drawn.map((kind) => clients[kind](served.url)));
    // Answers come while they are open: what is asked for meanwhile is answered, or refused for want of room.
    await served.slots();
    for (const socket of sockets) socket.destroy();
    await served.untilIdle(before);
  }
  await ended(served);
});

test(title('requests with any values'), async () => {
  const served = await Served.start(directory);
  await served.slots();
  const before = served.handles;
  const waiting = draw(bodies, tries(5000, 80), 0xb0d1);
  const found = new Set<number>();
  const ask = async (): Promise<void> => {
    for (let body = waiting.pop(); body !== undefined; body = waiting.pop()) {
      const answer = await fetch(`${served.url}/v1/completions`, {
        ...{ method: 'POST', headers: { 'content-type': 'application/json' } },
        body,
      });
      const text = await answer.text();
      found.add(answer.status);
      if (answer.status === 200) continue;
      expect([400, 404, 429], body).toContain(answer.status);
      const error = { message: expect.any(String), type: expect.any(String) };
      expect(JSON.parse(text), body).toMatchObject({ error });
    }
  };
  await Promise.all(Array.from({ length: 8 }, ask));
  expect([200, 400].filter((status) => !found.has(status))).toEqual([]);
  await served.untilIdle(before);
  await ended(served);
});

/** Longer than the grace on a machine that is busy, and far shorter than any client waits. */
const SOON_MS = 60_000;

test(title('shutdowns with open connections'), async () => {
  const shutdown = async (drawn: readonly (keyof typeof clients)[]): Promise<void> => {
    const served = await Served.start(directory);
    const sockets = await Promise.all(drawn.map((kind) => clients[kind](served.url)));
    const ends = sockets.map(closed);
    served.running.child.kill('SIGTERM');
    const late = sleep(SOON_MS, 'the process is still there', { ref: false });
    expect(await Promise.race([served.running.finished, late]), drawn.join()).toMatchObject({
      ...{ code: 0, signal: null, stderr: '' },
    });
    await Promise.all(ends);
  };
  const drawn = draw(fc.array(kinds, { minLength: 1, maxLength: 20 }), tries(20, 2), 0x5d0e);
  // The grace passes for several at once.
  for (let first = 0; first < drawn.length; first += 4)
    await Promise.all(drawn.slice(first, first + 4).map(shutdown));
});

/** @file Questions to one process after another, and items dealt out to several workers. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Answerer, inParts } from '../../src/system/answerer.js';
import { type Child, ChildError } from '../../src/system/child.js';

/** A process that answers a word with its letters and a full stop, and ends or hangs over others. */
function scripted() {
  const begun: string[][] = [];
  const killed: number[] = [];
  const begin = async () => {
    const [number, asked] = [begun.length, [] as string[]];
    begun.push(asked);
    let waiting: string[] = [];
    return {
      send(question: string) {
        asked.push(question);
        waiting = [...question, '.'];
      },
      async receive() {
        const worn = asked.length > 1 && asked.at(-1)!.startsWith('w');
        if (worn || waiting[0] === 'e') throw new ChildError('ended', 'It ended.', '');
        if (waiting[0] === 't') throw new ChildError('timeout', 'It took too long.', '');
        if (waiting[0] === 'x') throw new TypeError('no question');
        return waiting.shift()!;
      },
      async kill() {
        killed.push(number);
      },
    } as unknown as Child<string, string>;
  };
  return { answerer: new Answerer(begin, (message: string) => message === '.'), begun, killed };
}

test('a process answers one question after another, each with all that it says', async () => {
  const { answerer, begun, killed } = scripted();
  await answerer.start();
  await answerer.start();
  expect(await answerer.ask('ab', 1)).toEqual({ messages: ['a', 'b', '.'] });
  expect(await answerer.ask('', 1)).toEqual({ messages: ['.'] });
  expect(begun).toEqual([['ab', '']]);
  await answerer.end();
  expect(killed).toEqual([0]);
});

test('a question that ends a used process is asked again of a fresh one, whose end is the answer', async () => {
  const { answerer, begun } = scripted();
  await answerer.ask('a', 1);
  expect(await answerer.ask('w', 1)).toEqual({ messages: ['w', '.'] });
  expect(begun).toEqual([['a', 'w'], ['w']]);
  expect(await answerer.ask('ae', 1)).toMatchObject({ messages: ['a'], error: { reason: 'ended' } });
  expect(begun).toEqual([['a', 'w'], ['w', 'ae'], ['ae']]);
  expect(await answerer.ask('b', 1)).toEqual({ messages: ['b', '.'] });
  expect(begun).toHaveLength(4);
});

test('a question that takes too long is asked once, and the next has a process of its own', async () => {
  const { answerer, begun } = scripted();
  await answerer.ask('a', 1);
  expect(await answerer.ask('at', 1)).toMatchObject({ messages: ['a'], error: { reason: 'timeout' } });
  expect(await answerer.ask('b', 1)).toEqual({ messages: ['b', '.'] });
  expect(begun).toEqual([['a', 'at'], ['b']]);
});

test('an error of our own is none of the process', async () => {
  await expect(scripted().answerer.ask('x', 1)).rejects.toThrow(new TypeError('no question'));
});

test.each([
  [0, 8, 0],
  [1, 8, 1],
  [4, 8, 1],
  [5, 8, 2],
  [8, 8, 2],
  [9, 8, 3],
  [100, 8, 8],
  [100, 1, 1],
])('%i items, %i workers at most: %i', async (items, most, workers) => {
  const made: number[] = [];
  await inParts(
    Array.from({ length: items }, (_, i) => i),
    most,
    (part) => made.push(part),
    async () => {},
  );
  expect(made).toEqual(Array.from({ length: workers }, (_, i) => i));
});

test('each item is worked on once, those side by side by one worker, until one has nothing left to do', async () => {
  await fc.assert(
    fc.asyncProperty(fc.nat(40), fc.integer({ min: 1, max: 6 }), async (count, most) => {
      const items = Array.from({ length: count }, (_, i) => i);
      const done: number[][] = [];
      const workerOf = (part: number): number[] => {
        done[part] = [];
        return done[part];
      };
      await inParts(items, most, workerOf, async (worker, item) => {
        worker.push(item);
      });
      expect(done.flat().sort((a, b) => a - b)).toEqual(items);
      // Each begins with a part of its own, as long as there is one.
      const size = Math.ceil(count / done.length);
      const first = done.map((_, part) => part * size).filter((item) => item < count);
      expect(done.slice(0, first.length).map(([item]) => item)).toEqual(first);
    }),
  );
  // A slow first worker leaves all but its first item to the other.
  const by = new Map<number, string>();
  await inParts(
    [0, 1, 2, 3, 4, 5, 6, 7],
    2,
    (part) => ['slow', 'quick'][part]!,
    async (worker, item) => {
      by.set(item, worker);
      if (worker === 'slow') await new Promise((resolve) => setTimeout(resolve, 50));
    },
  );
  expect([...by].filter(([, worker]) => worker === 'slow')).toEqual([[0, 'slow']]);
});

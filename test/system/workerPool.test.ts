/** @file Questions to one process after another, and items dealt out to several workers. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Child, ChildError } from '../../src/system/child.js';
import { Answerer, inLanes, WorkerPool } from '../../src/system/workerPool.js';

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

test('a question without a limit waits, and each message is heard as it comes', async () => {
  const heard: string[] = [];
  await scripted().answerer.ask('ab', undefined, (message) => heard.push(message));
  expect(heard).toEqual(['a', 'b', '.']);
});

test('after the end no process follows', async () => {
  const { answerer, begun, killed } = scripted();
  await answerer.ask('a', 1);
  await answerer.end();
  const ended = { messages: [], error: new ChildError('ended', 'The process was ended.', '') };
  expect(await answerer.ask('w', 1)).toEqual(ended);
  const early = scripted();
  const starting = early.answerer.start();
  await early.answerer.end();
  await expect(starting).rejects.toThrow(ended.error);
  expect([begun.length, killed, early.begun.length, early.killed]).toEqual([1, [0], 1, [0]]);
});

/** A pool whose workers have their number and what was worked on, and the numbers of those that were ended. */
function counted() {
  const workers: { items: number[] }[] = [];
  const ended: number[] = [];
  const pool = new WorkerPool(() => {
    const number = workers.length;
    const worker = { number, items: [] as number[], end: async () => void ended.push(number) };
    workers.push(worker);
    return worker;
  });
  return { pool, workers, ended };
}

const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

test.each([
  [0, 8, 4, 0],
  [1, 8, 4, 1],
  [4, 8, 4, 1],
  [5, 8, 4, 2],
  [8, 8, 4, 2],
  [9, 8, 4, 3],
  [100, 8, 4, 8],
  [100, 1, 4, 1],
  [3, 8, 1, 3],
])('%i items, %i workers at most, worth it from %i items on: %i', async (items, most, fewest, count) => {
  const { pool, workers, ended } = counted();
  await pool.each(numbers(items), most, async () => {}, fewest);
  await pool.each(numbers(items), most, async () => {}, fewest);
  expect([workers.length, ended]).toEqual([count, []]);
  await pool.end();
  expect(ended).toEqual(numbers(count));
});

test('each item is worked on once, those side by side by one worker, until one has nothing left to do', async () => {
  await fc.assert(
    fc.asyncProperty(fc.nat(40), fc.integer({ min: 1, max: 6 }), async (count, most) => {
      const { pool, workers } = counted();
      await pool.each(numbers(count), most, async ({ items }, item) => void items.push(item));
      const done = workers.map(({ items }) => items);
      expect(done.flat().sort((a, b) => a - b)).toEqual(numbers(count));
      // Each begins with a part of its own, as long as there is one.
      const size = Math.ceil(count / done.length);
      const first = done.map((_, part) => part * size).filter((item) => item < count);
      expect(done.slice(0, first.length).map(([item]) => item)).toEqual(first);
    }),
  );
  // A slow first worker leaves all but its first item to the other.
  const { pool, workers } = counted();
  await pool.each(numbers(8), 2, async ({ number, items }, item) => {
    items.push(item);
    if (number === 0) await pause(50);
  });
  expect(workers[0]!.items).toEqual([0]);
});

test('an error of one worker ends all, and is the one that is thrown', async () => {
  const { pool, workers, ended } = counted();
  const working = pool.each(numbers(8), 2, async ({ number, items }, item) => {
    items.push(item);
    if (number === 0) throw new RangeError('the first');
    while (ended.length === 0) await pause(1);
    throw new TypeError('it was ended');
  });
  await expect(working).rejects.toThrow(new RangeError('the first'));
  expect([workers.map(({ items }) => items), [...new Set(ended)]]).toEqual([
    [[0], [4]],
    [0, 1],
  ]);
});

test('lanes that share a queue take its items in order, and finish what they began when one fails', async () => {
  const begun: [number, number][] = [];
  const queue = numbers(5);
  await inLanes([queue, queue], async (item, lane) => {
    begun.push([item, lane]);
    await pause(lane === 0 ? 0 : 30);
  });
  expect(begun.map(([item]) => item)).toEqual(numbers(5));
  expect(begun.filter(([, lane]) => lane === 1)).toEqual([[1, 1]]);

  const finished: number[] = [];
  const others = numbers(5);
  const working = inLanes([others, others], async (item) => {
    if (item === 0) throw new RangeError('stop');
    await pause(5);
    finished.push(item);
  });
  await expect(working).rejects.toThrow(new RangeError('stop'));
  expect([finished, others]).toEqual([[1], [2, 3, 4]]);
});

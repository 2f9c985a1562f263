/** @file Data of the chats' experiments: held-out words are in no training chat, and rewards are of what was asked. */
import { expect, test } from 'vitest';
import { Answers, Preferred } from '../../experiments/chat.js';
import { Chats, MeanOrder, order } from '../../experiments/chatData.js';
import { build, type Config } from '../../src/hparams/index.js';
import type { SeqioInput } from '../../src/inputs/index.js';

interface Chat {
  readonly messages: readonly { readonly content: string }[];
}

function questionsOf(heldOut: boolean): string[] {
  const source = build(
    Chats.config({ count: 200, turns: 2, skills: ['copy', 'head'], sayRate: 0.25, heldOut, seed: 1 }),
  );
  const table = source.open('all');
  const chats = Array.from({ length: 200 }, (_, i) => table.read(i) as unknown as Chat);
  return chats.flatMap(({ messages }) => [messages[0]!.content, messages[2]!.content]);
}

test('words that are asked about are in training or held out', () => {
  const [training, heldOut] = [questionsOf(false), questionsOf(true)];
  const words = (questions: string[]) => questions.filter((text) => !text.startsWith('say'));
  expect(words(training).length).toBeLessThan(training.length);
  const seen = new Set(words(training).map((text) => text.slice(5)));
  expect(words(heldOut).filter((text) => seen.has(text.slice(5)))).toEqual([]);
});

test('the reward is the share of neighbours in order, of an answer as long as asked', () => {
  const reward = build(order.config());
  const of = (prompt: string, answer: string) =>
    reward({ prompt, answer, target: '', ids: [], isEnded: true });
  expect(of('?say 4\n!', 'abbc')).toBe(1);
  expect(of('?say 4\n!', 'dabc')).toBeCloseTo(2 / 3);
  expect(of('?say 4\n!', 'abc')).toBe(0);
  expect(of('?say 4\n!', 'ab?c')).toBe(0);
  expect(build(MeanOrder.config()).compute(['dddd\n', 'ccc\n'], ['dabc\n', 'ab\n'])).toBeCloseTo(1 / 3);
});

test('pairs have the vocabulary of the answers, which the run that they start from had', () => {
  const [pairs] = new Preferred().datasets() as Config<SeqioInput>[];
  const [chats] = new Answers().datasets() as Config<SeqioInput>[];
  const [ofPairs, ofChats] = [build(pairs!), build(chats!)];
  expect(ofPairs.knownIdentity()).toEqual(ofChats.knownIdentity());
  const ids = [1, 5, 6, 3];
  expect(ofPairs.vocabularyFor('chosen.ids').decode(ids)).toBe(ofChats.vocabularyFor('ids').decode(ids));
});

/** @file Chats about made words, pairs of answers, and the reward of an answer. */
import { z } from 'zod';
import { hashString } from '../src/compiler/random/index.js';
import { configurable } from '../src/index.js';
import { BasePredictMetric, IterableSource } from '../src/inputs/index.js';
import type { Answer } from '../src/tasks/index.js';
import { type Draw, drawsOf, pick } from './draws.js';

/** Skills that a user may ask for, with their answers about a word of four letters. */
export const skills = {
  copy: (word: string) => word,
  head: (word: string) => word[0]!,
  last: (word: string) => word.at(-1)!,
  tail: (word: string) => word.slice(1),
};
export type Skill = keyof typeof skills;
const skillNames = Object.keys(skills) as Skill[];

const letters = 'abcdefgh';
/** `^` begins a chat, `?` a question and `!` an answer; a line feed ends both. */
export const vocabulary = `^?!\n ${letters}ilopsty3456`;

/** Answers with their ends stand between the generation tags: they alone count. */
export const template = `
{%- for message in messages -%}
{%- if message.role == 'assistant' -%}
!{% generation %}{{ message.content + '\\n' }}{% endgeneration %}
{%- else -%}
?{{ message.content + '\\n' }}
{%- endif -%}
{%- endfor -%}`;

interface Message {
  readonly role: 'user' | 'assistant';
  readonly content: string;
}
const question = (content: string): Message => ({ role: 'user', content });
const answer = (content: string): Message => ({ role: 'assistant', content });

const wordOf = (draw: Draw, length: number): string =>
  Array.from({ length }, () => pick(draw, letters)).join('');

/** Words that no training chat asks about: an eighth of all. */
const isHeldOut = (word: string): boolean => hashString(word) % 8 === 0;

/** A question about a word, with its answer. */
function aboutWord(draw: Draw, skill: Skill, heldOut: boolean): Message[] {
  let word: string;
  do word = wordOf(draw, 4);
  while (isHeldOut(word) !== heldOut);
  return [question(`${skill} ${word}`), answer(skills[skill](word))];
}

/** `say 5` asks for any five letters. */
function anyLetters(draw: Draw): Message[] {
  const length = 3 + draw(4);
  return [question(`say ${length}`), answer(wordOf(draw, length))];
}

/** Chats of questions about words, or of those for any letters. */
export class Chats extends IterableSource.with({
  count: z.int().positive().describe('Chats.'),
  turns: z.int().positive().default(1).describe('Questions of a chat.'),
  skills: z.array(z.enum(skillNames)).describe('Skills that questions about words need.'),
  sayRate: z.number().min(0).max(1).default(0).describe('Share of the questions for any letters.'),
  heldOut: z.boolean().default(false).describe('Whether words are those held out, or all others.'),
  seed: z.int().nonnegative().describe('Seed of the chats.'),
}) {
  protected override *records() {
    const { count, turns, skills: names, sayRate, heldOut, seed } = this.hp;
    for (let i = 0; i < count; i++) {
      const draw = drawsOf(seed, i);
      const turn = () =>
        draw(100) < 100 * sayRate ? anyLetters(draw) : aboutWord(draw, pick(draw, names), heldOut);
      yield { messages: Array.from({ length: turns }, turn).flat() };
    }
  }
}

/** The scripted reward: the share of neighbours in the alphabet's order, and 0 for an answer of another length or of other letters than `say` asks for. */
function orderOf(length: number, said: string): number {
  if (said.length !== length || [...said].some((letter) => !letters.includes(letter))) return 0;
  return [...said].slice(1).filter((letter, i) => letter >= said[i]!).length / (length - 1);
}

/** The reward of an answer to `say`. */
export const order = configurable(function order(_: object) {
  return ({ prompt, answer: said }: Answer) => orderOf(Number(/say (\d)/.exec(prompt)?.[1]), said);
}, {});

/** Mean reward of decoded answers; a target is as long as its question asks. */
export class MeanOrder extends BasePredictMetric {
  override compute(targets: readonly unknown[], predictions: readonly unknown[]): number {
    const rewards = targets.map((target, i) =>
      orderOf(String(target).trimEnd().length, String(predictions[i]).trimEnd()),
    );
    return rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length;
  }
}

/** Pairs of answers to `say`, of which the one with the larger reward is chosen. */
export class OrderedPairs extends IterableSource.with({
  count: z.int().positive().describe('Pairs.'),
  seed: z.int().nonnegative().describe('Seed of the pairs.'),
}) {
  protected override *records() {
    const { count, seed } = this.hp;
    for (let i = 0, made = 0; made < count; i++) {
      const draw = drawsOf(seed, i);
      const length = 3 + draw(4);
      const said = [wordOf(draw, length), wordOf(draw, length)] as const;
      const [a, b] = said.map((word) => orderOf(length, word)) as [number, number];
      if (a === b) continue;
      const [chosen, rejected] = a > b ? said : said.toReversed();
      made++;
      yield {
        messages: [question(`say ${length}`)],
        chosen: [answer(chosen!)],
        rejected: [answer(rejected!)],
      };
    }
  }
}

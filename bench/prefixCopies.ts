/**
 * @file Copies of a shared prompt's pages: keys and values of 1,024 tokens of GPT-2's 124M shape, from pages to a prompt's own
 * memory, then to a row of a batch. Argument: rounds, 40 by default. Tells the best and the median milliseconds of both.
 */
import { DecodeState } from '../src/decoding/decodeState.js';
import { PrefixPages } from '../src/decoding/prefixPages.js';

const rounds = Number(process.argv[2] ?? 40);
const [layers, heads, depth, seqlen, rows, prompt, page] = [12, 12, 64, 1088, 8, 1024, 64];

function stateOf(count: number): DecodeState {
  const names = Array.from({ length: layers }, (_, i) => [`${i}.key`, `${i}.value`]).flat();
  const shape = [count, heads, seqlen, depth];
  const size = shape.reduce((a, b) => a * b);
  return new DecodeState(
    Object.fromEntries(names.map((name) => [name, { shape, dtype: 'float32', isPerToken: true }])) as never,
    Object.fromEntries(names.map((name) => [name, new Float32Array(size).fill(1)])),
  );
}

const [all, aside] = [stateOf(rows), stateOf(1)];
const pages = new PrefixPages(page, page);
const ids = Int32Array.from({ length: prompt + 1 }, (_, i) => i % 50);
const first = pages.begin(ids);
for (let at = 0; at < prompt; at += page) first.keep(aside, at);
first.end();

const times: [take: number, put: number][] = [];
for (let round = 0; round < rounds; round++) {
  const began = performance.now();
  const paged = pages.begin(ids);
  for (let at = 0; at < prompt; at += page) if (!paged.take(aside, at)) throw new Error(`No page at ${at}.`);
  paged.end();
  const taken = performance.now();
  all.replaceRow(round % rows, aside, prompt);
  times.push([taken - began, performance.now() - taken]);
}
const told = (i: 0 | 1): string => {
  const sorted = times.map((time) => time[i]).sort((a, b) => a - b);
  return `${sorted[0]!.toFixed(1)} ms (median ${sorted[Math.floor(rounds / 2)]!.toFixed(1)})`;
};
console.log(
  `from pages ${told(0)}, to a row ${told(1)}, ${(layers * 2 * heads * prompt * depth * 4) / 1e6} MB`,
);

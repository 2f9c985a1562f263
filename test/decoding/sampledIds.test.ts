/** @file Drawing tokens inside a program: as on the host, but for numbers that fall on the border of two tokens. */
import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import {
  compile,
  type Engine,
  type Executable,
  type HostTensor,
  prngKey,
  type Tensor,
  tf,
  uniform,
} from '../../src/compiler/index.js';
import { GREEDY, type SamplingRule, sampleIds } from '../../src/decoding/index.js';
import type { TokenCounts } from '../../src/decoding/logitAdjustments.js';
import { entropies, likeliestOf } from '../../src/decoding/sampledIds.js';
import { entropyOf, logProbability, sampleId, topK } from '../../src/decoding/sampling.js';
import { engines } from '../compiler/engines.js';
import { runs } from '../faults/campaign.js';

type Rules = Record<string, SamplingRule>;
/** Tokens of rows and their log-probabilities, as a program returns them. */
type Drawn = Record<'ids' | 'logprobs', HostTensor>;

const V = 17;

/** Tokens of every row so far, the prompt's three first. */
const SO_FAR = { ids: [1, 2, 2, 4, 5, 5, 1], promptLength: 3 };

const adjustments = {
  ...{ logitBias: { 3: 2, 16: -1.5, 400: 9 }, minDecodeSteps: 5, eosIds: [0, 9] },
  ...{ repetitionPenalty: 1.3, presencePenalty: 0.4, frequencyPenalty: 0.25 },
};

/** Settings of rows in the place of a rule's. */
const OWN = { temperature: [0.7, 0, 2], k: [3, 0, 0], p: [1, 0.5, 0.8] };

const rules: Rules = {
  likeliest: GREEDY,
  'one of 1': { temperature: 1, k: 1, p: 0.5 },
  'of 5': { temperature: 1, k: 5, p: null },
  'of more than there are': { temperature: 0.5, k: 40, p: null },
  'of all': { temperature: 2, k: 0, p: 1 },
  'of all, colder than a float32': { temperature: 1e-60, k: 0, p: null },
  'of all, hotter than a float32': { temperature: 1e60, k: 0, p: null },
  'of a nucleus': { temperature: 1, k: 0, p: 0.7 },
  'of a nucleus of 6, cold': { temperature: 0.01, k: 6, p: 0.9 },
  'of the smallest nucleus': { temperature: 1, k: 0, p: 1e-60 },
  'no less likely than a share of the likeliest': { temperature: 0.8, k: 0, p: null, minP: 0.2 },
  'of a probability, and of 4': { temperature: 1, k: 4, p: null, epsilonP: 0.05 },
  'of a nucleus of all within 5': { temperature: 1, k: 5, p: 0.6, globalNormalize: true },
  adjusted: { temperature: 1, k: 0, p: 0.9, adjustments },
  'adjusted, likeliest': { ...GREEDY, adjustments },
};

/** Logits of which no two are nearer than float32 tells apart at the smallest temperature, but for equal ones. */
const number = fc.oneof(
  fc.integer({ min: -3, max: 3 }),
  fc.double({ min: -90, max: 90, noNaN: true }).map((x) => (Math.abs(x) < 1e-20 ? 0 : x)),
  fc.constantFrom(Number.NEGATIVE_INFINITY, 0, -0, 1e30),
);
const rowOf = fc.oneof(
  fc.array(number, { minLength: V, maxLength: V }).filter((row) => row.some(Number.isFinite)),
  number.filter(Number.isFinite).map((all) => new Array<number>(V).fill(all)),
);
const uniformOf = fc.oneof(fc.double({ min: 0, max: 1, noNaN: true }), fc.constantFrom(0, 1));

/** What the host draws for the numbers from one to another. */
function between(row: Float32Array, rule: SamplingRule, from: number, to: number): number[] {
  const ends = [sampleId(row, rule, from, SO_FAR), sampleId(row, rule, to, SO_FAR)];
  const middle = (from + to) / 2;
  // A larger number draws a later candidate.
  if (ends[0] === ends[1] || middle === from || middle === to) return ends;
  return [...between(row, rule, from, middle), ...between(row, rule, middle, to)];
}

/** What the host draws for a number and for those near it, with a nucleus a little smaller and larger. */
function near(row: Float32Array, rule: SamplingRule, at: number): number[] {
  const rules = [1 - 1e-5, 1, 1 + 1e-5].map((factor) => {
    const { p, minP = 0, epsilonP = 0 } = rule;
    const thresholds = { minP: minP * factor, epsilonP: epsilonP * factor };
    return { ...rule, ...thresholds, p: p === null ? null : p * factor };
  });
  const [from, to] = [Math.max(0, at - 1e-5), Math.min(1 - 2 ** -53, at + 1e-5)];
  return rules.flatMap((other) => between(row, other, from, to));
}

/** Probabilities of a row's tokens under a rule; the row has no ties. */
function probabilities(row: readonly number[], { temperature, k, p }: SamplingRule): number[] {
  const softmax = (logits: readonly number[]) => {
    const weights = logits.map((logit) => Math.exp(logit));
    const total = weights.reduce((sum, weight) => sum + weight);
    return weights.map((weight) => weight / total);
  };
  const order = row.map((_, id) => id).sort((a, b) => row[b]! - row[a]!);
  const likeliest = order.slice(0, k || V);
  const shares = softmax(likeliest.map((id) => row[id]!));
  const before = shares.map((_, i) => shares.slice(0, i).reduce((sum, share) => sum + share, 0));
  const kept = likeliest.filter((_, i) => before[i]! < (p ?? 1));
  const drawn = softmax(kept.map((id) => row[id]! / temperature));
  return row.map((_, id) => (kept.includes(id) ? drawn[kept.indexOf(id)]! : 0));
}

/** The chi-square statistic in units of the value that one sample in ten thousand passes (Wilson and Hilferty, 1931). */
function misfit(counts: readonly number[], expected: readonly number[]): number {
  const statistic = expected.reduce((sum, of, i) => sum + (of > 0 ? (counts[i]! - of) ** 2 / of : 0), 0);
  const freedom = expected.filter((of) => of > 0).length - 1;
  const spread = 2 / (9 * freedom);
  return statistic / (freedom * (1 - spread + 3.719 * Math.sqrt(spread)) ** 3);
}

/** `SO_FAR` of each row. */
function soFar(rows: number): TokenCounts {
  const { ids, promptLength } = SO_FAR;
  const ofRows = (of: number[]) =>
    tf.tensor2d(
      Array.from({ length: rows }, () =>
        Array.from({ length: V }, (_, id) => of.filter((other) => other === id).length),
      ),
      [rows, V],
      'int32',
    ) as Tensor;
  return {
    counts: ofRows(ids.slice(promptLength)),
    prompted: ofRows(ids.slice(0, promptLength)),
    steps: tf.fill([rows], ids.length - promptLength, 'int32') as Tensor,
  };
}

const opened: Executable[] = [];
afterAll(() => Promise.all(opened.map((executable) => executable.dispose())));

/** Compiles drawing by each rule. */
async function drawing(engine: Engine, rows: number, by: Rules) {
  const specs = {
    logits: { shape: [rows, V], dtype: 'float32' },
    uniforms: { shape: [rows], dtype: 'float32' },
  } as const;
  const executable = await compile(
    ({ logits, uniforms }) =>
      Object.fromEntries(
        Object.entries(by).map(([name, rule]) => [
          name,
          { ...sampleIds(logits, rule, { uniforms, tokens: soFar(rows) }) },
        ]),
      ),
    specs,
    { engine },
  );
  opened.push(executable);
  return async (logits: Float32Array, uniforms: Float32Array) =>
    (await executable.run({
      logits: { ...specs.logits, data: logits },
      uniforms: { ...specs.uniforms, data: uniforms },
    })) as unknown as Record<string, Drawn>;
}

describe.each(engines)('%s', (_, { engine, available }) => {
  test.skipIf(!available).each([1, 3])('%i rows: each rule draws what the host draws', async (rows) => {
    const draw = await drawing(engine, rows, rules);
    const batch = fc.array(fc.tuple(rowOf, uniformOf), { minLength: rows, maxLength: rows });
    await fc.assert(
      fc.asyncProperty(batch, async (given) => {
        const logits = Float32Array.from(given.flatMap(([row]) => row));
        const uniforms = Float32Array.from(given, ([, uniform]) => uniform);
        const drawn = await draw(logits, uniforms);
        for (const [name, rule] of Object.entries(rules)) {
          const { ids, logprobs } = drawn[name]!;
          for (let row = 0; row < rows; row++) {
            const rowLogits = logits.subarray(row * V, (row + 1) * V);
            const id = ids.data[row]!;
            expect(near(rowLogits, rule, uniforms[row]!), `${name}, row ${row}`).toContain(id);
            const expected = logProbability(rowLogits, id);
            expect(Math.abs(logprobs.data[row]! - expected)).toBeLessThan(1e-5 * (1 + Math.abs(expected)));
          }
        }
      }),
      { numRuns: runs(100, 20) },
    );
    // Logits that have no softmax give some token, of probability NaN.
    for (const odd of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
      for (const at of [[0], [V - 1], [3, 4, 5], Array.from({ length: V }, (_, i) => i)]) {
        if (odd === Number.NEGATIVE_INFINITY && at.length < V) continue;
        const row = Float32Array.from({ length: V }, (_, id) => (at.includes(id) ? odd : id / 2));
        const logits = Float32Array.from({ length: rows * V }, (_, i) => row[i % V]!);
        const drawn = await draw(logits, new Float32Array(rows).fill(0.4));
        for (const [name, rule] of Object.entries(rules)) {
          const ids = [...drawn[name]!.ids.data, sampleId(row, rule, 0.4, SO_FAR)];
          expect(
            ids.every((id) => Number.isInteger(id) && id >= 0 && id < V),
            `${name}: ${ids}`,
          ).toBe(true);
          expect([...drawn[name]!.logprobs.data]).toEqual(new Array(rows).fill(Number.NaN));
          expect(logProbability(row, ids.at(-1)!)).toBeNaN();
        }
      }
    }
  });

  test.skipIf(!available)(
    'rows draw by settings of their own, and tell entropies and likeliest tokens',
    async () => {
      const rows = 3;
      const of = (values: number[], dtype?: 'int32') => tf.tensor1d(values, dtype) as Tensor;
      const rule = { temperature: 1, k: 0, p: null };
      const specs = {
        logits: { shape: [rows, V], dtype: 'float32' },
        uniforms: { shape: [rows], dtype: 'float32' },
      } as const;
      const executable = await compile(
        ({ logits, uniforms }) => {
          const settings = { temperature: of(OWN.temperature), k: of(OWN.k, 'int32'), p: of(OWN.p) };
          const [both, onlyP] = [settings, { p: settings.p }].map((given) =>
            sampleIds(logits, rule, { uniforms, settings: given }),
          );
          const told = { entropies: entropies(logits), ...likeliestOf(logits, 3) };
          return {
            both: both!.ids,
            onlyP: onlyP!.ids,
            entropies: told.entropies,
            ids: told.ids,
            top: told.logprobs,
          };
        },
        specs,
        { engine },
      );
      opened.push(executable);
      const logits = Float32Array.from(uniform(prngKey(5), rows * V), (u) => 6 * u);
      logits[4] = Number.NEGATIVE_INFINITY;
      for (const seed of Array.from({ length: 20 }, (_, i) => i)) {
        const uniforms = Float32Array.from(uniform(prngKey(seed), rows));
        const result = (await executable.run({
          logits: { ...specs.logits, data: logits },
          uniforms: { ...specs.uniforms, data: uniforms },
        })) as unknown as Record<string, HostTensor>;
        for (let row = 0; row < rows; row++) {
          const own = logits.subarray(row * V, (row + 1) * V);
          const [temperature, k, p] = [OWN.temperature[row]!, OWN.k[row]!, OWN.p[row]!];
          expect(near(own, { temperature, k, p }, uniforms[row]!)).toContain(result.both!.data[row]);
          expect(near(own, { ...rule, p }, uniforms[row]!)).toContain(result.onlyP!.data[row]);
          expect(result.entropies!.data[row]).toBeCloseTo(entropyOf(own), 5);
          const likeliest = [...topK(own, 3)];
          expect([...result.ids!.data.slice(row * 3, row * 3 + 3)]).toEqual(likeliest);
          for (const [i, id] of likeliest.entries())
            expect(result.top!.data[row * 3 + i]).toBeCloseTo(logProbability(own, id), 5);
        }
      }
    },
  );

  test.skipIf(!available)('many rows: tokens are as frequent as they are probable', async () => {
    const rows = 4096;
    const by: Rules = {
      all: { temperature: 1, k: 0, p: null },
      'all, hot': { temperature: 1.7, k: 0, p: null },
      'the 5 likeliest': { temperature: 1, k: 5, p: null },
      'a nucleus': { temperature: 1, k: 0, p: 0.8 },
      'a nucleus of 9, cool': { temperature: 0.8, k: 9, p: 0.7 },
    };
    const draw = await drawing(engine, rows, by);
    const row = [...Float32Array.from(uniform(prngKey(1), V), (u) => 4 * u)];
    const logits = Float32Array.from({ length: rows * V }, (_, i) => row[i % V]!);
    const drawn = await draw(logits, Float32Array.from(uniform(prngKey(2), rows)));
    for (const [name, rule] of Object.entries(by)) {
      const counts = row.map((_, id) => drawn[name]!.ids.data.filter((other) => other === id).length);
      const expected = probabilities(row, rule).map((probability) => rows * probability);
      // Few expected draws would make the statistic's distribution another one.
      expect(Math.min(...expected.filter((of) => of > 0))).toBeGreaterThan(5);
      expect(
        counts.filter((count, id) => count > 0 && expected[id] === 0),
        name,
      ).toEqual([]);
      expect(misfit(counts, expected), name).toBeLessThan(1);
      // The same draws do not pass for those of a temperature twice as high.
      const other = probabilities(row, { ...rule, temperature: rule.temperature * 2 });
      expect(
        misfit(
          counts,
          other.map((probability) => rows * probability),
        ),
        name,
      ).toBeGreaterThan(1);
    }
  });
});

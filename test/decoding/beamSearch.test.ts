/** @file Beam search: against transformers' records, against all continuations, ends, norms and errors. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { prngKey } from '../../src/compiler/index.js';
import {
  BeamSearchDecoder,
  type Decodable,
  type DecodeRequest,
  type ExtendRows,
  FlatBeamSearchDecoder,
  GreedyDecoder,
  Stepper,
} from '../../src/decoding/index.js';
import { build, type Config } from '../../src/hparams/index.js';
import { pretrainedModel } from '../../src/models/index.js';
import { loadedModel } from '../programs/loadedModel.js';
import { int32 } from './randomModels.js';

const folder = join(import.meta.dirname, '../fixtures/published');

interface Search {
  readonly model: string;
  readonly beamSize: number;
  readonly alpha: number;
  readonly early: boolean;
  readonly eos: readonly number[];
  readonly cases: readonly {
    readonly prompt: readonly number[];
    readonly sequences: readonly (readonly number[])[];
    readonly scores: readonly number[];
  }[];
}

const record = JSON.parse(readFileSync(join(folder, 'beams.json'), 'utf8')) as {
  readonly steps: number;
  readonly searches: readonly Search[];
};

const opened: Stepper[] = [];
afterAll(() => Promise.all(opened.map((stepper) => stepper.dispose())));

/** Prompts side by side, filled up with zeros. */
function promptsOf(rows: readonly (readonly number[])[]) {
  const width = Math.max(...rows.map(({ length }) => length));
  const ids = rows.flatMap((row) => [...row, ...new Array<number>(width - row.length).fill(0)]);
  return {
    prefixIds: int32([rows.length, width], ids),
    prefixLengths: int32(
      [rows.length],
      rows.map(({ length }) => length),
    ),
  };
}

test.each(record.searches)(
  '$model, $beamSize beams, alpha $alpha, early exit $early: 16 prompts as transformers',
  async ({ model: name, beamSize, alpha, early, eos, cases }) => {
    const seqlen = 8 + record.steps;
    const { task, state } = loadedModel(pretrainedModel(join(folder, name)), join(folder, name));
    const decoder = build(
      BeamSearchDecoder.config({
        ...{ seqlen, beamSize, convention: 'transformers', earlyExit: early, lengthNormAlpha: alpha },
        ...{ eosId: [...eos], maxDecodeSteps: record.steps },
      }),
    ) as BeamSearchDecoder;
    const stepper = await Stepper.create({
      ...{ model: task.model as unknown as Decodable, params: state, seqlen, rule: decoder.rule },
      ...{ rows: decoder.numRows(cases.length), candidates: decoder.candidates },
      compileOptions: (program) => ({ name: program, numThreads: 1 }),
    });
    opened.push(stepper);
    const prompts = promptsOf(cases.map(({ prompt }) => prompt));
    const request = { ...prompts, ...stepper.calls, key: prngKey(0) };
    const { outputIds, decodeLengths, scores } = await decoder.decode(request);
    for (const [i, { prompt, sequences, scores: expected }] of cases.entries()) {
      for (const [beam, sequence] of sequences.entries()) {
        const row = i * beamSize + beam;
        const begin = row * seqlen + prompt.length;
        const ids = [...outputIds.data.slice(begin, row * seqlen + decodeLengths.data[row]!)];
        expect(ids, `prompt ${i}, beam ${beam}`).toEqual(sequence);
        expect(scores!.data[row]).toBeCloseTo(expected[beam]!, 3);
      }
    }
  },
);

/** A model of bigrams: logits of the token after each one. */
function bigrams(prompts: number[][], logits: number[][]): DecodeRequest & { readonly moves: number[][] } {
  const moves: number[][] = [];
  const extendRows: ExtendRows = async (ids) => Float32Array.from([...ids].flatMap((id) => logits[id]!));
  const extendStep = (ids: Int32Array) => extendRows(ids, ids);
  return {
    ...{ ...promptsOf(prompts), extendRows, extendStep, key: prngKey(0), moves },
    reorder: (origins) => void moves.push([...Array.from(origins)]),
    prefill: async () => {},
  };
}

const decode = (config: Config<BeamSearchDecoder>, request: DecodeRequest) =>
  (build(config) as BeamSearchDecoder).decode(request);

/** Token 0 begins, 1 is likelier than 2, behind which 3 is certain; 4 ends. */
const FORK = [
  [-9, 0.5, 0.4, -9, -9],
  [-9, 0, 0, 0, 0],
  [-9, -9, -9, 5, -9],
  [-9, -9, -9, -9, 5],
  [0, 0, 0, 0, 0],
];

test('a flat beam search finds a likelier sequence than greedy decoding', async () => {
  const fields = { seqlen: 5, eosId: 4 };
  const greedy = await (build(GreedyDecoder.config(fields)) as GreedyDecoder).decode(bigrams([[0]], FORK));
  const flat = await decode(FlatBeamSearchDecoder.config({ ...fields, beamSize: 2 }), bigrams([[0]], FORK));
  const sum = (logprobs: ArrayLike<number>) =>
    Array.from(logprobs).reduce((total, logprob) => (logprob >= 1 ? total : total + logprob), 0);
  expect([...flat.outputIds.data.slice(0, 5)]).toEqual([0, 2, 3, 4, 0]);
  expect(flat.outputIds.shape).toEqual([1, 2, 5]);
  const best = sum(flat.logprobs.data.slice(0, 5));
  expect(best).toBeGreaterThan(sum(greedy.logprobs.data));
  expect(flat.scores!.data[0]).toBeCloseTo(best / (8 / 5) ** 0.8, 5);
  expect(flat.scores!.data[0]).toBeGreaterThan(flat.scores!.data[1]!);
});

test('the norm decides between short and long continuations; early exit takes those that end first', async () => {
  // 4 ends at once with probability 0.3, or 1 goes on thrice with 0.9 before the end.
  const logits = [
    [-9, 0.7, -9, -9, 0.3],
    [-9, -9, 0.9, -9, 0.1],
    [-9, -9, -9, 0.9, 0.1],
    [-9, -9, -9, -9, 1],
    [0, 0, 0, 0, 0],
  ].map((row) => row.map((p) => (p > 0 ? Math.log(p) : -30)));
  const fields = { seqlen: 8, maxDecodeSteps: 6, eosId: 4, beamSize: 2 };
  const best = async (more: object) => {
    const { outputIds, decodeLengths } = await decode(
      BeamSearchDecoder.config({ ...fields, ...more }),
      bigrams([[0]], logits),
    );
    return [...outputIds.data.slice(0, decodeLengths.data[0])];
  };
  expect(await best({ lengthNormAlpha: 0 })).toEqual([0, 1, 2, 3, 4]);
  expect(await best({ lengthNormAlpha: 0, earlyExit: true })).toEqual([0, 4]);
  expect(await best({ minDecodeSteps: 5, lengthNormAlpha: 0 })).not.toEqual([0, 1, 2, 3, 4]);
});

test('rows keep their state where they can, and prompts that are done stay as they are', async () => {
  const request = bigrams([[0], [3]], FORK);
  const config = BeamSearchDecoder.config({ seqlen: 6, maxDecodeSteps: 4, eosId: 4, beamSize: 2 });
  const { decodeLengths } = await decode(config, request);
  expect(request.moves[0]!.slice(0, 2)).toEqual([0, 0]);
  for (const origins of request.moves)
    for (const [row, origin] of origins.entries()) {
      expect(origin >> 1).toBe(row >> 1);
      // No row is both read and overwritten.
      expect(origins[origin]).toBe(origin);
    }
  expect(decodeLengths.data[2]).toBe(2);
});

test('bad settings are named', async () => {
  await expect(decode(BeamSearchDecoder.config({ seqlen: 5 }), bigrams([[0]], FORK))).rejects.toThrow(
    'BeamSearchDecoder.maxDecodeSteps: expected the most tokens after a prompt, which a beam search needs, got null.',
  );
  await expect(decode(FlatBeamSearchDecoder.config(), bigrams([[0]], FORK))).rejects.toThrow(
    'FlatBeamSearchDecoder.seqlen: The sequence length for decoding must be > 0, current value = 0.',
  );
});

/** @file An encoder-decoder in use: targets of sources, as decode mode writes them, alone and in batches; sources that do not fit. */
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { loadDecoderOutputs, loadRun, type TrainedRun } from '../../src/trained/index.js';
import { runCommand, temporaryDirectory } from '../command.js';

const STEPS = 150;
let directory: string;
let decoded: { source: string; decoded_substr: string }[];
let run: TrainedRun;

beforeAll(async () => {
  directory = temporaryDirectory();
  const sizes = {
    numLayers: 1,
    numHeads: 2,
    modelDims: 16,
    batchSize: 16,
    numHeldOut: 4,
    learningRate: 0.01,
  };
  const { code, stderr } = await runCommand([
    ...['--exp=sequences.Copy', `--job_log_dir=${directory}`, '--mode=train_and_decode'],
    ...Object.entries({ ...sizes, numTrainSteps: STEPS }).flatMap(([name, value]) => [
      '--set',
      `${name}=${value}`,
    ]),
  ]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const { examples } = loadDecoderOutputs(join(directory, 'decoder_out/held_out'), STEPS);
  // The end of a line ends targets, and has text in this vocabulary.
  decoded = (examples as unknown as typeof decoded).map(({ source, decoded_substr }) => ({
    source,
    decoded_substr: decoded_substr.replace('\n', ''),
  }));
  run = await loadRun(directory, { batchSize: 3 });
  return () => run.dispose();
}, 60_000);

test('targets are those of decode mode, whatever is decoded beside them', async () => {
  expect([run.continuesText, run.maxTokens]).toEqual([true, 18]);
  expect(new Set(decoded.map(({ decoded_substr }) => decoded_substr)).size).toBeGreaterThan(1);
  const texts = (all: string[]) => Promise.all(all.map((source) => run.generate(source)));
  const sources = decoded.map(({ source }) => source);
  expect(await texts(sources)).toEqual(decoded.map(({ decoded_substr }) => decoded_substr));
  const [first] = decoded;
  expect(await run.generate(first!.source)).toBe(first!.decoded_substr);
  expect(await run.generate(first!.source, { maxTokens: 3 })).toBe(first!.decoded_substr.slice(0, 3));
  const drawn = (seed: number) => run.generate(first!.source, { temperature: 2, seed });
  expect(await drawn(1)).toBe(await drawn(1));
});

test('a source that does not fit is refused alone', async () => {
  const { source, decoded_substr } = decoded[0]!;
  const [good, long, unknown] = await Promise.allSettled([
    run.generate(source),
    run.generate('x'.repeat(17)),
    run.generate('ab!'),
  ]);
  expect(good).toEqual({ status: 'fulfilled', value: decoded_substr });
  expect(String((long as PromiseRejectedResult).reason)).toBe(
    "RequestError: The source: example 0: feature 'inputs' has 17 tokens, and taskFeatureLengths allows 16. Split or trim it, " +
      'or set trimOutputFeatures.',
  );
  expect(String((unknown as PromiseRejectedResult).reason)).toBe(
    'RequestError: The source: example 0: CharTokenizer: the character "!" (U+0021) at line 1, column 3 of the text is not among the ' +
      '27 characters of its vocabulary.',
  );
});

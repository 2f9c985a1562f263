/** @file Generated speech: letters as pairs of tones, spelled by connectionist temporal classification. */
import { z } from 'zod';
import {
  type BaseInput,
  build,
  type Config,
  type ConfigValues,
  Experiment,
  instance,
  SingleTask,
  Train,
} from '../src/index.js';
import { type Batch, LogMel } from '../src/inputs/index.js';
import { Conformer, ConformerEncoder, FullSoftmax, StackingOverTime } from '../src/layers/index.js';
import { CtcModel } from '../src/models/index.js';
import { EditErrorRate } from '../src/tasks/index.js';
import { type Draw, noiseOf } from './draws.js';
import { type Arrays, floats, ints, MadeRows } from './madeRows.js';
import { decayingAdam } from './parts.js';

const positive = z.int().positive();

/** Symbol 0 is the blank; letter n of the alphabet is symbol n. */
const NUM_LETTERS = 12;
const [SHORTEST, LONGEST] = [3, 8];
const SAMPLE_RATE = 8000;
/** Samples of a word, the silence behind it included. */
const NUM_SAMPLES = 8000;

/** Frequencies of a letter in Hz: one of three low tones with one of four high ones, as formants of vowels. */
const formantsOf = (letter: number): readonly [number, number] => [
  [320, 480, 700][letter % 3]!,
  [1100, 1500, 2000, 2700][Math.floor(letter / 3)]!,
];

/**
 * The sound of letters, 0 … NUM_LETTERS − 1: each lasts 60 to 110 ms, of a voice that is up to 6 % higher or lower; loudness and
 * phases are random, and white noise covers all.
 */
export function speak(letters: readonly number[], draw: Draw): Float32Array {
  const noise = noiseOf(draw);
  const samples = new Float32Array(NUM_SAMPLES);
  const pitch = 0.94 + 0.12 * noise();
  let at = Math.floor(400 * noise());
  for (const letter of letters) {
    const length = Math.floor(SAMPLE_RATE * (0.06 + 0.05 * noise()));
    for (const formant of formantsOf(letter)) {
      const [loudness, phase] = [0.2 + 0.2 * noise(), 2 * Math.PI * noise()];
      const turn = (2 * Math.PI * formant * pitch) / SAMPLE_RATE;
      for (let i = 0; i < length; i++) {
        const envelope = Math.sin((Math.PI * (i + 0.5)) / length) ** 0.5;
        samples[at + i]! += loudness * envelope * Math.sin(turn * i + phase);
      }
    }
    at += length;
  }
  for (let i = 0; i < NUM_SAMPLES; i++) samples[i]! += 0.1 * (2 * noise() - 1);
  return samples;
}

const features = () =>
  LogMel.config({
    ...{ sampleRate: SAMPLE_RATE, numMels: 32, fftSize: 256, windowSize: 200, hopSize: 80, floor: 1e-4 },
  });

/** Spoken words of random letters: log-mel `inputs`, `labels`, `labelPaddings` and `weights`. */
export class SpokenWords extends MadeRows.with({
  features: instance(LogMel, features).describe('Features of the sounds.'),
}) {
  protected override emptyBatch(): Batch {
    const { batchSize, features } = this.hp;
    return {
      inputs: floats([batchSize, features.numFrames(NUM_SAMPLES), features.hp.numMels]),
      labels: ints([batchSize, LONGEST]),
      labelPaddings: floats([batchSize, LONGEST], 1),
      weights: floats([batchSize]),
    };
  }
  protected override make(draw: Draw, { inputs, labels, labelPaddings }: Arrays, b: number): void {
    const letters = Array.from({ length: SHORTEST + draw(LONGEST - SHORTEST + 1) }, () => draw(NUM_LETTERS));
    const spectra = this.hp.features.features(speak(letters, draw));
    inputs!.data.set(spectra, b * spectra.length);
    for (const [i, letter] of letters.entries()) {
      labels!.data[b * LONGEST + i] = letter + 1;
      labelPaddings!.data[b * LONGEST + i] = 0;
    }
  }
}

/** Spells words of 3 to 8 letters; `characterErrorRate` of held-out words. */
export class Spell extends Experiment.with({
  numLayers: positive.default(2).describe('Conformer blocks.'),
  modelDims: positive.default(64).describe('Their depth.'),
  batchSize: positive.default(32).describe('Words of a batch.'),
  numTrainSteps: positive.default(800).describe('Training steps; the learning rate decays until the last.'),
  learningRate: z.number().positive().default(2e-3).describe('The highest learning rate.'),
  seed: z.int().nonnegative().default(1234).describe('Seed of weights and of the order of the data.'),
}) {
  override task() {
    const { numLayers, modelDims, numTrainSteps } = this;
    return SingleTask.config({
      model: CtcModel.config({
        encoderTpl: ConformerEncoder.config({
          ...{ inputDims: build(features()).hp.numMels, modelDims, numLayers },
          stackingTpl: StackingOverTime.config({ rightContext: 2, stride: 3 }),
          conformerTpl: Conformer.config({ attenNumHeads: 4, kernelSize: 7, ffnDimMultiplier: 2 }),
        }),
        softmaxTpl: FullSoftmax.config({ numClasses: NUM_LETTERS + 1 }),
      }),
      evalMetrics: { characterErrorRate: EditErrorRate.config({ weights: 'weights' }) },
      train: Train.config({
        learner: decayingAdam(this),
        ...{ numTrainSteps, randomSeed: this.seed, summaryIntervalSteps: 50 },
        ...{ saveIntervalSteps: 400, evalIntervalSteps: 400, evalSkipTrain: true },
      }),
    });
  }

  override datasets(): Config<BaseInput>[] {
    const words = (values: Partial<ConfigValues<SpokenWords>>) =>
      SpokenWords.config({ batchSize: this.batchSize, ...values });
    return [
      words({ name: 'train', isTraining: true, count: 20_000, inputRandomSeed: this.seed }),
      words({ name: 'held_out', count: 512, dataSeed: 2, evalLoopNumBatches: -1 }),
    ];
  }
}

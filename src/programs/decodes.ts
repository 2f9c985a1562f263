/** @file Decodes of data at a job's present step. */

import type { JobOptions } from '../runs/index.js';
import type {
  DataDecodeSettings,
  DecodeResult,
  ProgramInput,
  ProgramRun,
  SingleTask,
} from '../tasks/index.js';
import { DatasetDecoder, decodableModel } from './datasetDecoder.js';
import type { Weights } from './evaluatedWeights.js';
import type { ProgramDataset } from './programDataset.js';
import type { ProgramInputs } from './programInputs.js';

/** Components of decodes, and of inference. */
export interface DecodeParts {
  readonly options: JobOptions;
  readonly task: SingleTask;
  readonly weights: Weights;
  readonly inputs: ProgramInputs;
}

/** A decode's interruption. */
interface Asked extends DataDecodeSettings {
  /** The program that asks. */
  readonly program: string;
  readonly throwIfStopped: ProgramRun['throwIfStopped'];
}

/** A decoder, and its data. */
interface Made {
  readonly dataset: ProgramDataset;
  readonly useEmaStates: boolean;
  readonly decode: DataDecodeSettings['decode'];
  readonly decoder: DatasetDecoder;
}

/** Decodes data for programs, one decode at a time. */
export class Decodes {
  readonly #made: Made[] = [];

  constructor(private readonly parts: DecodeParts) {}

  /** @throws as `ProgramRun.decode` */
  async decode(input: ProgramInput, asked: Asked): Promise<DecodeResult> {
    const { useEmaStates = this.parts.task.hp.train.usesEmaStates('decode'), program, decode } = asked;
    const dataset = this.parts.inputs.of(program, input);
    return this.#decoderOf(program, { dataset, useEmaStates, decode }).decode(asked);
  }

  #decoderOf(program: string, asked: Omit<Made, 'decoder'>): DatasetDecoder {
    const { dataset, useEmaStates, decode } = asked;
    const found = this.#made.find(
      (each) => each.dataset === dataset && each.useEmaStates === useEmaStates && each.decode === decode,
    );
    if (found !== undefined) return found.decoder;
    const { options, task, weights } = this.parts;
    const model = decodableModel(task, `${program} decodes '${dataset.name}'`);
    const given = decode && { decode: decode(task.hp.decode) };
    const decoder = new DatasetDecoder(options, task, model, weights(useEmaStates), dataset, given);
    this.#made.push({ ...asked, decoder });
    return decoder;
  }

  /** Frees the memory of all decodes. */
  async close(): Promise<void> {
    await Promise.all(this.#made.map(({ decoder }) => decoder.close()));
  }
}

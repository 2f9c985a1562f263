/** @file Decodes of data at a job's present step. */

import type { JobOptions } from '../runs/index.js';
import type { DecodeResult, DecodeSettings, ProgramInput, ProgramRun, SingleTask } from '../tasks/index.js';
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
interface Asked extends DecodeSettings {
  /** The program that asks. */
  readonly program: string;
  readonly throwIfStopped: ProgramRun['throwIfStopped'];
}

/** A decoder, and its data. */
interface Made {
  readonly dataset: ProgramDataset;
  readonly useEmaStates: boolean;
  readonly decoder: DatasetDecoder;
}

/** Decodes data for programs, one decode at a time. */
export class Decodes {
  readonly #made: Made[] = [];

  constructor(private readonly parts: DecodeParts) {}

  /** @throws as `ProgramRun.decode` */
  async decode(input: ProgramInput, asked: Asked): Promise<DecodeResult> {
    const { useEmaStates = this.parts.task.hp.train.usesEmaStates('decode'), program } = asked;
    return this.#decoderOf(program, this.parts.inputs.of(program, input), useEmaStates).decode(asked);
  }

  #decoderOf(program: string, dataset: ProgramDataset, useEmaStates: boolean): DatasetDecoder {
    const found = this.#made.find((each) => each.dataset === dataset && each.useEmaStates === useEmaStates);
    if (found !== undefined) return found.decoder;
    const { options, task, weights } = this.parts;
    const model = decodableModel(task, `${program} decodes '${dataset.name}'`);
    const decoder = new DatasetDecoder(options, task, model, weights(useEmaStates), dataset);
    this.#made.push({ dataset, useEmaStates, decoder });
    return decoder;
  }

  /** Frees the memory of all decodes. */
  async close(): Promise<void> {
    await Promise.all(this.#made.map(({ decoder }) => decoder.close()));
  }
}

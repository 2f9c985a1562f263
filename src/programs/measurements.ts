/** @file Evaluations, decodes and inferences of a job, and the data that they read. */
import type { InputSource } from '../inputs/index.js';
import { evaluatedDatasets, type JobOptions } from '../runs/index.js';
import type { SingleTask } from '../tasks/index.js';
import { Decodes } from './decodes.js';
import type { Weights } from './evaluatedWeights.js';
import { Evaluations } from './evaluations.js';
import { expectedEvalRuns } from './expectedRuns.js';
import { Inferences } from './infer/inferences.js';
import { ProgramInputs } from './programInputs.js';

/** Services by which programs evaluate and decode. */
export class Measurements {
  readonly inputs: ProgramInputs;
  readonly evaluations: Evaluations;
  readonly decodes: Decodes;
  readonly inferences: Inferences;

  /** @param training the training input, in a job that trains */
  constructor(options: JobOptions, task: SingleTask, weights: Weights, training?: InputSource) {
    const inputs = new ProgramInputs(options, task);
    const shared = { options, task, weights, inputs };
    const runs = expectedEvalRuns(options, task, evaluatedDatasets(options));
    this.inputs = inputs;
    this.evaluations = new Evaluations({ ...shared, runs, training });
    this.decodes = new Decodes(shared);
    this.inferences = new Inferences(shared);
  }

  async close(): Promise<void> {
    await Promise.all([this.inputs.close(), this.decodes.close()]);
  }
}

/** @file ParameterizedExperiment: an experiment that is nothing but configs (paxml's class of the name). */
import { type Config, ConfigError, deepCopy } from '../hparams/index.js';
import type { BaseInput, BaseInputSpecsProvider } from '../inputs/index.js';
import type { SingleTask } from '../tasks/index.js';
import { Experiment } from './experiment.js';

/** The configs of an experiment. */
export interface ExperimentParameters {
  readonly task: Config<SingleTask>;
  /** With isTraining true. */
  readonly trainDatasets: readonly Config<BaseInput>[];
  /** With isTraining false. */
  readonly evalDatasets?: readonly Config<BaseInput>[];
  readonly decodeDatasets?: readonly Config<BaseInput>[];
  readonly inputSpecsProvider?: Config<BaseInputSpecsProvider>;
}

/** An experiment without constants: `class Plain extends ParameterizedExperiment.of({ task, trainDatasets }) {}`. */
export abstract class ParameterizedExperiment extends Experiment {
  /** Its methods return copies, so that flags change no other experiment of the same configs. */
  protected get parameters(): ExperimentParameters {
    throw new ConfigError(
      `${this.constructor.name} has no configs: extend ParameterizedExperiment.of({ … }).`,
    );
  }

  /** The base class of an experiment with these configs. */
  static of(parameters: ExperimentParameters): abstract new () => ParameterizedExperiment {
    abstract class Parameterized extends ParameterizedExperiment {
      protected override get parameters(): ExperimentParameters {
        return parameters;
      }
    }
    return Parameterized;
  }

  override task(): Config<SingleTask> {
    return deepCopy(this.parameters.task);
  }

  /** @throws ConfigError for a dataset among the wrong ones, by its isTraining */
  override datasets(): Config<BaseInput>[] {
    const { trainDatasets, evalDatasets = [] } = this.parameters;
    return [
      ...trainDatasets.map((dataset) => copyOf('training', dataset, true)),
      ...evalDatasets.map((dataset) => copyOf('eval', dataset, false)),
    ];
  }

  override decodeDatasets(): Config<BaseInput>[] {
    return (this.parameters.decodeDatasets ?? []).map((dataset) => deepCopy(dataset));
  }

  override inputSpecsProvider(): Config<BaseInputSpecsProvider> | null {
    const { inputSpecsProvider } = this.parameters;
    return inputSpecsProvider === undefined ? null : deepCopy(inputSpecsProvider);
  }
}

function copyOf(kind: string, dataset: Config<BaseInput>, isTraining: boolean): Config<BaseInput> {
  if ((dataset.isTraining ?? false) === isTraining) return deepCopy(dataset);
  const name = dataset.name ?? (isTraining ? 'train' : 'input');
  throw new ConfigError(`The ${kind} dataset '${name}' must have isTraining ${isTraining}.`);
}

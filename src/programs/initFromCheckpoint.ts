/** @file Initial values from checkpoints of other runs and published weights, for fine-tuning (Pax's init_from_checkpoint_rules). */
import { join } from 'node:path';
import {
  AveragedVariables,
  holdsWeights,
  SavedVariables,
  type VariableSource,
  WeightFiles,
} from '../checkpoints/index.js';
import { heldView, narrow } from '../compiler/index.js';
import { type Config, ConfigError, isConfig } from '../hparams/index.js';
import type { TransformerLm } from '../layers/index.js';
import {
  type NameRules,
  networkDifferences,
  pretrainedLm,
  publishedSettings,
  unknownFamily,
} from '../models/index.js';
import { writeJobFile } from '../runs/index.js';
import { type CheckpointLoadingRules, namesOf, type SingleTask } from '../tasks/index.js';
import { type Reading, VariableMatcher } from './loadedVariables.js';
import { shortList } from './reporter.js';
import type { FlatTrainState } from './taskState.js';

const FIELD = 'task.train.initFromCheckpoint';

/** A checkpoint, and the variables of the model that it gives, by path. */
interface Opened {
  readonly source: VariableSource;
  readonly variables: ReadonlyMap<string, readonly Reading[]>;
  /** Settings of the network that are not those of the weights' config.json. */
  readonly differences: readonly string[];
}

/** Checkpoints that are open, with the variables of the model that each one gives, by path. */
export class InitFromCheckpoint {
  private constructor(
    private readonly state: FlatTrainState,
    private readonly checkpoints: readonly Opened[],
  ) {}

  /**
   * Opens the checkpoints that the task starts from, and finds each variable in them; nothing is read yet.
   *
   * @returns undefined where the task starts from none.
   * @throws ConfigError for rules that match nothing, variables that a checkpoint lacks or has in another shape, and published
   *   weights that are left over; CheckpointError where there is no checkpoint or it is damaged.
   */
  static open(task: SingleTask, state: FlatTrainState): InitFromCheckpoint | undefined {
    const rules = task.hp.train.hp.initFromCheckpoint;
    if (rules.length === 0) return undefined;
    const open: VariableSource[] = [];
    try {
      const given = new Set<string>();
      const checkpoints = rules.map((each, i): Opened => {
        const at = `${FIELD}[${i}]`;
        const { source, names } = openSource(each, at);
        open.push(source);
        const matcher = new VariableMatcher(each, source, names, state.layout);
        const variables = matcher.match(given);
        if (matcher.problems.length > 0) throw unfitError(at, source, names, matcher.problems);
        for (const path of variables.keys()) given.add(path);
        return { source, variables, differences: differencesOf(task, source, names) };
      });
      return new InitFromCheckpoint(state, checkpoints);
    } catch (error) {
      for (const source of open) source.close();
      throw error;
    }
  }

  /** Variables that no rule gives a value; they keep their own. */
  get kept(): string[] {
    const names = this.state.layout.entries.map(({ name }) => name);
    return names.filter((name) => !this.checkpoints.some(({ variables }) => variables.has(name)));
  }

  /** The checkpoint and tensor that give a variable its value, `PATH: TENSOR`; undefined where none does. */
  sourceOf(name: string): string | undefined {
    const found = this.checkpoints.find(({ variables }) => variables.has(name));
    if (found === undefined) return undefined;
    const tensors = found.variables.get(name)!.map(({ tensor }) => tensor);
    return `${found.source.path}: ${[...new Set(tensors)].join(', ')}`;
  }

  /** Reads the values into the state. */
  load(): void {
    const { params, layout } = this.state;
    const entries = new Map(layout.entries.map((entry) => [entry.name, entry]));
    for (const { source, variables } of this.checkpoints)
      for (const [name, readings] of variables) {
        const entry = entries.get(name)!;
        const { storage } = entry;
        const held = heldView(params, entry);
        for (const { tensor, order, start, length } of readings) {
          const target = held.subarray(start, start + length);
          const floats = storage === undefined ? (target as Float32Array) : new Float32Array(length);
          source.readInto(tensor, floats, order);
          if (storage !== undefined) target.set(narrow(floats, storage));
        }
      }
  }

  close(): void {
    for (const { source } of this.checkpoints) source.close();
  }

  /** Lines for the console: how many variables each checkpoint gives, and which ones keep their own values. */
  lines(): string[] {
    const { kept } = this;
    const total = this.state.layout.entries.length;
    return [
      ...this.checkpoints.map(
        ({ source, variables }) =>
          `Initial values of ${variables.size} of ${total} variables come from ${source.path}.`,
      ),
      ...this.checkpoints.flatMap(({ differences }) => differences),
      ...(kept.length > 0 ? [`Not loaded, with initial values of their own: ${shortList(kept)}.`] : []),
    ];
  }

  /** Writes init_from_checkpoint.json: each variable that was loaded with its source, and those that were not. */
  writeRecord(jobLogDir: string): void {
    const record = {
      checkpoints: this.checkpoints.map(({ source: { path, origin }, variables }) => ({
        ...{ path, ...origin },
        variables: Object.fromEntries(
          [...variables].map(([name, readings]) => [
            name,
            readings.length === 1 ? readings[0]!.tensor : readings.map(({ tensor }) => tensor),
          ]),
        ),
      })),
      notLoaded: this.kept,
    };
    writeJobFile(join(jobLogDir, 'init_from_checkpoint.json'), `${JSON.stringify(record, null, 1)}\n`);
  }
}

function unfitError(
  at: string,
  { path }: VariableSource,
  names: NameRules | undefined,
  problems: readonly string[],
): ConfigError {
  const leftOver = names === undefined ? '' : ', tensors that may be left over in ignoreTensors';
  return new ConfigError(
    `${at}: the model can't start from ${path}:\n${problems.map((line) => `  ${line}`).join('\n')}\n` +
      `Map paths by loadRules, and name variables that shall keep their own initial values in ignoreRules${leftOver}.`,
  );
}

interface OpenedSource {
  readonly source: VariableSource;
  /** Rules of its names, for published weights of a known kind. */
  readonly names: NameRules | undefined;
}

function openSource({ hp }: CheckpointLoadingRules, at: string): OpenedSource {
  const { checkpoint, step, averageLast, nameRules } = hp;
  if (averageLast > 1 && (step !== null || holdsWeights(checkpoint)))
    throw new ConfigError(
      `${at}.averageLast: expected the directory of a run, whose newest checkpoints count, and no step.`,
    );
  if (!holdsWeights(checkpoint)) {
    const names = nameRules === 'auto' || nameRules === 'none' ? undefined : namesOf(nameRules);
    const source =
      averageLast > 1
        ? AveragedVariables.open(checkpoint, averageLast)
        : SavedVariables.open(checkpoint, step ?? undefined);
    return { source, names };
  }
  if (step !== null)
    throw new ConfigError(`${at}.step: ${checkpoint} has weights, and no steps to choose from.`);
  const source = WeightFiles.open(checkpoint);
  try {
    return { source, names: namesFor(source, hp) };
  } catch (error) {
    source.close();
    throw error;
  }
}

function namesFor(source: WeightFiles, { nameRules, loadRules }: CheckpointLoadingRules['hp']) {
  if (nameRules === 'none') return undefined;
  if (nameRules !== 'auto') return namesOf(nameRules);
  if (source.shapeOf('step') !== undefined && source.names.some((name) => name.startsWith('params/')))
    return namesOf('luthier');
  const settings = publishedSettings(source.folder);
  if (settings?.family !== undefined) return namesOf(settings.family);
  if (settings !== undefined && loadRules === null)
    throw new ConfigError(
      `${unknownFamily(settings)} Set nameRules to one of them, or map all names by loadRules.`,
    );
  return undefined;
}

/** Lines about settings that have to agree with config.json for the published numbers. */
function differencesOf(task: SingleTask, source: VariableSource, names: NameRules | undefined): string[] {
  const { model } = task.hp;
  // Only networks of published models are compared.
  const lmTpl = 'lmTpl' in model ? model.lmTpl : undefined;
  if (!(source instanceof WeightFiles) || names === undefined || !isConfig(lmTpl)) return [];
  if (publishedSettings(source.folder)?.family === undefined) return [];
  try {
    const differences = networkDifferences(lmTpl as Config<TransformerLm>, pretrainedLm(source.folder));
    const file = join(source.folder, 'config.json');
    return differences.length === 0 ? [] : [`The network is not that of ${file}: ${differences.join('; ')}.`];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return [error.message];
  }
}

/** @file Initial values from checkpoints of other runs, for fine-tuning (Pax's init_from_checkpoint_rules). */
import { join } from 'node:path';
import { SavedVariables } from '../checkpoints/index.js';
import { ConfigError, didYouMean } from '../hparams/index.js';
import { EMA, wholePath } from '../learners/index.js';
import type { CheckpointLoadingRules, SingleTask } from '../tasks/index.js';
import { writeJobFile } from './jobDirectory.js';
import { shortList } from './reporter.js';
import type { FlatTrainState } from './taskState.js';

const FIELD = 'task.train.initFromCheckpoint';
const EMA_PREFIX = `${EMA}/`;

/** A variable of the model, and where its values are in a checkpoint. */
interface Source {
  readonly slot: string | null;
  readonly variable: string;
  readonly target: Float32Array;
}

/** A checkpoint, and the variables of the model that it gives, by path. */
interface Opened {
  readonly saved: SavedVariables;
  readonly sources: ReadonlyMap<string, Source>;
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
   * @throws ConfigError for rules that match nothing and variables that a checkpoint lacks or has in another shape;
   *   CheckpointError where there is no checkpoint or it is damaged.
   */
  static open(task: SingleTask, state: FlatTrainState): InitFromCheckpoint | undefined {
    const rules = task.hp.train.hp.initFromCheckpoint;
    if (rules.length === 0) return undefined;
    const open: SavedVariables[] = [];
    try {
      const taken = new Set<string>();
      const checkpoints = rules.map((each, i): Opened => {
        const saved = SavedVariables.open(each.hp.checkpoint, each.hp.step ?? undefined);
        open.push(saved);
        const sources = sourcesOf(`${FIELD}[${i}]`, each, saved, state, taken);
        for (const path of sources.keys()) taken.add(path);
        return { saved, sources };
      });
      return new InitFromCheckpoint(state, checkpoints);
    } catch (error) {
      for (const saved of open) saved.close();
      throw error;
    }
  }

  /** Variables that no rule gives a value; they keep their own. */
  get kept(): string[] {
    const names = this.state.layout.entries.map(({ name }) => name);
    return names.filter((name) => !this.checkpoints.some(({ sources }) => sources.has(name)));
  }

  /** Reads the values into the state. */
  load(): void {
    for (const { saved, sources } of this.checkpoints)
      for (const { slot, variable, target } of sources.values()) saved.readInto(slot, variable, target);
  }

  close(): void {
    for (const { saved } of this.checkpoints) saved.close();
  }

  /** Lines for the console: how many variables each checkpoint gives, and which ones keep their own values. */
  lines(): string[] {
    const { kept } = this;
    const total = this.state.layout.entries.length;
    return [
      ...this.checkpoints.map(
        ({ saved, sources }) =>
          `Initial values of ${sources.size} of ${total} variables come from ${saved.path}.`,
      ),
      ...(kept.length > 0 ? [`Not loaded, with initial values of their own: ${shortList(kept)}.`] : []),
    ];
  }

  /** Writes init_from_checkpoint.json: each variable that was loaded with its source, and those that were not. */
  writeRecord(jobLogDir: string): void {
    const record = {
      checkpoints: this.checkpoints.map(({ saved: { path, metadata }, sources }) => ({
        ...{ path, experiment: metadata.experiment, step: metadata.step },
        variables: Object.fromEntries(
          [...sources].map(([name, { slot, variable }]) => [
            name,
            slot === null ? variable : `${slot}/${variable}`,
          ]),
        ),
      })),
      notLoaded: this.kept,
    };
    writeJobFile(join(jobLogDir, 'init_from_checkpoint.json'), `${JSON.stringify(record, null, 1)}\n`);
  }
}

/** The variables of the model that one checkpoint gives; those of earlier checkpoints are passed over. */
function sourcesOf(
  at: string,
  rules: CheckpointLoadingRules,
  saved: SavedVariables,
  { layout, params }: FlatTrainState,
  taken: ReadonlySet<string>,
): Map<string, Source> {
  const { variables, slots } = saved.metadata;
  const names = Object.keys(variables);
  const sources = new Map<string, Source>();
  const [used, problems] = [new Set<number>(), [] as string[]];
  for (const { name, shape, offset, size } of layout.entries) {
    const found = rules.sourceOf(name);
    if (found === undefined) continue;
    used.add(found.rule);
    if (taken.has(name)) continue;
    const averages = found.source.startsWith(EMA_PREFIX);
    const variable = averages ? found.source.slice(EMA_PREFIX.length) : found.source;
    const theirs = variables[variable]?.shape;
    if (theirs === undefined) {
      problems.push(`${name}: the checkpoint has no '${variable}'.${didYouMean(variable, names)}`);
    } else if (averages && !slots.includes(EMA)) {
      problems.push(`${name}: the checkpoint has no moving average (emaDecay of its optimizer).`);
    } else if (theirs.length !== shape.length || theirs.some((each, axis) => each !== shape[axis])) {
      problems.push(
        `${name} is [${shape.join(', ')}], and '${variable}' in the checkpoint [${theirs.join(', ')}].`,
      );
    } else {
      const target = params.subarray(offset, offset + size);
      // The average of a frozen variable is the variable.
      const slot = averages && !variables[variable]!.isFrozen ? EMA : null;
      sources.set(name, { slot, variable, target });
    }
  }
  const ours = layout.entries.map(({ name }) => name);
  for (const [i, [pattern]] of rules.hp.loadRules.entries()) {
    if (!used.has(i))
      problems.push(
        `the pattern '${pattern}' matches no variable that is left to it.${didYouMean(pattern, ours)}`,
      );
  }
  for (const pattern of rules.hp.ignoreRules) {
    if (!ours.some((name) => wholePath(pattern).test(name)))
      problems.push(
        `the pattern '${pattern}' of ignoreRules matches no variable.${didYouMean(pattern, ours)}`,
      );
  }
  if (problems.length === 0) return sources;
  throw new ConfigError(
    `${at}: the model can't start from ${saved.path}:\n${problems.map((line) => `  ${line}`).join('\n')}\n` +
      'Map paths by loadRules, and name variables that shall keep their own initial values in ignoreRules.',
  );
}

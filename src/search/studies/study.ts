/** @file A study: a directory in which processes, of several hosts too, ask for trials and tell their ends. */
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { AppendedFile, isThere, makeDirectory, readJsonFile, writeWhole } from '../../files/index.js';
import { ConfigError } from '../../hparams/index.js';
import type { BaseAlgorithm, NoProposal } from '../algorithms/algorithm.js';
import { checkSpace, type Space, spaceSchema } from '../space.js';
import type { Proposal, Trial } from '../trial.js';
import { Claims } from './claims.js';
import { StudyRecords, type StudyTrial } from './records.js';
import { trialDirectory } from './trialName.js';

/** What a study searches. */
export interface StudyOptions {
  readonly directory: string;
  /** Name of the experiment, or of the function. */
  readonly name: string;
  readonly space: Space;
  readonly algorithm: BaseAlgorithm;
  readonly seed: number;
  readonly maxNumTrials: number;
  /** Directories of studies whose trials the algorithm learns from. */
  readonly priorStudies?: readonly string[];
  /** Whether these trials are this study's first ones. */
  readonly addPriorTrials?: boolean;
}

/** A trial that this process has claimed. */
export interface ClaimedTrial extends Proposal {
  readonly number: number;
  readonly attempt: number;
}

/** The end of a trial. */
export interface Outcome {
  readonly state: Exclude<Trial['state'], 'running'>;
  readonly rewards?: readonly number[];
  readonly metrics?: Readonly<Record<string, number>>;
  readonly reason?: string;
  readonly seconds?: number;
}

const fileSchema = z.looseObject({
  format: z.literal('luthier-study'),
  version: z.literal(1),
  name: z.string(),
  seed: z.int().nonnegative(),
  space: spaceSchema,
});

/** A study's description. @throws where a directory has none */
export function readStudy(directory: string): z.output<typeof fileSchema> {
  return readJsonFile(join(directory, 'study.json'), fileSchema);
}

/** The trials of a study so far. */
export function readTrials(directory: string): StudyTrial[] {
  const records = new StudyRecords(join(directory, 'processes'));
  records.refresh();
  return records.trials;
}

/** A trial of an earlier study. */
interface EarlierTrial {
  readonly proposal: Proposal;
  /** Of its run. */
  readonly directory: string;
  readonly outcome: Outcome;
}

/** The trials of a study that have ended. */
function endedTrials(study: string): EarlierTrial[] {
  return readTrials(study).flatMap((trial) => {
    const { number: _, values, steps, from: __, state, directory: ___, ...rest } = trial;
    if (state === 'running') return [];
    // Numbers of that study, of which `from` is one, are none of another.
    const proposal = { values, ...(steps !== undefined && { steps }) };
    return { proposal, directory: trialDirectory(study, trial), outcome: { state, ...rest } };
  });
}

/**
 * A study as a process sees it. A trial's number is claimed by an exclusive creation; its proposal is recorded before it
 * runs, and its end once. A process that ends leaves its claims to the others, or to the next one.
 */
export class Study {
  readonly #records: StudyRecords;
  readonly #file: AppendedFile;
  readonly #prior: readonly Trial[];
  /** Ended trials of earlier studies that are this one's first. */
  readonly #added: readonly EarlierTrial[];

  private constructor(
    readonly options: StudyOptions,
    readonly claims: Claims,
  ) {
    this.#records = new StudyRecords(join(options.directory, 'processes'));
    this.#file = new AppendedFile(claims.records, { isNew: true });
    const { priorStudies = [], addPriorTrials = false } = options;
    const prior = priorStudies.flatMap(endedTrials);
    this.#added = addPriorTrials ? prior : [];
    // Before all trials of this study, and none of them one to go on from.
    this.#prior = (addPriorTrials ? [] : prior).map(
      ({ proposal: { values }, outcome: { state, rewards } }, i) => ({
        ...{ number: i - prior.length, values, state },
        ...(rewards && { rewards }),
      }),
    );
  }

  /** Opens a study, which goes on where it is there. @throws ConfigError for the directory of another search */
  static async open(options: StudyOptions): Promise<Study> {
    const { directory, name, seed, space } = options;
    if (options.algorithm.needsSpace) checkSpace(space);
    const file = { format: 'luthier-study', version: 1, name, seed, space } as const;
    makeDirectory(directory);
    const path = join(directory, 'study.json');
    if (!isThere(path)) writeWhole(path, `${JSON.stringify(file, null, 1)}\n`);
    const { name: known, seed: knownSeed, space: knownSpace } = readStudy(directory);
    if (
      !isDeepStrictEqual(
        { known, knownSeed, knownSpace },
        { known: name, knownSeed: seed, knownSpace: space },
      )
    ) {
      throw new ConfigError(
        `${directory} is a study of ${known} with another space, seed or name: take another directory, or the search that it began with.`,
      );
    }
    return new Study(options, await Claims.open(directory));
  }

  /** All trials so far, by number. */
  trials(): StudyTrial[] {
    this.#records.refresh();
    return this.#records.trials;
  }

  /**
   * Claims the next trial: one whose process has ended, or else a new one.
   *
   * @returns `wait` while the trials of other processes may be left or needed, `exhausted` when all have ended.
   */
  async ask(): Promise<ClaimedTrial | NoProposal> {
    for (;;) {
      const claimed = await this.#next();
      if (claimed === undefined) continue;
      if (typeof claimed === 'string' || !this.#isAdded(claimed)) return claimed;
      this.tell(claimed, this.#added[claimed.number]!.outcome);
    }
  }

  /** Whether a trial has ended in an earlier study, so that its end is told at once. */
  #isAdded({ number, values }: ClaimedTrial): boolean {
    return isDeepStrictEqual(this.#added[number]?.proposal.values, values);
  }

  /** Claims the next trial; undefined where another process was faster. */
  async #next(): Promise<ClaimedTrial | NoProposal | undefined> {
    this.#records.refresh();
    const attempts = this.claims.attempts();
    const open = [...attempts].filter(([number]) => !this.#records.isTold(number)).sort(([a], [b]) => a - b);
    for (const [number, attempt] of open) {
      if (!(await this.claims.isOrphaned(number, attempt))) continue;
      const claimed = this.#claim(number, attempt + 1);
      if (typeof claimed === 'object') return claimed;
    }
    const number = Math.max(-1, ...attempts.keys()) + 1;
    const claimed = number < this.options.maxNumTrials ? this.#claim(number, 1) : 'exhausted';
    return claimed === 'exhausted' && open.length > 0 ? 'wait' : claimed;
  }

  /** Claims an attempt of a trial; undefined where another process was faster. */
  #claim(number: number, attempt: number): ClaimedTrial | NoProposal | undefined {
    const recorded = this.#records.proposalOf(number);
    const { space, seed, algorithm } = this.options;
    const trials = [...this.#prior, ...this.#records.trials.filter((trial) => trial.number < number)];
    const added = this.#added[number];
    const proposal = recorded ?? added?.proposal ?? algorithm.propose({ space, seed, number, trials });
    if (typeof proposal === 'string') return proposal;
    if (!this.claims.take(number, attempt)) return undefined;
    const { values, steps, from } = proposal;
    const trial = { values, ...(steps !== undefined && { steps }), ...(from !== undefined && { from }) };
    if (recorded === undefined) {
      const run = added && { directory: added.directory };
      this.#append({ event: 'proposed', trial: number, attempt, ...trial, ...run });
    }
    return { number, attempt, ...trial };
  }

  /** Records the end of a trial. Rewards that are not finite make it infeasible. */
  tell({ number, attempt }: Pick<ClaimedTrial, 'number' | 'attempt'>, outcome: Outcome): void {
    const { rewards, metrics, ...rest } = outcome;
    const areFinite = rewards?.every(Number.isFinite) ?? true;
    const finite = Object.entries(metrics ?? {}).filter(([, value]) => Number.isFinite(value));
    this.#append({
      ...{ event: 'told', trial: number, attempt },
      ...rest,
      ...(rewards &&
        (areFinite ? { rewards } : { state: 'infeasible', reason: `rewards ${rewards.join(', ')}` })),
      ...(metrics && { metrics: Object.fromEntries(finite) }),
    });
  }

  #append(record: object): void {
    this.#file.append(Buffer.from(`${JSON.stringify(record)}\n`));
  }

  /** Leaves the study; trials of this process that have not ended are left to others. */
  close(): void {
    this.#file.close();
    this.claims.close();
  }
}

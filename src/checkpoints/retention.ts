/**
 * @file Policies of checkpoints: when one is saved, and which stay: the newest few, the newest good one, the best one, older ones far
 * enough apart in time, and those of a run's own policies.
 */

/** A finished checkpoint. */
export interface SavedCheckpoint {
  readonly step: number;
  /** Milliseconds since 1970. */
  readonly savedAt: number;
  /** Whether training was sound at the save. */
  readonly isGood: boolean;
  /** Metrics of its step that policies compare, by `<program>/<metric>`. */
  readonly metrics?: Readonly<Record<string, number>> | undefined;
}

/** A moment between two steps, at which a checkpoint may be saved. */
export interface SaveMoment {
  readonly step: number;
  /** Since the last save began, or this process; by a clock that nobody sets. */
  readonly seconds: number;
  /** Whether a save is in progress. */
  readonly isSaving: boolean;
  /** Whether the last save could not be written. */
  readonly hasFailed: boolean;
}

/** When to save, and which checkpoints to keep; a run may have several, which add up. */
export interface CheckpointPolicy {
  /** Whether to save at a step that no checkpoint has yet. */
  isDue(moment: SaveMoment): boolean;
  /** Steps of the checkpoints that it keeps. @param checkpoints in rising order of their steps. */
  kept(checkpoints: readonly SavedCheckpoint[]): readonly number[];
}

export interface RetentionOptions {
  /** How many of the newest are kept; null keeps all. */
  readonly maxToKeep: number | null;
  /** Checkpoints at least this far apart are kept for good; null keeps none for that reason. */
  readonly keepIntervalSeconds: number | null;
  /** Policies that keep others beside these. */
  readonly policies?: readonly CheckpointPolicy[] | undefined;
}

const SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };

/**
 * Seconds of a duration such as '12h' (units s, m, h, d) or of a plain number of seconds.
 *
 * @throws RangeError "Unable to parse string duration `x`."
 */
export function parseDuration(duration: string | number): number {
  if (typeof duration === 'number') {
    if (Number.isFinite(duration) && duration >= 0) return duration;
  } else {
    const match = /^(\d+(?:\.\d+)?)\s*([smhd])$/.exec(duration.trim());
    if (match !== null) return Number(match[1]) * SECONDS[match[2]!]!;
  }
  throw new RangeError(`Unable to parse string duration \`${duration}\`.`);
}

/** Steps of the newest checkpoints. @param checkpoints in rising order. @param count null: all of them */
export function newestSteps(checkpoints: readonly SavedCheckpoint[], count: number | null): number[] {
  const from = count === null ? 0 : Math.max(0, checkpoints.length - count);
  return checkpoints.slice(from).map(({ step }) => step);
}

/**
 * Steps of the checkpoints that Pax's rule deletes, oldest first.
 *
 * The oldest checkpoint is kept for good, and then each one that was saved at least the interval after the last
 * kept so. Deciding in that order gives the same answer whether old ones have been deleted meanwhile or not.
 *
 * Beyond Pax, the newest good one is always kept: a run that turns bad would otherwise replace all that it could be
 * taken back to.
 *
 * @param best step of the checkpoint with the best value of a metric, which is kept, too.
 */
export function stepsToDelete(
  checkpoints: readonly SavedCheckpoint[],
  options: RetentionOptions,
  best?: number,
): number[] {
  const { maxToKeep, keepIntervalSeconds, policies = [] } = options;
  if (maxToKeep === null) return [];
  const ordered = [...checkpoints].sort((a, b) => a.step - b.step);
  const kept = new Set([
    ...newestSteps(ordered, maxToKeep),
    ...policies.flatMap((policy) => policy.kept(ordered)),
  ]);
  const lastGood = ordered.findLast(({ isGood }) => isGood);
  for (const step of [lastGood?.step, best]) if (step !== undefined) kept.add(step);
  if (keepIntervalSeconds !== null) {
    let lastKept = Number.NEGATIVE_INFINITY;
    for (const { step, savedAt } of ordered) {
      // A checkpoint that seems older than the one before was saved after the clock was set: how much later is unknown.
      if (savedAt >= lastKept && savedAt < lastKept + keepIntervalSeconds * 1000) continue;
      kept.add(step);
      lastKept = savedAt;
    }
  }
  return ordered.filter(({ step }) => !kept.has(step)).map(({ step }) => step);
}

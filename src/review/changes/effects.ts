/** @file Effects of a change on a model: size, cost, and compatibility of checkpoints. */
import { type Analysis, trainingCost, type VariableSummary } from '../../analysis/index.js';
import type { CheckpointEffect, Effects, Figure, VariableGroup } from '../reports/diffReport.js';

/** A value for each side where it is known. */
export function bothSides<T>(of: (side: 'old' | 'new') => T | undefined): {
  readonly old?: T;
  readonly new?: T;
} {
  const [old, now] = [of('old'), of('new')];
  return { ...(old !== undefined && { old }), ...(now !== undefined && { new: now }) };
}

/** Effects on the model; a version that was not analysed, or does not exist, is undefined. */
export function effectsOf(old: Analysis | undefined, now: Analysis | undefined): Effects {
  const analyses = { old, new: now };
  const both = <T>(of: (analysis: Analysis) => T | undefined) =>
    bothSides((side) => analyses[side] && of(analyses[side]));
  const unit = (now ?? old)?.unit;
  return {
    ...(unit !== undefined && { unit }),
    parameters: both((analysis) => analysis.parameters),
    flopsPerToken: both((analysis) => analysis.forwardFlopsPerToken),
    tokensPerStep: both((analysis) => analysis.tokensPerStep),
    trainingTokens: both((analysis) => trainingCost(analysis)?.tokens),
    trainingFlops: both((analysis) => trainingCost(analysis)?.flops),
    precision: both((analysis) => analysis.precision),
    deviceHours: {},
    price: {},
    peakMemory: both((analysis) => analysis.memory.total),
    ...(old === undefined || now === undefined
      ? {}
      : { checkpoints: checkpointEffect(old.variables, now.variables) }),
  };
}

// Relative change below the three digits of a report; costs are estimates.
const negligible = 5e-4;

/** Whether a figure is not as it was, as far as a reader cares. */
export function isDifferent({ old, new: now }: Figure): boolean {
  if (old === undefined || now === undefined) return old !== now;
  return Math.abs(now - old) > negligible * Math.abs(old);
}

/** Whether any effect differs; values known for one version only do not count. */
export function hasEffect({ checkpoints, precision, unit: _, ...figures }: Effects): boolean {
  if (checkpoints === undefined) return false;
  return !checkpoints.loads || Object.values(figures).some(isDifferent);
}

/** Relative change of the cost of training that is reported. */
const costMargin = 0.01;

/**
 * 1 where training costs more than before, -1 where it costs less, 0 else: by device-hours where they are known of both
 * versions, else by the FLOPs of the whole training, else by those of a token.
 */
export function costChange({ deviceHours, trainingFlops, flopsPerToken }: Effects): number {
  const isWhole = ({ old, new: now }: Figure): boolean => old !== undefined && now !== undefined;
  const { old = 0, new: now = 0 } = [deviceHours, trainingFlops, flopsPerToken].find(isWhole) ?? {};
  return Math.abs(now - old) > costMargin * old ? Math.sign(now - old) : 0;
}

function checkpointEffect(
  old: readonly VariableSummary[],
  now: readonly VariableSummary[],
): CheckpointEffect {
  const before = new Map(old.map((variable) => [variable.name, formOf(variable)]));
  const after = new Map(now.map((variable) => [variable.name, formOf(variable)]));
  const appeared: VariableGroup[] = [];
  const vanished: VariableGroup[] = [];
  const reshaped: VariableGroup[] = [];
  for (const [name, form] of before) {
    const other = after.get(name);
    if (other === undefined) vanished.push({ name, count: 1, old: form });
    else if (other !== form) reshaped.push({ name, count: 1, old: form, new: other });
  }
  for (const [name, form] of after) if (!before.has(name)) appeared.push({ name, count: 1, new: form });
  return {
    loads: appeared.length + vanished.length + reshaped.length === 0,
    appeared: grouped(appeared),
    vanished: grouped(vanished),
    reshaped: grouped(reshaped),
  };
}

function formOf({ shape, dtype }: VariableSummary): string {
  return `[${shape.join(', ')}] ${dtype}`;
}

/** Groups variables that differ only by numbers in their names. */
function grouped(variables: readonly VariableGroup[]): VariableGroup[] {
  const groups = new Map<string, VariableGroup[]>();
  for (const variable of variables) {
    const key = JSON.stringify([variable.name.replace(/\d+/g, '*'), variable.old, variable.new]);
    const known = groups.get(key);
    if (known === undefined) groups.set(key, [variable]);
    else known.push(variable);
  }
  return [...groups.values()].map(([first, ...others]) =>
    others.length === 0
      ? first!
      : { ...first!, name: first!.name.replace(/\d+/g, '*'), count: others.length + 1 },
  );
}

/** @file Effects of a change on a model: size, cost, and the variables that rules reach. */
import { type Analysis, trainingCost, type VariableSummary } from '../../analysis/index.js';
import type { Effects, Figure, RuleChange } from '../reports/diffReport.js';

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
    ...(old === undefined || now === undefined ? {} : changedRules(old.variables, now.variables)),
  };
}

/** A name in which * stands for each number: of variables that are alike. */
export const withoutNumbers = (name: string): string => name.replace(/\d+/g, '*');

const distinct = (names: readonly string[]): string[] => [...new Set(names.map(withoutNumbers))];

/** Rules that reach other variables, of those that both versions have. */
function changedRules(
  old: readonly VariableSummary[],
  now: readonly VariableSummary[],
): { readonly rules?: RuleChange[] } {
  const reach = (all: readonly VariableSummary[], rule: string): Set<string> =>
    new Set(all.filter(({ rules }) => rules.includes(rule)).map(({ name }) => name));
  const [before, after] = [old, now].map((all) => new Set(all.map(({ name }) => name)));
  const changes = [...new Set([...old, ...now].flatMap(({ rules }) => rules))].flatMap(
    (rule): RuleChange[] => {
      const [was, is] = [reach(old, rule), reach(now, rule)];
      const gained = distinct([...is].filter((name) => before!.has(name) && !was.has(name)));
      const lost = distinct([...was].filter((name) => after!.has(name) && !is.has(name)));
      return gained.length + lost.length === 0 ? [] : [{ rule, old: was.size, new: is.size, gained, lost }];
    },
  );
  return changes.length === 0 ? {} : { rules: changes };
}

// Relative change below the three digits of a report; costs are estimates.
const negligible = 5e-4;

/** Whether a figure is not as it was, as far as a reader cares. */
export function isDifferent({ old, new: now }: Figure): boolean {
  if (old === undefined || now === undefined) return old !== now;
  return Math.abs(now - old) > negligible * Math.abs(old);
}

/** Whether both versions could be analysed. */
export const areBothKnown = ({ parameters }: Effects): boolean =>
  parameters.old !== undefined && parameters.new !== undefined;

/** Whether any effect differs; values known for one version only do not count. */
export function hasEffect(effects: Effects): boolean {
  const { precision, rules: _rules, unit: _, ...figures } = effects;
  return areBothKnown(effects) && Object.values(figures).some(isDifferent);
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

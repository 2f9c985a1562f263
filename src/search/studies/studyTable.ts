/** @file A study as a table: its trials, the best first. */
import { textTable } from '../../system/text/index.js';
import { bestPlaced } from '../pareto.js';
import type { Value } from '../space.js';
import { byReward, rewarded } from '../trial.js';
import type { StudyTrial } from './records.js';

/** Trials, those with rewards first: the best one, or the fronts of several objectives; then the others by number. */
export function rankedTrials(trials: readonly StudyTrial[]): StudyTrial[] {
  const known = rewarded(trials);
  const isSingle = (known[0]?.rewards.length ?? 1) === 1;
  const ranked: readonly StudyTrial[] = isSingle
    ? byReward(known)
    : bestPlaced(known, known.length).map(({ trial }) => trial);
  return [...ranked, ...trials.filter(({ rewards }) => rewards === undefined)];
}

/** A value as a column shows it. */
export function shownValue(value: Value | undefined): string {
  if (value === undefined) return '';
  return typeof value === 'number' ? String(Number(value.toPrecision(5))) : String(value);
}

/** Header and rows of a table of trials. */
export function trialRows(trials: readonly StudyTrial[]): { header: string[]; rows: string[][] } {
  const names = [...new Set(trials.flatMap(({ values }) => Object.keys(values)))];
  const objectives = Math.max(1, ...trials.map(({ rewards }) => rewards?.length ?? 0));
  const rewardNames = Array.from({ length: objectives }, (_, i) =>
    objectives === 1 ? 'reward' : `reward ${i}`,
  );
  const hasSteps = trials.some(({ steps }) => steps !== undefined);
  const rows = trials.map(({ number, state, rewards, values, steps, from }) => [
    String(number),
    state,
    ...rewardNames.map((_, i) => shownValue(rewards?.[i])),
    ...(hasSteps ? [shownValue(steps), shownValue(from)] : []),
    ...names.map((name) => shownValue(values[name])),
  ]);
  return {
    header: ['trial', 'state', ...rewardNames, ...(hasSteps ? ['steps', 'from'] : []), ...names],
    rows,
  };
}

/** How many trials there are of each state. */
export function countsText(trials: readonly StudyTrial[]): string {
  const counts = new Map<string, number>();
  for (const { state } of trials) counts.set(state, (counts.get(state) ?? 0) + 1);
  const summary = Array.from(counts, ([state, count]) => `${count} ${state}`).join(', ');
  return `${trials.length} trials: ${summary || 'none'}.`;
}

/** The best trials as text. */
export function studyText(trials: readonly StudyTrial[], most = 10): string {
  const { header, rows } = trialRows(rankedTrials(trials).slice(0, most));
  return `${textTable(rows, header)}\n\n${countsText(trials)}`;
}

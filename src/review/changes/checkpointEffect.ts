/** @file Resumption of one version's runs by another: with the same bits, changed, or refused. */
import { type TrainingFingerprint, trainingParts } from '../fingerprints/fingerprintedParts.js';
import type { CheckpointEffect, FieldChange, VariableGroup } from '../reports/diffReport.js';
import type { ResumedDocument, SavedDocument, VariableForms } from '../versions/protocol.js';
import { withoutNumbers } from './effects.js';

/** Fields of a training dataset that tell of no row, and of a learner that act by the gradients of a run. */
const idle = /\.(name|prefetchBatches|numWorkers|evalLoopNumBatches|resetForEval)$/;
const byGradients = /^task\.train\.learner\b.*\.skipStepGradientNorm(Sigma|Window)$/;

type Changes = CheckpointEffect['changes'];

/**
 * How a run goes on, by what one version saves and the other answers.
 *
 * @param fields those that changed between them.
 * @returns undefined where neither was asked.
 */
export function resumptionOf(
  saved: SavedDocument | undefined,
  resumed: ResumedDocument | undefined,
  fields: readonly FieldChange[],
): CheckpointEffect | undefined {
  if (saved === undefined) return undefined;
  const none = { forcedBy: [], appeared: [], vanished: [], reshaped: [] };
  if ('notSaved' in saved) return { goesOn: 'unknown', changes: [whole(saved.notSaved)], ...none };
  if (resumed === undefined) return undefined;
  if ('notResumed' in resumed) return { goesOn: 'unknown', changes: [whole(resumed.notResumed)], ...none };
  const [{ run, training }, now] = [saved.saved, resumed.resumed];
  if ('refused' in now) {
    const { refused: error, loads, forcedBy: paths } = now;
    const groups = variableGroups(run.description.variables, now.variables);
    const forcedBy = paths.map((path) => withValues(path, fields));
    return { goesOn: 'never', changes: [], error, forcedBy, loads, ...groups };
  }
  const { differs, unknown } = compareTraining(training, now.training);
  const told = now.differences.map(({ what, text }) => ({ what, text }));
  const rowsDiffer = differs.some(({ what }) => what === 'rows of the data');
  const changes = [...told, ...differs, ...unseen(fields, rowsDiffer ? undefined : now.dataset)];
  if (changes.length > 0) return { goesOn: 'changed', changes, ...none };
  const missing = run.noData === undefined ? [] : [{ what: 'data', text: run.noData }];
  const open = [...missing, ...unknown];
  return { goesOn: open.length > 0 ? 'unknown' : 'same', changes: open, ...none };
}

const whole = (text: string) => ({ what: 'checkpoints', text });

function compareTraining(
  old: TrainingFingerprint,
  now: TrainingFingerprint,
): { readonly differs: Changes; readonly unknown: Changes } {
  const pairs = trainingParts.map((what) => ({ what, before: old[what], after: now[what] }));
  const differs = pairs.filter(
    ({ before, after }) =>
      before.hash !== undefined && after.hash !== undefined && before.hash !== after.hash,
  );
  const isGraver = differs.some(({ what }) => what === 'loss or gradients');
  return {
    // The loss is one of the metrics.
    differs: differs.flatMap(({ what }) => (what === 'metrics or summaries' && isGraver ? [] : [{ what }])),
    unknown: pairs.flatMap(({ what, before, after }) => {
      const text = after.notCompared ?? before.notCompared;
      return text === undefined ? [] : [{ what, text }];
    }),
  };
}

/** Changed fields whose effect no fingerprint sees: of later rows, and of what a run itself measures. */
function unseen(fields: readonly FieldChange[], dataset: string | undefined): Changes {
  // Lists' items with the same change share a path: `datasets[0…1].split`.
  const others = /^datasets\[(\d+)\]/;
  const isOfRows = ({ path, what }: FieldChange): boolean => {
    if (dataset === undefined || what === 'class' || !path.startsWith('datasets[') || idle.test(path))
      return false;
    const [own] = others.exec(path) ?? [];
    return own === undefined || own === dataset;
  };
  return fields
    .filter((each) => isOfRows(each) || byGradients.test(each.path))
    .map(({ path }) => ({ what: path }));
}

/** A path with the values of its change. */
function withValues(path: string, fields: readonly FieldChange[]): string {
  const { old, new: now } = fields.find((each) => each.path === path || each.newPath === path) ?? {};
  if (old === undefined && now === undefined) return path;
  return `${path}: ${old?.text ?? 'absent'} → ${now?.text ?? 'absent'}`;
}

/** Variables that only one version has, or that have other shapes, those with the same change in one group. */
export function variableGroups(
  old: VariableForms,
  now: VariableForms,
): Pick<CheckpointEffect, 'appeared' | 'vanished' | 'reshaped'> {
  const forms = (of: VariableForms) =>
    new Map(Object.entries(of).map(([name, variable]) => [name, formOf(variable)]));
  const [before, after] = [forms(old), forms(now)];
  const appeared: VariableGroup[] = [];
  const vanished: VariableGroup[] = [];
  const reshaped: VariableGroup[] = [];
  for (const [name, form] of before) {
    const other = after.get(name);
    if (other === undefined) vanished.push({ name, count: 1, old: form });
    else if (other !== form) reshaped.push({ name, count: 1, old: form, new: other });
  }
  for (const [name, form] of after) if (!before.has(name)) appeared.push({ name, count: 1, new: form });
  return { appeared: grouped(appeared), vanished: grouped(vanished), reshaped: grouped(reshaped) };
}

function formOf({ shape, dtype }: VariableForms[string]): string {
  return `[${shape.join(', ')}] ${dtype}`;
}

/** Groups variables that differ only by numbers in their names. */
function grouped(variables: readonly VariableGroup[]): VariableGroup[] {
  const groups = new Map<string, VariableGroup[]>();
  for (const variable of variables) {
    const key = JSON.stringify([withoutNumbers(variable.name), variable.old, variable.new]);
    const known = groups.get(key);
    if (known === undefined) groups.set(key, [variable]);
    else known.push(variable);
  }
  return [...groups.values()].map(([first, ...others]) =>
    others.length === 0 ? first! : { ...first!, name: withoutNumbers(first!.name), count: others.length + 1 },
  );
}

/** @file Lines and figures that the text and Markdown reports share. */
import { formatCount, shellWord } from '../../system/text/index.js';
import type { FingerprintedPart } from '../fingerprints/fingerprintedParts.js';
import { formatBytes, formatFlops } from '../text/reportFormat.js';
import type {
  CheckpointEffect,
  Computed,
  ConstantChange,
  DeclarationChange,
  DiffReport,
  Effects,
  ExperimentReport,
  FieldChange,
  Former,
  RuleChange,
  Side,
  Status,
  Uncompared,
  VariableGroup,
} from './diffReport.js';

/** A change as a reader sees it. */
export interface Line {
  readonly path: string;
  readonly old: string | undefined;
  readonly new: string | undefined;
  /** Remarks: where it was set, how often it occurs. */
  readonly remarks: readonly Phrase[];
}

/** Words of ours, with names, and places of one of the versions, between them. */
export type Phrase = readonly (string | { readonly name: string } | Placed)[];

/** `file:line` in one of the versions, or a flag. */
export interface Placed {
  readonly place: string;
  readonly of: 'old' | 'new';
}

/** Experiments of either version that source text does not tell. */
export function loadedIn({ loaded }: DiffReport): string[] {
  return loaded === undefined ? [] : [...new Set([...loaded.old, ...loaded.new])].sort();
}

/** A phrase as plain text. */
export function phraseText(phrase: Phrase): string {
  return phrase
    .map((part) => (typeof part === 'string' ? part : 'name' in part ? part.name : part.place))
    .join('');
}

function at(place: string | undefined, of: Placed['of']): Phrase {
  return place === undefined ? [] : [' at ', { place, of }];
}

/** A constant's line. */
export function constantLine({ name, old, new: now }: ConstantChange): Line {
  const by = now ?? old!;
  const remarks: Phrase[] = [
    ['set by ', { name: by.setBy }, ...at(by.place, now === undefined ? 'old' : 'new')],
  ];
  const isSame = old?.setBy === now?.setBy && sameFile(old?.place ?? '', now?.place ?? '');
  if (old !== undefined && now !== undefined && !isSame)
    remarks.push(['was set by ', { name: old.setBy }, ...at(old.place, 'old')]);
  return { path: name, old: old?.text, new: now?.text, remarks };
}

/** A field's line. */
export function fieldLine({ what, path, newPath, old, new: now, count, forcesNewRun }: FieldChange): Line {
  const remarks: Phrase[] = [];
  if (count !== undefined) remarks.push([`${count} places`]);
  if (newPath !== undefined) remarks.push(['now at ', { name: newPath }]);
  remarks.push(...placeRemarks(old, now));
  if (forcesNewRun) remarks.push(['forces a new run']);
  const name = what === 'class' ? 'class ' : '';
  return {
    path,
    old: old && `${name}${sideText(old)}`,
    new: now && `${name}${sideText(now)}`,
    remarks,
  };
}

function sideText({ text, isDefault }: Side): string {
  return isDefault ? `${text} (default)` : text;
}

function placeRemarks(old: Side | undefined, now: Side | undefined): Phrase[] {
  const [before, after] = [placeOf(old, 'old'), placeOf(now, 'new')];
  if (after === undefined) return before === undefined ? [] : [['was ', ...before]];
  const isSame = before === undefined || sameFile(phraseText(before), phraseText(after));
  return isSame ? [after] : [after, ['was ', ...before]];
}

function placeOf(side: Side | undefined, of: Placed['of']): Phrase | undefined {
  if (side?.isDefault === true) return ['default of ', { name: side.declaredBy! }, ...at(side.place, of)];
  return side?.place === undefined ? undefined : [{ place: side.place, of }];
}

/** Whether two places differ in no more than the line, which changes with every edit above. */
function sameFile(a: string, b: string): boolean {
  return a.replace(/:\d+$/, '') === b.replace(/:\d+$/, '');
}

/** Change of a name that classes or experiments declare. */
export function declarationText(change: DeclarationChange): string {
  const { what, of, old, new: now, value, isGuess, isShared, experiments } = change;
  const owner = of.length === 0 ? '' : ` of ${someOf(of)}`;
  const shown = value === undefined ? '' : `: ${value} everywhere`;
  const where = ` (${someOf(experiments)})`;
  if (old === undefined) return `new ${what} ${now}${owner}${shown}${where}`;
  if (now === undefined) return `${what} ${old}${owner} is gone${shown}${where}`;
  if (isShared) {
    return (
      `class ${old} is saved as ${now} now, as another class has its name: without registerAlias('${old}', ${old}) ` +
      `documents and runs that were saved with ${old} will not load${where}`
    );
  }
  if (!isGuess) return `${what} ${old}${owner} is renamed to ${now}${where}`;
  const alias = what === 'class' ? `registerAlias('${old}', ${now})` : `renamed(…, '${old}')`;
  return (
    `${what} ${old}${owner} removed and ${now} added, perhaps renamed: without ${alias} ` +
    `documents and runs that were saved with ${old} will not load${where}`
  );
}

function someOf(names: readonly string[]): string {
  return names.length > 4 ? `${names.slice(0, 3).join(', ')} and ${names.length - 3} more` : names.join(', ');
}

const evidenceTexts: Readonly<Record<Former['evidence'][number], string>> = {
  class: 'one class has both names',
  file: 'git detects the moved file, with a class of the same name',
  configs: 'configs and constants are equal',
};

/** A new name of an experiment: the evidence, and the consequences for the old name, a line each. */
export function formerLines({ name, former }: ExperimentReport): string[] {
  if (former === undefined) return [];
  const { name: old, evidence, oldFile, newFile, leadsTo, alias } = former;
  const shown = evidence.map((each) => evidenceTexts[each]).join('; ');
  const file = oldFile === newFile ? '' : `, in ${newFile} instead of ${oldFile}`;
  const head =
    evidence.length === 0
      ? `${old} is said to be ${name} now${file}`
      : `${old} is renamed to ${name}${file} (${shown})`;
  if (leadsTo === old) {
    return [
      head,
      `--exp takes either name. A job_log_dir belongs to one name: runs of ${old} resume with --exp=${shellWord(old)}, not with --exp=${shellWord(name)}`,
    ];
  }
  return [
    head,
    `--exp=${shellWord(old)} ${leadingText(leadsTo)}: use --exp=${shellWord(name)}, with another job_log_dir`,
    `runs of ${old} do not resume, and their checkpoints do not load: both check the experiment's name. ` +
      `${alias} in ${oldFile} keeps that name`,
  ];
}

function leadingText(name: string | undefined): string {
  return `leads ${name === undefined ? 'nowhere' : `to ${name}`} now`;
}

/** Description of a removed experiment, a line each. */
export function descriptionLines({ name, was, constants, effects }: ExperimentReport): string[] {
  if (was === undefined) return [];
  const { base, place, description, lastCommit, leadsTo } = was;
  const parameters = effects?.parameters.old;
  return [
    `${name} extended ${base} at ${place}${description === '' ? '' : `: ${description}`}`,
    ...constants.map(({ name: constant, old }) => `${constant} = ${old?.text}`),
    ...(parameters === undefined ? [] : [`${formatCount(parameters)} parameters`]),
    ...(lastCommit === undefined ? [] : [`last changed by ${lastCommit}`]),
    `--exp=${shellWord(name)} ${leadingText(leadsTo)}`,
  ];
}

/** Baseline of an added experiment. */
export function againstText({ status, against }: ExperimentReport): string {
  if (against !== undefined) return `against ${against}`;
  return status === 'added' ? 'whole: none of its base classes has configs' : '';
}

const otherwise: Readonly<Record<FingerprintedPart, string>> = {
  'training step': 'the training step computes different values',
  'optimizer update': 'the optimizer update differs',
  evaluation: 'the evaluation computes different values',
  'initial values': 'the initial values differ',
  input: 'the input gives different rows',
  'reading ahead': 'read-ahead differs',
  decoding: 'decoding draws different tokens',
  programs: 'its own programs differ',
};

/** Computed differences of equal configs, where they are, and the changed files that may cause them. */
export function computedText({ differs, places = [], files, data = [], isByNew }: Computed): string {
  const parts = differs.map((part) => {
    const place = places.find((each) => each.part === part)?.text;
    return `${otherwise[part]}${place === undefined ? '' : ` (${place})`}`;
  });
  const ofData = data.length === 0 ? [] : [`${someOf(data)} ${data.length === 1 ? 'differs' : 'differ'}`];
  const head = `${isByNew ? 'beside its config' : 'config same'}, ${[...parts, ...ofData].join(', ')}`;
  return `${head}${files.length === 0 ? '' : `: ${someOf(files)}`}`;
}

/** Statuses of experiments that are not in both versions, or compute nothing in one of them. */
const withoutNumerics: readonly Status[] = ['added', 'removed', 'broken', 'mended', 'failing'];

/** What two codes compute by one config, in a few words. */
export function numericsText({ status, computed }: ExperimentReport): string {
  if (withoutNumerics.includes(status)) return '–';
  if (computed === undefined) return 'same code';
  const { differs, data = [], uncompared } = computed;
  const others = [...differs, ...data];
  if (others.length > 0) return `differs: ${someOf(others)}`;
  if (uncompared.length > 0) return `not compared: ${someOf(uncompared.map(({ part }) => part))}`;
  return 'same';
}

/** A part that could not be compared, and why. */
export function uncomparedText({ part, reason }: Uncompared): string {
  return `${part}: ${reason}`;
}

/** A variable, or a group of them. */
export function variableText({ name, count, old, new: now }: VariableGroup): string {
  const form = old !== undefined && now !== undefined ? `${old} → ${now}` : (old ?? now)!;
  return `${name} ${form}${count === 1 ? '' : ` (${count} variables)`}`;
}

/** A rule with the numbers of its variables, and the first of those that it reaches no longer, or now. */
export function ruleText({ rule, old, new: now, gained, lost }: RuleChange): string {
  const others = [
    ...(lost.length === 0 ? [] : [`no longer ${someOf(lost)}`]),
    ...(gained.length === 0 ? [] : [`now ${someOf(gained)}`]),
  ];
  return `${rule}: ${old} to ${now} (${others.join('; ')})`;
}

/** A figure with its name, and how to write one. */
interface FigureKind {
  readonly key: keyof Omit<Effects, 'precision' | 'rules' | 'unit'>;
  readonly label: string;
  /** Its name over a column. */
  readonly column: string;
  readonly format: (value: number) => string;
}

/** In the order in which reports show them. */
export const figureKinds: readonly FigureKind[] = [
  { key: 'parameters', label: 'Parameters', column: 'Parameters', format: formatCount },
  { key: 'flopsPerToken', label: 'Forward FLOPs per token', column: 'FLOPs/token', format: formatFlops },
  { key: 'tokensPerStep', label: 'Tokens per step', column: 'Tokens/step', format: formatCount },
  { key: 'trainingTokens', label: 'Tokens of training', column: 'Training tokens', format: formatCount },
  { key: 'trainingFlops', label: 'FLOPs of training', column: 'Training FLOPs', format: formatFlops },
  { key: 'deviceHours', label: 'Device-hours', column: 'Device-hours', format: formatCount },
  { key: 'price', label: 'Price of training', column: 'Price', format: formatCount },
  { key: 'peakMemory', label: 'Peak memory of training', column: 'Peak memory', format: formatBytes },
];

/** A name of a figure in the unit of its experiment: `Forward FLOPs per row`. */
export const inUnit = (name: string, unit = 'tokens'): string =>
  name.replace(/(t)oken(s?)/i, (_, [first]: string, plural: string) => {
    const word = plural === '' ? unit.replace(/s$/, '') : unit;
    return first === 'T' ? word[0]!.toUpperCase() + word.slice(1) : word;
  });

/** The unit of all experiments; `units` where they have several. */
export function unitOf(experiments: readonly Pick<ExperimentReport, 'effects'>[]): string | undefined {
  const units = new Set(experiments.flatMap(({ effects }) => (effects === undefined ? [] : [effects.unit])));
  return units.size > 1 ? 'units' : [...units][0];
}

/** `+3.7M, +30%` */
export function difference(old: number, now: number, format: (value: number) => string): string {
  const sign = now < old ? '−' : '+';
  const amount = `${sign}${format(Math.abs(now - old))}`;
  return old === 0 ? amount : `${amount}, ${percent(old, now)}`;
}

/** `+30%`, `−0.02%` */
export function percent(old: number, now: number): string {
  const share = Math.abs(now / old - 1) * 100;
  const digits = share >= 10 ? share.toFixed(0) : share.toPrecision(2);
  return `${now < old ? '−' : '+'}${Number(digits)}%`;
}

/** How runs go on, in a few words. */
export function checkpointText({ goesOn, changes, appeared, vanished, reshaped }: CheckpointEffect): string {
  if (goesOn === 'same') return 'same bits';
  if (goesOn === 'changed') return `changed: ${someOf(changes.map(({ what }) => what))}`;
  if (goesOn === 'unknown') return 'not compared';
  const parts = [
    [reshaped, 'reshaped'],
    [appeared, 'new'],
    [vanished, 'gone'],
  ] as const;
  const counts = parts
    .map(([groups, word]) => [groups.reduce((sum, { count }) => sum + count, 0), word] as const)
    .filter(([count]) => count > 0)
    .map(([count, word]) => `${count} ${word}`);
  return counts.length === 0 ? 'cannot go on' : `cannot go on: ${counts.join(', ')}`;
}

/** Titles of the ways in which runs go on. */
export const checkpointTitles: Readonly<Record<CheckpointEffect['goesOn'], string>> = {
  same: 'Runs go on with the same bits',
  changed: 'Runs go on changed',
  never: 'Runs cannot go on',
  unknown: 'Checkpoints not compared',
};

const mostErrorLines = 8;

/** What there is to say about how runs go on, a line each: what forces a new one first. */
export function checkpointLines(effect: CheckpointEffect): string[] {
  const { changes, error, forcedBy, loads, appeared, vanished, reshaped } = effect;
  const lines = error?.split('\n') ?? [];
  // Groups of variables say the rest.
  const isGrouped = appeared.length + vanished.length + reshaped.length > 0;
  const most = isGrouped ? 1 : mostErrorLines;
  const first = lines.slice(0, most);
  const cut = isGrouped ? first.map((line) => line.replace(/:$/, '')) : first;
  if (lines.length > most && !isGrouped) cut.push('…');
  return [
    ...forcedBy.map((each) => `forced by ${each}`),
    ...cut,
    ...changes.map(({ what, text }) => (text === undefined ? what : `${what}: ${text}`)),
    ...(loads === undefined ? [] : [loadsText(loads)]),
  ];
}

function loadsText({ count, keeps }: NonNullable<CheckpointEffect['loads']>): string {
  const of = keeps.length === 0 ? `all ${count}` : `${count} of ${count + keeps.length}`;
  const others = keeps.length === 0 ? '' : `, not ${someOf(keeps)}`;
  return `initFromCheckpoint would load ${of} variables${others}`;
}

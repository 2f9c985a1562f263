/** @file Report of `luthier validate` as text and JSON. */
import { type BrokenFile, showFile, showPlace } from '../../registry/names/index.js';
import { counted, indented } from '../../review/text/index.js';
import { formatCount, type Paint, textTable } from '../../system/text/index.js';
import type { Report } from '../command.js';
import type { Checked } from './checkAll.js';
import type { Level, Problem } from './levels.js';

/** Verdicts, from best to worst. */
const states = ['passed', 'incomplete', 'failed'] as const;
type State = (typeof states)[number];

/** Report entry of an experiment. */
export interface Result {
  readonly name: string;
  readonly place: string;
  readonly state: State;
  readonly reached: Level | undefined;
  readonly parameters?: number;
  readonly problems: readonly Problem[];
  readonly warnings: readonly string[];
  readonly seconds: number;
}

/** Request of the command. */
export interface ValidateRequest {
  readonly level: Level;
  /** Whether the experiments were named, and so must be complete. */
  readonly named: boolean;
  readonly directories: readonly string[];
  readonly seconds: number;
}

/** Report entry of a checked experiment. */
export function resultOf({ found, findings, reached, seconds }: Checked): Result {
  const { problems, warnings, unread, parameters } = findings;
  const wrong = problems.some(({ needs }) => needs === undefined);
  const file = showFile(found.place.file);
  const own = found.constants.filter(({ kind, name }) => kind === 'set' && unread.includes(name));
  return {
    name: found.name,
    place: `${file}:${found.place.line}`,
    state: wrong ? 'failed' : problems.length > 0 ? 'incomplete' : 'passed',
    reached,
    ...(parameters !== undefined && { parameters }),
    problems,
    warnings: [
      ...own.map(({ name, line }) => `${file}:${line}: ${name} is set, and nothing reads it.`),
      ...warnings,
    ],
    seconds,
  };
}

/** Report entry of an unreadable file. */
export function resultOfBroken({ name, problem: { message, ...at } }: BrokenFile): Result {
  const place = showPlace(at);
  const problem = {
    level: 'resolve',
    message: `${message} No experiment can be found in it.`,
    place,
  } as const;
  return { name, place, state: 'failed', reached: undefined, problems: [problem], warnings: [], seconds: 0 };
}

/** A problem with its place: `task.model.numHeads: expected …`. */
function problemText({ level, path, message, place }: Problem): string {
  const at = place === undefined || message.includes(place) ? '' : ` (at ${place})`;
  // Messages about constants and layers name them already.
  const isMentioned = path === undefined || message.includes(path);
  // Violations start with the class: `task.model (LanguageModel): …`.
  const where = isMentioned ? '' : `${path}${message.startsWith('(') ? ' ' : ': '}`;
  return `${level}: ${where}${message}${at}`;
}

/** Reasons for not passing: each error, or all missing inputs. */
export function reasonsOf({ state, problems }: Result): string[] {
  if (state !== 'incomplete') return problems.map(problemText);
  return [`needs ${problems.map(({ needs }) => needs).join(' and ')}`];
}

function detailsOf(result: Result): string[] {
  return [...reasonsOf(result), ...result.warnings.map((warning) => `warning: ${warning}`)];
}

function row({ name, place, state, reached, parameters, seconds }: Result): string[] {
  const size = parameters === undefined ? '–' : formatCount(parameters);
  return [state, name, place, reached ?? '–', size, `${seconds.toFixed(1)} s`];
}

const header = ['', 'experiment', 'place', 'reached', 'parameters', 'time'];
const colours = { passed: 'green', incomplete: 'yellow', failed: 'red' } as const;

function text(results: readonly Result[], asked: ValidateRequest, paint: Paint): string {
  const table = textTable(results.map(row), header, (line, i) => {
    return i === undefined ? paint('dim', line) : line;
  });
  const [head, ...lines] = table.split('\n');
  const details = results.map((result) =>
    detailsOf(result)
      .map((detail) => indented(detail, '    '))
      .join('\n'),
  );
  const body = results.flatMap((result, i) => {
    const line = lines[i]!.replace(result.state, (state) => paint(colours[result.state], state));
    // Details shared by several, such as those of a file that fails to load, follow the last of them.
    return details[i] === '' || details[i] === details[i + 1] ? [line] : [line, details[i]!];
  });
  return [head, ...body, '', `${summary(results, asked)} ${asked.seconds.toFixed(1)} s.`].join('\n');
}

function summary(results: readonly Result[], { level }: ValidateRequest): string {
  const parts = states.flatMap((state) => {
    const count = results.filter((result) => result.state === state).length;
    return count === 0 ? [] : [`${count} ${state}`];
  });
  const warnings = results.reduce((sum, result) => sum + result.warnings.length, 0);
  const warned = warnings === 0 ? '' : `, ${counted(warnings, 'warning')}`;
  return `${counted(results.length, 'experiment')} up to level ${level}: ${parts.join(', ')}${warned}.`;
}

function documentOf(result: Result): object {
  const { reached, ...others } = result;
  return { ...others, reached: reached ?? null };
}

/** Report on all experiments, by verdict: passed, incomplete, failed. */
export function validateReport(results: readonly Result[], asked: ValidateRequest): Report {
  const { level, named, directories, seconds } = asked;
  const sorted = results.toSorted((a, b) => states.indexOf(a.state) - states.indexOf(b.state));
  const none = `There is no experiment in ${directories.map(showFile).join(' and ')}.`;
  const bad = results.some(({ state }) => state === 'failed' || (named && state === 'incomplete'));
  return {
    text: (paint) => (results.length === 0 ? none : text(sorted, asked, paint)),
    json: () => ({ level, seconds, experiments: results.map(documentOf) }),
    exitCode: bad || results.length === 0 ? 1 : 0,
  };
}

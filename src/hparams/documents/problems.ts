/** @file What readers of documents tell: problems, gathered and told at once, and notices, each once. */
import { ConfigError, countText, linesBelow } from '../errors.js';
import type { ReadOptions } from './format.js';

/** One thing that is wrong, where in the config, and where in the text or the code. */
export interface DocumentProblem {
  readonly path: string;
  readonly problem: string;
  readonly place: string | undefined;
  readonly cause?: unknown;
}

/** Throws what is wrong, if anything is: one problem as it is, several as a list below `what` and its file. */
export function throwProblems(problems: readonly DocumentProblem[], what: string, file?: string): void {
  const [first] = problems;
  if (first === undefined) return;
  const { problem, path, place, cause } = first;
  if (problems.length === 1) throw new ConfigError(problem, { path, place, cause });
  const lines = problems.map(
    (each) => `${each.problem}${each.place === undefined ? '' : ` (at ${each.place})`}`,
  );
  const whole = file === undefined ? what : `${what} ${file}`;
  throw new ConfigError(`${whole}: ${countText(problems.length)} problems:${linesBelow(lines)}`, { path });
}

/** `error` as a problem. @throws `error` itself where it is no ConfigError. */
export function problemFrom(error: unknown, path: string, place?: string): DocumentProblem {
  if (!(error instanceof ConfigError)) throw error;
  return { path, problem: error.problem, place: place ?? error.place, cause: error.cause };
}

/** Tells `options.notify`, or else warns through Node; what was told already is not told again. */
export function notifier(options: Pick<ReadOptions, 'notify'>): (notice: string) => void {
  const told = new Set<string>();
  const notify = options.notify ?? ((notice: string) => process.emitWarning(notice, 'ConfigWarning'));
  return (notice) => {
    if (told.has(notice)) return;
    told.add(notice);
    notify(notice);
  };
}

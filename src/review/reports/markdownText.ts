/**
 * @file Texts of a report as Markdown. They may come from strangers, so each is in code, where nothing is interpreted,
 * and links lead to lines of the reviewed repository alone.
 */
import { posix } from 'node:path';
import { shortened, visible } from '../../system/text/index.js';
import { codeSpan, escapeHtml } from '../text/reportFormat.js';
import type { DiffReport } from './diffReport.js';
import type { Label } from './gates.js';
import type { Phrase, Placed } from './reportLines.js';

/** The review's context, given by the poster of the report, not by the report. */
export interface ReviewContext {
  /** The repository's address: `https://github.com/owner/name`. */
  readonly repository?: string;
  /** The project's folder in the repository, which places are relative to; absent for the root. */
  readonly folder?: string;
  /** The commit that was reviewed. */
  readonly head?: string;
  /** The address of the run that made the report. */
  readonly run?: string;
  /** The name of the run's artifact that holds pictures of the diffs. */
  readonly pictures?: string;
  readonly labels?: readonly Label[];
  /** Markdown for the end of the comment. */
  readonly closing?: string;
}

const longest = 1000;

/** A text on one line, short also where its characters are shown as escapes. */
const line = (text: string): string => shortened(visible(shortened(text, longest)), longest);

/** A text as code. */
export function span(text: string): string {
  return codeSpan(line(text));
}

/** A text as code inside of HTML. */
export function htmlCode(text: string): string {
  return `<code>${escapeHtml(line(text))}</code>`;
}

const mostNames = 12;
/** Characters of the names in one list, the first aside: a table pads its columns. */
const mostOfNames = 2000;

/** Names of experiments inside of HTML. */
export function namesHtml(names: readonly string[]): string {
  return listed(names, htmlCode);
}

/** Names of experiments in Markdown. */
export function namesMarkdown(names: readonly string[]): string {
  return listed(names, span);
}

function listed(names: readonly string[], show: (name: string) => string): string {
  const shown: string[] = [];
  for (const name of names.slice(0, mostNames)) {
    const text = show(name);
    if (shown.length > 0 && shown.join(', ').length + text.length > mostOfNames) break;
    shown.push(text);
  }
  const more = names.length > shown.length ? ` and ${names.length - shown.length} more` : '';
  return names.length === 1 ? shown[0]! : `${names.length} experiments: ${shown.join(', ')}${more}`;
}

/** Links to commits and their lines, where the repository is known. */
export class Links {
  private readonly commits: Readonly<Record<Placed['of'], string | undefined>>;

  constructor(
    report: DiffReport,
    private readonly context: ReviewContext,
  ) {
    this.commits = { old: commitOf(report.old.commit), new: commitOf(context.head) };
  }

  /** A text of the report, linked to the commit of its version. */
  commit(text: string, of: Placed['of']): string {
    const commit = this.commits[of];
    return this.linked(text, commit && `commit/${commit}`);
  }

  /** Words and names, each place linked to its line. */
  phrase(phrase: Phrase): string {
    return phrase
      .map((part) =>
        typeof part === 'string' ? part : 'name' in part ? span(part.name) : this.place(part.place, part.of),
      )
      .join('');
  }

  /** A place, linked to its line where it is one of a file in the repository. */
  place(place: string, of: Placed['of']): string {
    const commit = this.commits[of];
    const [, file, line] = /^((?:\.\.\/)*(?:[\w@.+-]+\/)*[\w@.+-]+):([1-9]\d{0,6})$/.exec(place) ?? [];
    if (commit === undefined || file === undefined || file.length > 255) return span(place);
    const path = posix.join(this.context.folder ?? '', file);
    // The library is elsewhere where places in it begin with its name; a path of ours climbs at its beginning alone.
    const isOther = /^luthier\/|\.\.$/.test(file) || posix.normalize(file) !== file;
    if (isOther || path.startsWith('../')) return span(place);
    const encoded = path.split('/').map(encodeURIComponent).join('/');
    return this.linked(place, `blob/${commit}/${encoded}#L${line}`);
  }

  private linked(text: string, path: string | undefined): string {
    const { repository } = this.context;
    return repository === undefined || path === undefined
      ? span(text)
      : `[${span(text)}](${repository}/${path})`;
  }
}

/** A commit's whole hash, and nothing else. */
function commitOf(text: string | undefined): string | undefined {
  return text !== undefined && /^[0-9a-f]{40,64}$/.test(text) ? text : undefined;
}

/** @file What `luthier snapshot` tells of the snapshots. */
import type { Report } from '../command.js';
import { codeBlock, codeSpan, counted, escapeHtml, folded } from '../format.js';
import { diffText } from '../lineDiff.js';
import type { Paint } from '../paint.js';
import { badStates, type Entry, type State } from './entries.js';
import { snapshotFile } from './files.js';

const said: Readonly<Record<State, string>> = {
  current: 'is current',
  new: 'was made',
  updated: 'was updated',
  removed: 'was removed',
  stale: 'is stale',
  missing: 'is missing',
  orphaned: 'has no experiment',
  failed: 'cannot be made',
};

const isBad = ({ state }: Entry) => badStates.includes(state);

/** What makes `--check` succeed; nothing for experiments that fail: they must be mended themselves. */
function commandsFor(entries: readonly Entry[]): string[] {
  const names = (...states: State[]) =>
    entries.filter(({ state }) => states.includes(state)).map(({ name }) => name);
  const [outdated, orphaned] = [names('stale', 'missing'), names('orphaned')];
  return [
    ...(outdated.length === 0 ? [] : [`npx luthier snapshot ${outdated.join(' ')}`]),
    ...(orphaned.length === 0 ? [] : [`npx luthier snapshot --remove ${orphaned.join(' ')}`]),
  ];
}

/** `2 snapshots: 1 is stale, 1 is current.` */
function summaryOf(entries: readonly Entry[]): string {
  if (entries.length === 0) {
    return 'There are no snapshots. npx luthier snapshot EXP makes the first, to be committed.';
  }
  const counts = new Map<State, number>();
  for (const { state } of entries) counts.set(state, (counts.get(state) ?? 0) + 1);
  const plural = (words: string) =>
    words.replace(/^is /, 'are ').replace(/^was /, 'were ').replace(/^has /, 'have ');
  const bad = [...counts].sort(([a], [b]) => Number(badStates.includes(b)) - Number(badStates.includes(a)));
  const parts = bad.map(([state, count]) => `${count} ${count === 1 ? said[state] : plural(said[state])}`);
  return `${counted(entries.length, 'snapshot')}: ${parts.join(', ')}.`;
}

function sectionText(entry: Entry, paint: Paint): string {
  const style = isBad(entry) ? 'red' : 'green';
  const head = `${paint('bold', entry.name)} ${paint(style, said[entry.state])}`;
  const below = [entry.problem, entry.diff.length === 0 ? undefined : diffText(entry.diff, paint)];
  return [head, ...below.filter((part) => part !== undefined)].join('\n');
}

function text(entries: readonly Entry[], paint: Paint): string {
  const sections = entries
    .filter(({ state }) => state !== 'current')
    .map((entry) => sectionText(entry, paint));
  const commands = commandsFor(entries);
  const mend = commands.length === 0 ? [] : [`To mend:\n${commands.map((line) => `  ${line}`).join('\n')}`];
  return [...sections, summaryOf(entries), ...mend].join('\n\n');
}

function sectionMarkdown(entry: Entry): string {
  const head = `${codeSpan(entry.name)} ${said[entry.state]}`;
  if (entry.problem !== undefined) return `${head}\n\n${codeBlock(entry.problem)}`;
  if (entry.diff.length === 0) return head;
  const changed = entry.diff.filter(({ kind }) => kind === 'removed' || kind === 'added').length;
  const summary = `<code>${escapeHtml(entry.name)}</code> ${said[entry.state]}: ${counted(changed, 'line')}`;
  return folded(summary, codeBlock(diffText(entry.diff), 'diff'));
}

function markdown(entries: readonly Entry[]): string {
  const sections = entries.filter(({ state }) => state !== 'current').map(sectionMarkdown);
  const commands = commandsFor(entries);
  const mend = commands.length === 0 ? [] : [`To mend:\n\n${codeBlock(commands.join('\n'), 'sh')}`];
  return [summaryOf(entries), ...sections, ...mend].join('\n\n');
}

/** The report; it fails where a snapshot is not as it should be. */
export function snapshotReport(entries: readonly Entry[]): Report {
  return {
    text: (paint) => text(entries, paint),
    json: () => ({
      ok: !entries.some(isBad),
      snapshots: entries.map(({ name, state, diff, problem }) => ({
        experiment: name,
        file: snapshotFile(name),
        state,
        ...(problem === undefined ? {} : { problem }),
        ...(diff.length === 0 ? {} : { diff: diffText(diff) }),
      })),
      commands: commandsFor(entries),
    }),
    markdown: () => markdown(entries),
    exitCode: entries.some(isBad) ? 1 : 0,
  };
}

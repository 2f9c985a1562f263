/** @file Notes on what a comparison of versions covers. */
import { join, relative } from 'node:path';
import type { Tree } from './versionTree.js';

/** Of experiments whose configs are the same. */
export const whatWasCompared =
  'Where a config is the same, the traced training step and evaluation, the update and its learning rates, what initial ' +
  'values are drawn from, decoding, and rows of the data were compared; where there is no data, the code that reads it.';

/** What a reader has to know of how the comparison was made. */
export function notesOf(changed: ReadonlySet<string>, { root, project, library }: Tree): string[] {
  const notes: string[] = [];
  const folder = relative(root, project);
  const prefix = folder === '' ? '' : `${folder}/`;
  const packages = ['package-lock.json', 'package.json', 'pnpm-lock.yaml', 'yarn.lock'].filter(
    (file) => changed.has(`${prefix}${file}`) || changed.has(file),
  );
  if (packages.length > 0) {
    notes.push(
      `${packages.join(' and ')} changed: both versions were evaluated with the packages that are installed now.`,
    );
  }
  const isChanged = (room: string): boolean => {
    const inside = `${relative(root, join(library, 'src', room))}/`;
    return [...changed].some((file) => file.startsWith(inside));
  };
  const compiler = 'programs were compared as they are traced, not what engines make of them.';
  if (isChanged('compiler')) notes.push(`The compiler changed: ${compiler}`);
  const jobs = ['programs', 'checkpoints', 'summaries'].filter(isChanged).map((room) => `src/${room}`);
  if (jobs.length > 0)
    notes.push(`${jobs.join(', ')} changed: how jobs run, save and report was not compared.`);
  return notes;
}

/** @file The committed snapshots: one text file for each experiment that has opted in. */
import { existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { basename, join, resolve, sep } from 'node:path';
import type { ConfiguredExperiment } from '../../cli/index.js';
import { classVarsText } from '../../experiment/index.js';
import { makeDirectory, writeWhole } from '../../files/index.js';
import { print } from '../../hparams/index.js';
import { UsageError } from '../../registry/usageError.js';

const folder = join('experiments', '__snapshots__');
const extension = '.txt';

/** Where the snapshot of an experiment is, from the working directory. */
export function snapshotFile(name: string): string {
  return join(folder, name + extension);
}

/** The experiments that have a snapshot, sorted. */
export function snapshotNames(): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((file) => file.endsWith(extension))
    .map((file) => basename(file, extension))
    .sort();
}

/** What the file says; undefined where there is none. Line ends are those of this system's checkout. */
export function readSnapshot(name: string): string | undefined {
  const file = snapshotFile(name);
  return existsSync(file) ? readFileSync(file, 'utf8').replaceAll('\r\n', '\n') : undefined;
}

/** @throws UsageError where the working directory is no project with experiments. */
export function writeSnapshot(name: string, text: string): void {
  if (!statSync('experiments', { throwIfNoEntry: false })?.isDirectory()) {
    throw new UsageError(
      `${resolve('.')} has no directory experiments: snapshots are made at a project's root.`,
    );
  }
  makeDirectory(resolve(folder));
  writeWhole(snapshotFile(name), text);
}

/** Takes the experiment's snapshot away, and the folder with the last of them. */
export function removeSnapshot(name: string): void {
  rmSync(snapshotFile(name));
  if (readdirSync(folder).length === 0) rmSync(folder, { recursive: true });
}

/** The snapshot of an experiment: its constants and every field of its configs, but nothing of where they were set. */
export function snapshotText({ name, experiment, configs }: ConfiguredExperiment): string {
  const constants = classVarsText(experiment);
  const text = [
    `What ${name} is. Written by: npx luthier snapshot ${name}`,
    `Constants\n${constants === '' ? 'none' : constants.trimEnd()}`,
    `Configs\n${print(configs, { tags: true })}`,
  ].join('\n\n');
  // Files of the project are in the same place on no other machine.
  return `${text.replaceAll(process.cwd() + sep, './')}\n`;
}

/** @file Descriptions of a run in its job_log_dir: experiment.json, model_params.txt, experiment_cls_vars.txt. */
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isThere, readRegularFile } from '../files/index.js';
import { type PrintOptions, print, toJSON } from '../hparams/index.js';
import { writeJobFile } from './jobDirectory.js';
import type { Machine } from './machine.js';
import type { JobOptions } from './options.js';
import { sourceRevision } from './sourceRevision.js';

/** Versions of the framework, of Node, and of the libraries that compute. */
export function versions(): Record<string, string> {
  const require = createRequire(import.meta.url);
  const own = require('../../package.json') as { version: string; dependencies: Record<string, string> };
  const { '@tensorflow/tfjs-core': tfjs } = own.dependencies;
  const onnxruntime = require('#onnxruntime/package.json') as { version: string };
  return {
    luthier: own.version,
    node: process.versions.node,
    ...(tfjs && { '@tensorflow/tfjs-core': tfjs }),
    'onnxruntime-node': onnxruntime.version,
  };
}

/** The folder of the experiment's module; for one without a file, the working directory. */
function folderOf({ moduleUrl }: JobOptions): string {
  return moduleUrl.startsWith('file:') ? dirname(fileURLToPath(moduleUrl)) : process.cwd();
}

/** The configs by their roots, without those that the experiment has none of. */
function configsOf(job: JobOptions): Record<string, unknown> {
  const { task, datasets, decodeDatasets, evalPrograms, decodePrograms, executor, inputSpecsProvider } = job;
  return {
    ...{ task, datasets: [...datasets], decodeDatasets: [...decodeDatasets] },
    ...(evalPrograms && { evalPrograms: [...evalPrograms] }),
    ...(decodePrograms && { decodePrograms: [...decodePrograms] }),
    ...(executor && { executor }),
    ...(inputSpecsProvider && { inputSpecsProvider }),
  };
}

/** The configs as `path : value` lines, with the paths of --set. */
export function describeConfigs(job: JobOptions, options: PrintOptions = {}): string {
  const named = Object.entries(configsOf(job)).flatMap(([root, value]): [string, unknown][] =>
    Array.isArray(value) ? value.map((config, i) => [`${root}[${i}]`, config]) : [[root, value]],
  );
  const lines = named.flatMap(([root, config]) =>
    print(config, options)
      .split('\n')
      .map((line) => (line.startsWith('<root>') ? line.replace('<root>', root) : `${root}.${line}`)),
  );
  return `${lines.join('\n')}\n`;
}

/** Settings in model_params.txt by path: the paths of --set, and values as text. */
export function parseSettings(text: string): Map<string, string> {
  return new Map(
    text.split('\n').flatMap((line) => {
      const at = line.indexOf(' : ');
      return at < 0 ? [] : [[line.slice(0, at), line.slice(at + 3)]];
    }),
  );
}

/** Longer values are cut in a list of changes. */
const longestValue = 60;

/** `path: old → new` for each setting that differs. */
export function settingChanges(before: string, after: string): string[] {
  const [old, present] = [parseSettings(before), parseSettings(after)];
  const shown = (value = '(absent)') =>
    value.length <= longestValue ? value : `${value.slice(0, longestValue - 1)}…`;
  return [...new Set([...old.keys(), ...present.keys()])]
    .filter((path) => old.get(path) !== present.get(path))
    .map((path) => `${path}: ${shown(old.get(path))} → ${shown(present.get(path))}`);
}

/** The next free name: experiment_1.json, experiment_2.json, … */
function freeName(jobLogDir: string): string {
  for (let count = 1; ; count++) {
    const name = `experiment_${count}.json`;
    if (!isThere(join(jobLogDir, name))) return name;
  }
}

/** Changed settings of a resumed run. */
export interface ChangedSettings {
  /** `path: old → new` */
  readonly changes: readonly string[];
  /** Name of the file that has the earlier record. */
  readonly kept: string;
}

/** Before a resumed run writes its description: keeps the earlier experiment.json where settings have changed. */
export function keepRecord(options: JobOptions): ChangedSettings | undefined {
  const { jobLogDir } = options;
  const [settings, record] = [join(jobLogDir, 'model_params.txt'), join(jobLogDir, 'experiment.json')];
  if (!isThere(settings) || !isThere(record)) return undefined;
  const changes = settingChanges(readRegularFile(settings).toString(), describeConfigs(options));
  if (changes.length === 0) return undefined;
  const kept = freeName(jobLogDir);
  writeJobFile(join(jobLogDir, kept), readRegularFile(record).toString());
  return { changes, kept };
}

/**
 * Writes the run's description. Modes other than training prefix the names (eval_model_params.txt), so that a later
 * evaluation does not overwrite the record of training.
 */
export function writeJobFiles(options: JobOptions, machine: Machine): void {
  const { jobLogDir, mode, name, overrides, classVars } = options;
  const prefix = mode.startsWith('train') ? '' : `${mode}_`;
  const experiment = {
    name,
    mode,
    // By which paths into the directory are found again once it has moved.
    directory: resolve(jobLogDir),
    overrides,
    commandLine: process.argv.slice(1),
    startedAt: new Date().toISOString(),
    versions: versions(),
    machine,
    ...sourceRevision(folderOf(options)),
    config: toJSON(configsOf(options)),
  };
  const write = (name: string, text: string) => writeJobFile(join(jobLogDir, `${prefix}${name}`), text);
  write('experiment.json', `${JSON.stringify(experiment, null, 1)}\n`);
  write('model_params.txt', describeConfigs(options));
  write('experiment_cls_vars.txt', classVars);
}

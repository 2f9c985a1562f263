/** @file `luthier codegen`: writes an experiment as a class that returns its configs. */
import { dirname, resolve } from 'node:path';
import { nonEmpty, oneOf, positive } from '../../cli/commandLine/index.js';
import { type ConfiguredExperiment, shellText } from '../../cli/index.js';
import { Experiment } from '../../experiment/index.js';
import { type CodegenClassOptions, codegenClass } from '../../hparams/index.js';
import { readSourceFile } from '../../registry/names/index.js';
import { UsageError } from '../../system/text/index.js';
import type { Arguments, Command, Report } from '../command.js';
import { configureResolved, resolveFor, written } from '../commandExperiment.js';
import { modulesFor, nearbyFiles } from './importSpecifiers.js';

/** Results of the experiment's methods, except those that equal Experiment's own. */
function valuesOf({ configs }: ConfiguredExperiment): Record<string, unknown> {
  const { task, datasets, decodeDatasets } = configs;
  return { task, datasets, ...(decodeDatasets.length === 0 ? {} : { decodeDatasets }) };
}

/** Generates the text of the file. */
async function generate(args: Arguments, out: string | undefined): Promise<{ name: string; code: string }> {
  const resolved = await resolveFor(args.positionals[0]!);
  const files = nearbyFiles(resolved.file);
  if (out !== undefined && files.includes(resolve(out))) {
    throw new UsageError(`--out=${out}: ${resolved.name} is declared in this file; give another one.`);
  }
  const configured = await configureResolved(resolved, args);
  const exported = resolved.name.split('.').at(-1)!;
  const { name: className = exported, out: _, ...style } = args.values as { name?: string; out?: string };
  const source = readSourceFile(resolved.file);
  const about = source.classes.get(source.exports.get(exported) ?? exported)?.description ?? '';
  const changes = args.changes.map((change) => ` ${shellText(change)}`).join('');
  const code = codegenClass(valuesOf(configured), {
    modules: await modulesFor(files, dirname(resolve(out ?? resolved.file))),
    baseClass: Experiment,
    className,
    fileComment: `The configs of ${resolved.name}${changes === '' ? '' : ` with${changes}`}, written out by luthier codegen.`,
    comment: about === '' ? `The configs of ${resolved.name}, without its constants.` : about,
    ...(style as Partial<CodegenClassOptions>),
  });
  return { name: resolved.name, code };
}

export const codegenCommand: Command = {
  usage: 'EXP',
  positionals: [1, 1],
  flags: {
    out: {
      key: 'out',
      value: 'FILE',
      about:
        "File to write; imports are relative to it. Without this flag, the code is printed, for the experiment's own directory.",
      parse: nonEmpty,
    },
    name: {
      key: 'name',
      value: 'CLASS',
      about: "Name of the class. Default: the name of the experiment's class.",
      parse: nonEmpty,
    },
    style: {
      key: 'style',
      value: 'STYLE',
      about:
        'nested (the default): configs contain their parts; statements: each config is a named constant with assignments.',
      parse: oneOf(['nested', 'statements']),
    },
    max_complexity: {
      key: 'maxComplexity',
      value: 'N',
      about: 'Most values in one expression; larger parts become named constants.',
      parse: positive(true),
    },
    history: {
      key: 'history',
      about: 'Adds comments with the place that set each value.',
      parse: () => true,
    },
  },
  changes: true,
  details: [
    'The file has a class that extends Experiment and returns equal configs, with the same sharing and tags.',
    '',
    '  npx luthier codegen lm.Small --set numLayers=6 --out=experiments/six.ts',
    '',
    'Exit codes: 0; 1 if the experiment cannot be loaded; 2 for a wrong command line or config, for values or classes',
    'without a form as code, or if the file cannot be written.',
  ].join('\n'),
  async run(args): Promise<Report> {
    const out = args.values.out as string | undefined;
    const { name, code } = await generate(args, out);
    if (out !== undefined) return written(name, out, code);
    return {
      text: () => code.trimEnd(),
      json: () => ({ experiment: name, code }),
    };
  },
};

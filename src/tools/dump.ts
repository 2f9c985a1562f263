/** @file `luthier dump`: prints an experiment's constants and configs. */
import { oneOf } from '../cli/commandLine/index.js';
import { type ConfiguredExperiment, jsonDocument, yamlDocument } from '../cli/index.js';
import { classVarsText } from '../experiment/index.js';
import { type PrintOptions, print, printHistory } from '../hparams/index.js';
import { showFile } from '../registry/names/index.js';
import { ownStyles } from '../system/index.js';
import { type Paint, plain, UsageError } from '../system/text/index.js';
import type { Command, Report } from './command.js';
import { configureResolved, resolveFor } from './commandExperiment.js';

const defaultForms = ['show', 'mark', 'hide'] as const;
type Defaults = (typeof defaultForms)[number];

/** Display options of the configs. */
interface Shown {
  readonly history: boolean;
  readonly defaults: Defaults | undefined;
}

function configText({ configs }: ConfiguredExperiment, { history, defaults }: Shown, paint: Paint): string {
  if (history) return printHistory(configs, defaults === 'hide' ? { defaults } : {});
  const usual: PrintOptions['defaults'] = paint === plain ? 'show' : 'dim';
  // Its values have no styles: their escapes are written out.
  return ownStyles(print(configs, { defaults: defaults ?? usual, tags: true }));
}

function text(configured: ConfiguredExperiment, file: string, shown: Shown, paint: Paint): string {
  const constants = classVarsText(configured.experiment).trimEnd();
  return [
    `${paint('bold', configured.name)} ${paint('dim', file)}`,
    `${paint('bold', 'Constants')}\n${constants === '' ? 'none' : constants}`,
    `${paint('bold', shown.history ? 'History of the configs' : 'Configs')}\n${configText(configured, shown, paint)}`,
  ].join('\n\n');
}

export const dump: Command = {
  usage: 'EXP',
  positionals: [1, 1],
  flags: {
    history: {
      key: 'history',
      about: 'Shows where each field was set, and its previous values.',
      parse: () => true,
    },
    defaults: {
      key: 'defaults',
      value: 'HOW',
      about:
        'How fields with their defaults are shown: like the others (show), marked (mark), or not at all (hide). ' +
        'Default: show, dimmed on a terminal.',
      parse: oneOf(defaultForms),
    },
  },
  changes: true,
  formats: ['yaml'],
  details: [
    '--format=json and --format=yaml write a document that --config_file loads back.',
    '',
    '  npx luthier dump lm.Small --set numLayers=6 --history',
    '  npx luthier dump lm.Small --format=yaml > small.yaml',
    '',
    'Exit codes: 0; 1 if the experiment cannot be loaded; 2 for a wrong command line or config.',
  ].join('\n'),
  async run(args): Promise<Report> {
    const name = args.positionals[0]!;
    const shown: Shown = {
      history: args.values.history === true,
      defaults: args.values.defaults as Defaults | undefined,
    };
    const isDocument = args.format === 'json' || args.format === 'yaml';
    const flag = shown.history ? '--history' : shown.defaults === undefined ? undefined : '--defaults';
    if (isDocument && flag !== undefined) {
      throw new UsageError(`${flag}: a document has no place for it; use --format=text.`);
    }
    const resolved = await resolveFor(name);
    const configured = await configureResolved(resolved, args);
    const file = showFile(resolved.file);
    return {
      text: (paint) => text(configured, file, shown, paint),
      json: () => jsonDocument(configured),
      further: { yaml: () => yamlDocument(configured).trimEnd() },
    };
  },
};

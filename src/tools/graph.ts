/** @file `luthier graph`: draws an experiment's configs. */
import { nonEmpty, oneOf, positive } from '../cli/commandLine/index.js';
import { type GraphOptions, getPath, toDot, toSvg } from '../hparams/index.js';
import type { Arguments, Command, Report } from './command.js';
import { configureResolved, resolveFor, written } from './commandExperiment.js';

type Kind = 'svg' | 'dot';
type Drawn = GraphOptions & { readonly out?: string; readonly at?: string; readonly dot?: true };

function kindOf({ values }: Arguments): Kind {
  return values.dot === true || /\.(dot|gv)$/.test(String(values.out ?? '')) ? 'dot' : 'svg';
}

export const graph: Command = {
  usage: 'EXP',
  positionals: [1, 1],
  flags: {
    out: {
      key: 'out',
      value: 'FILE',
      about:
        'File to write; .dot and .gv are in the DOT language. Without this flag, the picture is printed.',
      parse: nonEmpty,
    },
    at: {
      key: 'at',
      value: 'PATH',
      about: 'Draws only the config at this path, such as task.model.lmTpl or datasets[0].',
      parse: nonEmpty,
    },
    dot: { key: 'dot', about: "Writes Graphviz's DOT language instead of SVG.", parse: () => true },
    depth: {
      key: 'maxDepth',
      value: 'N',
      about: 'Draws configs up to N steps from the first; those beyond are only named.',
      parse: positive(true),
    },
    defaults: {
      key: 'defaults',
      value: 'HOW',
      about:
        'How fields with their defaults are shown: grey, with sub-configs only named (dim, the default), ' +
        'not at all (hide), or like the others (show).',
      parse: oneOf(['dim', 'hide', 'show']),
    },
    direction: {
      key: 'direction',
      value: 'WAY',
      about: 'Direction of the arrows: LR (the default), TB, RL or BT.',
      parse: oneOf(['LR', 'TB', 'RL', 'BT']),
    },
    length: {
      key: 'maxStringLength',
      value: 'N',
      about: 'Truncates names and values to N characters. Default: 40.',
      parse: positive(true),
    },
  },
  changes: true,
  details: [
    '  npx luthier graph lm.Small --out=small.svg',
    '  npx luthier graph lm.Small --at=task.model --defaults=hide --dot | dot -Tpdf > model.pdf',
    '',
    'Exit codes: 0; 1 if the experiment cannot be loaded; 2 for a wrong command line or config, or if the file cannot',
    'be written.',
  ].join('\n'),
  async run(args): Promise<Report> {
    const { out, at, dot: _, ...options } = args.values as Drawn;
    const resolved = await resolveFor(args.positionals[0]!);
    const { configs } = await configureResolved(resolved, args);
    const root = at === undefined ? configs : getPath(configs, at);
    const kind = kindOf(args);
    const picture = kind === 'dot' ? toDot(root, options) : await toSvg(root, options);
    if (out !== undefined) return written(resolved.name, out, picture);
    return {
      text: () => picture.trimEnd(),
      json: () => ({ experiment: resolved.name, at: at ?? '', [kind]: picture }),
    };
  },
};

/** @file `luthier graph`: a picture of an experiment's configs. */
import { nonEmpty, oneOf, positive } from '../cli/flagTable.js';
import { type GraphOptions, getPath, toDot, toSvg } from '../hparams/index.js';
import type { Arguments, Command, Report } from './command.js';
import { configureResolved, resolveFor, written } from './commandExperiment.js';
import { codeBlock, codeSpan } from './reportFormat.js';

const kinds = ['svg', 'dot'] as const;
type Kind = (typeof kinds)[number];

function optionsOf({ values }: Arguments): GraphOptions {
  const { defaults, maxDepth, maxStringLength, direction } = values as GraphOptions;
  return {
    ...(defaults === undefined ? {} : { defaults }),
    ...(maxDepth === undefined ? {} : { maxDepth }),
    ...(maxStringLength === undefined ? {} : { maxStringLength }),
    ...(direction === undefined ? {} : { direction }),
  };
}

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
        'Where to write the picture: in the DOT language where it ends in .dot or .gv. Without it, it is printed.',
      parse: nonEmpty,
    },
    at: {
      key: 'at',
      value: 'PATH',
      about: 'Draws the config at this path (task.model.lmTpl, datasets[0]), not all of them.',
      parse: nonEmpty,
    },
    dot: { key: 'dot', about: "Writes Graphviz's DOT language, not SVG.", parse: () => true },
    depth: {
      key: 'maxDepth',
      value: 'N',
      about: 'Names, but does not draw, configs that are more than N steps from the first.',
      parse: positive(true),
    },
    defaults: {
      key: 'defaults',
      value: 'HOW',
      about:
        'How fields show that nobody set: grey, with sub-configs named but not drawn (dim, the default), ' +
        'not at all (hide), or like the others (show).',
      parse: oneOf(['dim', 'hide', 'show']),
    },
    direction: {
      key: 'direction',
      value: 'WAY',
      about: 'Which way the arrows point: LR, the default, TB, RL or BT.',
      parse: oneOf(['LR', 'TB', 'RL', 'BT']),
    },
    length: {
      key: 'maxStringLength',
      value: 'N',
      about: 'Cuts longer names and values to N characters. Default: 40.',
      parse: positive(true),
    },
  },
  changes: true,
  details: [
    '  npx luthier graph lm.Small --out=small.svg',
    '  npx luthier graph lm.Small --at=task.model --defaults=hide --dot | dot -Tpdf > model.pdf',
    '',
    'Exit codes: 0; 1 where the experiment cannot be loaded; 2 for a wrong command line or config, and where the file',
    'cannot be written.',
  ].join('\n'),
  async run(args): Promise<Report> {
    const { out, at } = args.values as { out?: string; at?: string };
    const resolved = await resolveFor(args.positionals[0]!);
    const { configs } = configureResolved(resolved, args);
    const root = at === undefined ? configs : getPath(configs, at);
    const kind = kindOf(args);
    const picture = kind === 'dot' ? toDot(root, optionsOf(args)) : await toSvg(root, optionsOf(args));
    if (out !== undefined) return written(resolved.name, out, picture);
    return {
      text: () => picture.trimEnd(),
      json: () => ({ experiment: resolved.name, at: at ?? '', [kind]: picture }),
      markdown: () => `### ${codeSpan(resolved.name)}\n\n${codeBlock(picture, kind)}`,
    };
  },
};

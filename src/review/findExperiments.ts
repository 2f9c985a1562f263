/** @file Experiments of the working tree that source text does not tell, found by loading their modules. */
import { realpathSync } from 'node:fs';
import type { Scan } from '../registry/names/index.js';
import { Evaluator, type Limits } from './versions/evaluators.js';
import { experimentsByLoading } from './versions/loadedExperiments.js';
import { treeAt } from './versions/versionTree.js';

/**
 * A scan with the experiments among its unclassified exports, each `isLoaded`; modules that fail to load are problems. The
 * modules are loaded in a process of their own, within the limits.
 */
export async function withLoaded(scan: Scan, limits: Limits): Promise<Scan> {
  const { experiments: told, unclassified, problems } = scan;
  if (unclassified.length === 0) return scan;
  const root = realpathSync(process.cwd());
  const tree = treeAt(root, { root, project: root });
  const evaluator = new Evaluator(tree, 'the working tree', tree, limits);
  try {
    const { experiments, failures } = await experimentsByLoading({
      evaluator,
      unclassified,
      project: tree.project,
    });
    const names = new Set(told.map(({ name }) => name));
    // A syntax error is told already, with its line.
    const unread = new Set(problems.map(({ file }) => file));
    const found = experiments.filter(({ name }) => !names.has(name));
    return {
      experiments: [...told, ...found.map((each) => ({ ...each, isLoaded: true as const }))].sort((a, b) =>
        a.name < b.name ? -1 : 1,
      ),
      unclassified: [],
      problems: [
        ...problems,
        ...failures
          .filter(({ file }) => !unread.has(file))
          .map(({ file, failure }) => ({ file, message: `It fails to load: ${failure.message}` })),
      ],
    };
  } finally {
    await evaluator.end();
  }
}

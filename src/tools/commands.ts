/** @file Table of the `luthier` commands, each loaded on demand. */
import type { Command } from './command.js';

/** A command before it is loaded. */
interface CommandEntry {
  /** One sentence for the list of commands, which is shown without loading them. */
  readonly about: string;
  readonly load: () => Promise<Command>;
}

/** In the order of --help. */
export const commands: Readonly<Record<string, CommandEntry>> = {
  list: {
    about: 'Lists the experiments: where they stand, what they extend, what they set themselves.',
    load: async () => (await import('./list/index.js')).list,
  },
  dump: {
    about: 'Shows the constants and the configs of an experiment, where each was set, or a document of them.',
    load: async () => (await import('./dump.js')).dump,
  },
  diff: {
    about: 'Shows what makes one experiment another, or what a change of the code does to experiments.',
    load: async () => (await import('./diff/index.js')).diff,
  },
  validate: {
    about: 'Checks experiments: constants, configs, shapes of a training step, at will one real step.',
    load: async () => (await import('./validate/index.js')).validate,
  },
  analyze: {
    about: 'Shows the layers of an experiment, and what a training step costs, without allocating anything.',
    load: async () => (await import('./analysis/index.js')).analyzeCommand,
  },
  codegen: {
    about: 'Writes an experiment out as a file of its own, whose class returns the same configs.',
    load: async () => (await import('./codegen/index.js')).codegenCommand,
  },
  graph: {
    about: "Draws an experiment's configs, as SVG or for Graphviz.",
    load: async () => (await import('./graph.js')).graph,
  },
  rename: {
    about: 'Renames a hyperparameter or a constant everywhere, and keeps the old name readable.',
    load: async () => (await import('./rename/index.js')).renameField,
  },
  'rename-class': {
    about: 'Renames a configurable class or an experiment everywhere, and keeps the old name readable.',
    load: async () => (await import('./rename/index.js')).renameClass,
  },
  snapshot: {
    about: 'Writes what experiments are into committed text files, or checks that those are current.',
    load: async () => (await import('./snapshot/index.js')).snapshot,
  },
  cache: {
    about: 'Lists what the native engine has compiled on this machine, or removes it.',
    load: async () => (await import('./cache.js')).cache,
  },
};

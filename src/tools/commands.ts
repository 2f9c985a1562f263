/** @file Table of the `luthier` commands, each loaded on demand. */
import type { Command } from './command.js';

/** A command that is not loaded yet. */
interface CommandEntry {
  /** One sentence for the list of commands, which loads none of them. */
  readonly about: string;
  readonly load: () => Promise<Command>;
}

/** Commands in --help order. */
export const commands: Readonly<Record<string, CommandEntry>> = {
  init: {
    about:
      'Creates a project in this folder: a first experiment, its test, settings, the review of pull requests.',
    load: async () => (await import('./init/index.js')).init,
  },
  serve: {
    about: "Serves a trained model over HTTP; language models by OpenAI's API.",
    load: async () => (await import('./trained/serve.js')).serveCommand,
  },
  import: {
    about: 'Writes a published model, such as those of the Hugging Face hub, as the directory of a run.',
    load: async () => (await import('./trained/importRun.js')).importCommand,
  },
  export: {
    about: 'Writes a trained model as an ONNX file, or for transformers, PEFT or llama.cpp.',
    load: async () => (await import('./trained/exportRun.js')).exportCommand,
  },
  quantize: {
    about: 'Writes a trained run with weights in 8 or 4 bits, and shows what that changes.',
    load: async () => (await import('./trained/quantizeCommand.js')).quantizeCommand,
  },
  generate: {
    about: 'Continues prompts with a trained language model.',
    load: async () => (await import('./trained/generate.js')).generate,
  },
  evaluate: {
    about: 'Evaluates a trained language model on tasks: multiple choice, perplexity, generated answers.',
    load: async () => (await import('./trained/evaluateRun.js')).evaluateCommand,
  },
  runs: {
    about: 'Compares runs by a metric, and shows differences of their configs.',
    load: async () => (await import('./runs.js')).runs,
  },
  metrics: {
    about: 'Prints the metrics of runs by step: as a table, CSV, JSON Lines or Parquet.',
    load: async () => (await import('./metricsCommand.js')).metricsCommand,
  },
  study: {
    about: 'Shows the trials of a search as a table or a picture, and differences between two.',
    load: async () => (await import('./studyCommand.js')).studyCommand,
  },
  ladder: {
    about: 'Fits the law of the losses of a scaling study, and predicts the loss of the next size.',
    load: async () => (await import('./ladderCommand.js')).ladderCommand,
  },
  list: {
    about: 'Lists experiments with their file, base class and own constants.',
    load: async () => (await import('./list/index.js')).list,
  },
  dump: {
    about: "Prints an experiment's constants and configs, with the place that set each, or as a document.",
    load: async () => (await import('./dump.js')).dump,
  },
  diff: {
    about: 'Compares two experiments, or all experiments with those of a git revision.',
    load: async () => (await import('./diff.js')).diff,
  },
  validate: {
    about:
      'Checks experiments: constants, configs, shapes of a training step and, on request, one real step.',
    load: async () => (await import('./validate/index.js')).validate,
  },
  inspect: {
    about:
      'Shows examples of a dataset, decoded, with statistics; checks that the shards of hosts are disjoint and complete.',
    load: async () => (await import('./inspect/index.js')).inspectCommand,
  },
  'cache-task': {
    about: "Preprocesses a dataset's tasks once, into files that its input then reads.",
    load: async () => (await import('./cacheTask/index.js')).cacheTask,
  },
  analyze: {
    about:
      "Shows an experiment's layers and the cost of a training step, without allocating memory for them.",
    load: async () => (await import('./analyze/index.js')).analyzeCommand,
  },
  mesh: {
    about: 'Plans a training on meshes of devices: memory, time and MFU of each mesh that divides the model.',
    load: async () => (await import('./mesh/index.js')).meshCommand,
  },
  codegen: {
    about: 'Writes a self-contained experiment file whose class returns the same configs.',
    load: async () => (await import('./codegen/index.js')).codegenCommand,
  },
  graph: {
    about: "Draws an experiment's configs as SVG, or in the DOT language of Graphviz.",
    load: async () => (await import('./graph.js')).graph,
  },
  rename: {
    about:
      'Renames a hyperparameter or constant in the whole project; saved files with the old name still load.',
    load: async () => (await import('./rename/index.js')).renameField,
  },
  'rename-class': {
    about:
      'Renames a configurable class or experiment in the whole project; saved files with the old name still load.',
    load: async () => (await import('./rename/index.js')).renameClass,
  },
  snapshot: {
    about:
      'Writes the constants and configs of experiments to text files to be committed, or checks these files.',
    load: async () => (await import('./snapshot/index.js')).snapshot,
  },
  tokenizer: {
    about: "Learns a vocabulary from text files, or shows a text's tokens.",
    load: async () => (await import('./tokenizer/index.js')).tokenizer,
  },
  cache: {
    about: "Lists or clears the native engine's cache of compiled programs.",
    load: async () => (await import('./cache.js')).cache,
  },
};

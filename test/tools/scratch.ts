/** @file A project of a user's own, in a temporary directory, that imports this library by its name. */
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { temporaryDirectory } from '../command.js';

const repository = fileURLToPath(new URL('../..', import.meta.url));

/** Makes a project of these files, by their paths in it. */
export function scratchProject(files: Readonly<Record<string, string>>): string {
  const directory = temporaryDirectory();
  writeFiles(directory, { 'package.json': '{ "type": "module" }\n', ...files });
  mkdirSync(join(directory, 'node_modules'), { recursive: true });
  symlinkSync(repository, join(directory, 'node_modules/luthier'));
  symlinkSync(join(repository, 'node_modules/zod'), join(directory, 'node_modules/zod'));
  return directory;
}

/** Writes files by their paths in the directory. */
export function writeFiles(directory: string, files: Readonly<Record<string, string | Uint8Array>>): void {
  for (const [path, contents] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    writeFileSync(join(directory, path), contents);
  }
}

/** An experiment with classes of its own, one of them from another file, and a dataset that is decoded, too. */
export const ownClasses = {
  'experiments/parts.ts': `\
import { ByteTokenizer } from 'luthier';

/** Reads bytes in a way of its own. */
export class OwnTokenizer extends ByteTokenizer {}
`,
  'experiments/own.ts': `\
import { z } from 'zod';
import { Adam, type BaseInput, type Config, Experiment, gpt2Lm, LanguageModel, Learner, SingleTask, TextInput, Train } from 'luthier';
import { OwnTokenizer } from './parts.js';

export class OwnModel extends LanguageModel {}

/** Reads with what the project brings. It's "special": \`*\\/\` ends no comment. */
export class Own extends Experiment.with({
  steps: z.int().positive().default(10).describe('Training steps.'),
}) {
  readonly #text = TextInput.config({ name: 'text', files: ['a.txt'], tokenizer: OwnTokenizer.config() });

  override task() {
    const lmTpl = gpt2Lm({ vocabSize: 256, modelDims: 8, numLayers: 1, numHeads: 2, maxSeqLength: 32 });
    const learner = Learner.config({ optimizer: Adam.config() });
    return SingleTask.config({
      model: OwnModel.config({ lmTpl }),
      train: Train.config({ learner, numTrainSteps: this.steps }),
    });
  }

  override datasets(): Config<BaseInput>[] {
    return [this.#text];
  }

  override decodeDatasets(): Config<BaseInput>[] {
    return [this.#text];
  }
}
`,
} as const;

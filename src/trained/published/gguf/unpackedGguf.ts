/** @file A GGUF file as the folder that Hugging Face publishes such a model in, without its weights. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { GgufFile } from '../../../checkpoints/index.js';
import { writeWhole } from '../../../files/index.js';
import type { NameRules } from '../../../models/index.js';
import { ggufSettings } from './ggufSettings.js';
import { tokenizerFiles } from './ggufTokenizer.js';

/** Whether a path is that of a GGUF file. */
export const isGguf = (path: string): boolean => path.endsWith('.gguf');

/** A folder with config.json, tokenizer.json and others, for as long as it is needed. */
export interface UnpackedGguf {
  readonly folder: string;
  /** Names of the tensors in the file. */
  readonly names: NameRules;
  remove(): void;
}

/**
 * Writes the texts of a file into a folder of the system's for temporary files.
 *
 * @param ignored keys that may be passed over. @throws ConfigError for a model that has no counterpart; CheckpointError for a file
 *   that can't be read
 */
export function unpackGguf(path: string, ignored: readonly string[]): UnpackedGguf {
  const file = new GgufFile(path);
  try {
    const { architecture, settings } = ggufSettings(file, ignored);
    const texts = { 'config.json': configText(settings), ...tokenizerFiles(file) };
    const folder = mkdtempSync(join(tmpdir(), 'luthier-gguf-'));
    for (const [name, text] of Object.entries(texts)) writeWhole(join(folder, name), text);
    return {
      folder,
      names: architecture.names,
      remove: () => rmSync(folder, { recursive: true, force: true }),
    };
  } finally {
    file.close();
  }
}

/** Numbers that transformers expects with a point. */
const FLOATS = /("(?:rope_theta|\w*factor)": \d+)(?=[,\n])/g;

const configText = (settings: object): string =>
  `${JSON.stringify(settings, null, 2).replaceAll(FLOATS, '$1.0')}\n`;

/** @file The kinds of files whose mutants are read, by the names that processes are told. */
import { arrow } from './arrow.js';
import { safetensors } from './checkpoints.js';
import { csv } from './csv.js';
import type { MutantKind } from './mutantKind.js';
import { parquet } from './parquet.js';
import { jpegFiles, png } from './pictures.js';
import { sounds } from './sounds.js';
import { tfRecord } from './tfRecord.js';
import { tokenizers } from './tokenizers.js';

export const kinds: readonly MutantKind[] = [
  ...[arrow, csv, parquet, tfRecord],
  ...[png, jpegFiles, sounds, safetensors, tokenizers],
];

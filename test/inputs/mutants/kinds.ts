/** @file The kinds of files whose mutants are read, by the names that processes are told. */
import { arrow } from './arrow.js';
import { csv } from './csv.js';
import type { MutantKind } from './mutantKind.js';
import { parquet } from './parquet.js';
import { tfRecord } from './tfRecord.js';

export const kinds: readonly MutantKind[] = [arrow, csv, parquet, tfRecord];

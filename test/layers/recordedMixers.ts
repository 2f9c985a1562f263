/** @file Outputs of mixers in transformers, which scripts/record_mixers.py recorded. */
import { readFileSync } from 'node:fs';

interface Recorded {
  readonly parameters: Readonly<Record<string, number[]>>;
  readonly outputs: number[];
}

/** By the name that the script gives a mixer. */
export const recorded = JSON.parse(
  readFileSync(new URL('../fixtures/mixers.json', import.meta.url), 'utf8'),
) as Readonly<Record<string, Recorded>>;

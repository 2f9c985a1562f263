/** @file Pictures of changed configs: an SVG file for each experiment. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildDiff, diffToSvg } from '../../hparams/index.js';
import { display } from '../changes/display.js';
import type { MadeExperiment } from '../versions/protocol.js';

/** Writes `lm.Small.svg` for an experiment whose configs differ: removals are red, additions green. */
export async function drawDiff(folder: string, old: MadeExperiment, now: MadeExperiment): Promise<void> {
  const shown = display(old.config, now.config);
  const svg = await diffToSvg(buildDiff(shown.old.root, shown.now.root));
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${encodeURIComponent(now.name)}.svg`), svg);
}

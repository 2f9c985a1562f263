/** @file Check that the runs of a sweep differ in their configs. */
import { createHash } from 'node:crypto';
import type { ExperimentConfigs } from '../experiment/index.js';
import { formatPath, history, iterate, print } from '../hparams/index.js';
import { UsageError } from '../system/text/index.js';

import type { Change } from './overrides.js';

/** Memory of the configs that a sweep's runs have, to tell two that are equal. */
export class DistinctRuns {
  private readonly names = new Map<string, string>();

  constructor(private readonly changes: readonly Change[]) {}

  /** @throws UsageError where an earlier run has equal configs; it names the flag that overrides the sweep, if one does. */
  add(name: string, configs: ExperimentConfigs): void {
    // Fields without a value differ in nothing; a digest, for a sweep may have ten thousand runs.
    const digest = createHash('sha256')
      .update(print(configs, { unset: false }))
      .digest('base64');
    const earlier = this.names.get(digest);
    if (earlier === undefined) this.names.set(digest, name);
    else {
      throw new UsageError(
        `The runs ${earlier} and ${name} of the sweep have the same configs. ${this.reason(configs)}`,
      );
    }
  }

  private reason(configs: ExperimentConfigs): string {
    const sweeps = new Set(this.changes.filter(({ kind }) => kind === 'sweep').map(({ origin }) => origin));
    for (const { config, path } of iterate(configs, { defaults: true })) {
      const swept = new Map<string, string>();
      for (const { field, where } of history(config)) {
        const sweep = swept.get(field);
        if (sweep !== undefined && where !== sweep) {
          return `${where} overrides ${formatPath([...path, field])}, which ${sweep} sets: leave one out.`;
        }
        if (where !== undefined && sweeps.has(where)) swept.set(field, where);
      }
    }
    return `The values of ${[...sweeps].join(' ')} are equal, overridden by another flag, or not read.`;
  }
}

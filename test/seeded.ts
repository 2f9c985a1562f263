/** @file Seed of property-based tests: SEED=n draws the same cases in each run. */

const { SEED } = process.env;
if (SEED !== undefined) (await import('fast-check')).configureGlobal({ seed: Number(SEED) });

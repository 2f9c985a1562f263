/** @file Campaigns of random programs as assertions: the least of those that differ is what a failure tells. */
import { expect } from 'vitest';
import { type Campaign, campaign, type Outcome, smallest } from './campaign.js';

/** Runs a campaign, and fails with the fewest steps that still differ by more than `tolerance`. */
export async function expectAgreement(plan: Campaign, tolerance: number): Promise<Outcome[]> {
  const results = await campaign(plan);
  const failures = results.filter(({ difference }) => difference > tolerance);
  if (failures.length > 0) {
    const shortest = failures.reduce((a, b) => (b.steps.length < a.steps.length ? b : a));
    const { steps, difference, error } = await smallest(shortest, plan, tolerance);
    expect.fail(
      `${failures.length} of ${results.length} programs differ. The least, by ${difference} of its largest element: ` +
        `${JSON.stringify(steps)} (seed ${plan.seed})${error === undefined ? '' : `: ${error}`}`,
    );
  }
  return results;
}

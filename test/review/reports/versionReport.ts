/** @file Comparisons of a test repository's working tree with `main`. */
import { expect } from 'vitest';
import { compareVersions, type VersionsRequest } from '../../../src/review/compareVersions.js';
import type { DiffReport } from '../../../src/review/reports/diffReport.js';
import type { TestRepository } from '../repository.js';

/** The report; what the user has must be as it was. */
export async function diff(
  { folder, state }: TestRepository,
  request: Partial<VersionsRequest> = {},
): Promise<DiffReport> {
  const before = state();
  const asked = { project: folder, base: 'main', exact: false, name: undefined, changes: [] };
  const whole = { ...asked, limits: { seconds: 60, gigabytes: 4 }, ...request };
  const report = await compareVersions(whole);
  expect(state()).toBe(before);
  return report;
}

/** A report without what differs from run to run, or from version to version of the library. */
export function settled(text: string): string {
  return (
    text
      .replace(/\([0-9a-f]{7}\)/, '(abc1234)')
      .replace(/[0-9a-f]{7} of \d{4}-\d\d-\d\d/g, 'abc1234 of DATE')
      // Rooms may be bundles, of whose classes nobody knows the places.
      .replace(/(luthier\/src\/\w+)\/[\w/]+\.[jt]s:\d+/g, '$1')
  );
}

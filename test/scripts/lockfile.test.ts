/** @file The lockfile: packages that run on the Node that package.json asks for. */
import { readFileSync } from 'node:fs';
import { minVersion, satisfies } from 'semver';
import { expect, test } from 'vitest';

/** What is read of a lockfile's package. */
interface Locked {
  readonly version?: string;
  readonly engines?: { readonly node?: string };
}

const { engines } = JSON.parse(readFileSync('package.json', 'utf8'));
const lockfile = JSON.parse(readFileSync('package-lock.json', 'utf8')) as {
  readonly packages: Readonly<Record<string, Locked>>;
};

// npm warns of one that does not; yarn installs nothing.
test('every package of the lockfile runs on the oldest Node that is promised', () => {
  const oldest = minVersion(engines.node)!;
  expect(String(oldest)).toBe('20.19.0');
  const packages = Object.entries(lockfile.packages);
  expect(packages.filter(([, { engines }]) => engines?.node !== undefined).length).toBeGreaterThan(100);
  const others = packages.filter(([, { engines }]) => !satisfies(oldest, engines?.node ?? '*'));
  expect(others.map(([path, { version, engines }]) => `${path} ${version}: ${engines!.node}`)).toEqual([]);
});

/** @file Suites of every day that the long run has, too: for their repetitions or for their long tests, not both. */
import { readFileSync } from 'node:fs';
import { globSync } from 'tinyglobby';
import { expect, test } from 'vitest';

test('no suite repeats cases beside long tests, which would be all that the long run has of it', () => {
  const both = globSync('test/**/*.test.ts').filter((file) => {
    const text = readFileSync(file, 'utf8');
    const repeats = /^import \{[^}]*\b(runs|firstOf)\b[^}]*\} from '.*\/faults\/campaign\.js';$/m.test(text);
    return repeats && /^import \{ longTest \} from /m.test(text);
  });
  expect(both).toEqual([]);
});

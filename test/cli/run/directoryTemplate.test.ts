/** @file Templates of run directories. */
import { expect, test } from 'vitest';
import { directoryOf } from '../../../src/cli/run/directoryTemplate.js';

test('a directory may be named after the experiment, the date and the time', () => {
  const now = new Date(2026, 0, 5, 7, 8, 9);
  expect(directoryOf('out/{exp}/{date}_{time}', 'lm.Small', now)).toBe('out/lm.Small/2026-01-05_07-08-09');
  expect(directoryOf('out/a{b', 'lm.Small', now)).toBe('out/a{b');
  expect(() => directoryOf('out/{expp}', 'lm.Small')).toThrow(
    "--job_log_dir=out/{expp}: no '{expp}'. Did you mean 'exp'? A directory's name may have {exp}, {date}, {time}.",
  );
});

/** @file The public API: what fromJSON and --set know classes by. */
import { expect, test } from 'vitest';
import { Configurable } from '../src/hparams/index.js';
import * as luthier from '../src/index.js';

test('every class of configs has the name that it is exported by, so that no two have one name', () => {
  const classes = Object.entries(luthier as Record<string, unknown>).filter(
    ([, value]) => typeof value === 'function' && value.prototype instanceof Configurable,
  );
  expect(classes.length).toBeGreaterThan(50);
  expect(classes.map(([, value]) => (value as { name: string }).name)).toEqual(classes.map(([name]) => name));
});

/** @file Rules across fields, hooks, and what validate and build say when they do not hold. */
import { expect, test } from 'vitest';
import { z } from 'zod';
import {
  build,
  type Config,
  type ConfigError,
  Configurable,
  copy,
  derive,
  factory,
  instance,
  type Report,
  sub,
  validate,
} from '../../src/hparams/index.js';
import { messageOf } from './support.js';

class Attention extends Configurable.with(
  {
    modelDims: z.int().positive(),
    numHeads: z.int().positive().default(8),
    biases: z.array(z.number()).default([]),
  },
  (schema) =>
    schema
      .refine(({ modelDims, numHeads }) => modelDims % numHeads === 0, {
        path: ['numHeads'],
        error: 'must divide modelDims',
      })
      .superRefine(({ biases }, context) => {
        for (const [i, bias] of biases.entries()) {
          if (bias < 0)
            context.addIssue({ code: 'custom', path: ['biases', i], message: 'must not be negative' });
        }
      }),
) {}
class Windowed extends Attention.with({ window: z.int().default(4) }, (schema) =>
  schema.refine(({ window, modelDims }) => window <= modelDims, {
    error: 'the window is wider than the model',
  }),
) {}
class Block extends Configurable.with({
  attention: instance(Attention),
  more: z.record(z.string(), instance(Attention)).default({}),
  tpl: sub(Attention),
}) {}

test('a rule that does not hold names the path, the values and where they were set', () => {
  const config = Block.config({ attention: Attention.config({ modelDims: 10 }) });
  expect(messageOf(() => build(config))).toMatch(
    /^The config is not valid: attention\.numHeads \(Attention\): must divide modelDims; modelDims is 10 \(at test\/hparams\/rules\.test\.ts:\d+\), numHeads is 8 \(the default\)\.$/,
  );
  config.attention.numHeads = 5;
  expect(validate(config)).toEqual([]);
  expect(build(config).hp.attention.hp.numHeads).toBe(5);
});

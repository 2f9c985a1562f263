/** @file A class, and a function, whose names another module has, too. */
import { z } from 'zod';
import { Configurable, configurable } from '../../../../src/hparams/index.js';

export class Twin extends Configurable.with({ size: z.int().default(1) }) {}

export const scale = configurable(
  function scale({ by }: { by: number }) {
    return 2 * by;
  },
  { by: z.number().default(1) },
);

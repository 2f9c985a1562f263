/** @file A class, and a function, whose names another module has, too; and one that is called as a layer is. */
import { z } from 'zod';
import { Configurable, configurable } from '../../../../src/hparams/index.js';
import { Linear as LayerLinear } from '../../../../src/layers/index.js';

class Base extends Configurable.with({ size: z.int().default(1) }) {}

export class Twin extends Base {}

export const scale = configurable(
  function scale({ by }: { by: number }) {
    return 3 * by;
  },
  { by: z.number().default(1) },
);

export class Linear extends LayerLinear {}

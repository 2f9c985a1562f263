import { z } from 'zod';
import {
  Configurable,
  defineTag,
  factory,
  instance,
  sub,
  type Tag,
  tagged,
} from '../../src/hparams/index.js';
import { messageOf } from './support.js';

export const rate = defineTag('tags.rate', 'Step sizes of optimizers.');
export const decay = defineTag('tags.decay', 'Step sizes that shrink weights.', { parent: rate });
export const dtype = defineTag('tags.dtype', 'Number formats.');
export const size = defineTag('tags.size', 'Sizes of layers.');

export class Optimizer extends Configurable.with({
  rate: tagged(z.number().positive(), rate).describe('How far a step goes.').default(0.1),
  decay: tagged(z.number().min(0), decay).optional(),
  steps: z.int().default(1),
}) {}
export class Layer extends Configurable.with({
  width: z.int().positive().optional(),
  rates: z.array(z.number().positive()).default([]),
  byName: z.record(z.string(), z.number()).default({}),
  pair: z.object({ low: z.number(), high: z.number().default(1) }).optional(),
  names: z.map(z.string(), z.number()).optional(),
  either: z.union([z.literal('none'), z.array(z.int())]).default('none'),
  optimizer: instance(Optimizer),
  templates: z.array(sub(Optimizer)).default([]),
  parts: z.array(instance(Optimizer)).default([]),
  make: factory(Optimizer).optional(),
  data: z.any().optional(),
}) {}

export const names = (tags: readonly Tag[]): string[] => tags.map((tag) => tag.name);
export const nameOnly = (action: () => unknown): string => messageOf(action).replace(/ \(at [^()]*\)$/, '');

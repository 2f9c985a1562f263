/** @file The class of carriers: values that have tags of their own, for places in arrays, records and the like. */
import { z } from 'zod';
import { Configurable } from '../configurable.js';
import { CARRIER, infoOf } from '../fields/fields.js';
import type { Tag } from '../types.js';
import { newConfig } from './config.js';
import type { ConfigNode, Origin } from './configNode.js';
import { fieldTags, nodeOf, writeField, writeTags } from './node.js';

/** Stands for its value: `build` unwraps it, reading the container that holds it gives the value. */
class TaggedValue extends Configurable.with({ value: z.any() }) {
  static readonly [CARRIER] = true;
}

const info = infoOf(TaggedValue);
const field = info.fields.get('value')!;

/** A carrier of tags and a value; without `value`, of tags alone. */
export function newCarrier(tags: readonly Tag[], value: readonly [unknown?], origin: Origin): ConfigNode {
  const node = nodeOf(newConfig(info, 'config'))!;
  if (value.length > 0) writeField(node, 'value', value[0], origin);
  writeTags(node, field, [...fieldTags(node, field), ...tags], origin);
  return node;
}

/**
 * @file Rejection of tfjs's random operations in traces: they draw on the host, so every run would repeat the same
 * numbers.
 */

import { CompilerError } from './tensors.js';
import * as tf from './tfjs.js';

/** Replacements, by tfjs operation. */
const INSTEAD: Readonly<Record<string, string>> = {
  dropout: 'ops.dropout(x, key, keepProb)',
  rand: 'ops.randomUniform(key, shape)',
  randomUniform: 'ops.randomUniform(key, shape)',
  randomUniformInt: 'ops.randomInt(key, shape, low, high)',
  randomNormal: 'ops.randomNormal(key, shape)',
  randomStandardNormal: 'ops.randomNormal(key, shape)',
  truncatedNormal: 'ops.truncatedNormal(key, shape)',
  randomGamma: 'ops.randomUniform(key, shape)',
  multinomial: 'tf.transpose(ops.categorical(key, logits, [numSamples, batch]))',
};

/** tfjs opens a scope of this name around each operation. */
const NAME = /^(\w+)__op$/;

/** Makes tfjs's engine reject its random operations while tracing. Called once. */
export function refuseHostDraws(isTracing: () => boolean): void {
  const engine = tf.engine();
  const original = engine.startScope.bind(engine);
  engine.startScope = (name) => {
    const op = NAME.exec(name ?? '')?.[1] ?? '';
    if (Object.hasOwn(INSTEAD, op) && isTracing()) {
      throw new CompilerError(
        `tf.${op} draws once, while the function is traced, and every run would have the same numbers. ` +
          `Call ${INSTEAD[op]}, with a key int32 [2] that the function is given, or that ops.foldIn or ops.splitKey makes of one.`,
      );
    }
    original(name);
  };
}

/**
 * @file tfjs's random operations in traces: they draw on the host, so every run would repeat the same numbers. Where the
 * program has a key of its own, they draw from that; elsewhere they are refused.
 */

import { CompilerError } from '../program/tensors.js';
import * as tf from '../tfjs/tfjs.js';
import { catchDraw, type Drawer, isDistribution, releaseDraw } from './caughtDraws.js';

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

/** Operations that call those which draw. */
const CALLING: ReadonlySet<string> = new Set(['dropout', 'randomStandardNormal', 'randomUniformInt']);

/** Draws from the key of the function that is being traced, where it has one. */
let drawer: Drawer | null = null;

/** Traces `f` with its random operations drawn by `own`. */
export function withDrawer<T>(own: Drawer, f: () => T): T {
  const outer = drawer;
  drawer = own;
  try {
    return f();
  } finally {
    drawer = outer;
  }
}

/** Makes tfjs's engine draw from the program's key, or else reject its random operations, while tracing. Called once. */
export function replaceHostDraws(isTracing: () => boolean): void {
  const engine = tf.engine();
  const [start, end] = [engine.startScope.bind(engine), engine.endScope.bind(engine)];
  engine.endScope = (result) => {
    // An operation that throws ends without a result.
    releaseDraw();
    end(result);
  };
  engine.startScope = (name) => {
    const op = NAME.exec(name ?? '')?.[1] ?? '';
    if (!Object.hasOwn(INSTEAD, op) || !isTracing()) start(name);
    else if (drawer === null || !(isDistribution(op) || CALLING.has(op)))
      throw new CompilerError(
        `tf.${op} draws once, while the function is traced, and every run would have the same numbers. ` +
          `Call ${INSTEAD[op]}, with a key int32 [2] that the function is given, or that ops.foldIn or ops.splitKey makes of one.`,
      );
    else {
      start(name);
      if (isDistribution(op)) catchDraw(op, drawer);
    }
  };
}

/**
 * @file Scopes of gradients. tfjs computes gradients after the forward pass has returned, when no layer is active; here
 * each one gets the scope of the operation that it differentiates.
 */

import { CompilerError } from '../program/tensors.js';
import type { TapeKeeper } from '../tfjs/tape.js';
import * as tf from '../tfjs/tfjs.js';
import type { Mark } from './regions.js';

/** Where an operation was recorded. */
export interface Place {
  readonly scope: string;
  /** The call that recorded it, where calls are kept. */
  readonly call: Error | undefined;
  /** Its checkpointed region; null outside of checkpoints. */
  readonly mark: Mark | null;
}

/** Access to the tracer's current place. */
export interface ScopeKeeper {
  /** The current place, or null outside of a trace. */
  current(): Place | null;
  /** Runs `f` within the gradient of an operation that was recorded there. */
  within<T>(place: Place, f: () => T): T;
  /**
   * Runs `f`, which computes gradients. Operations recorded between two gradients belong to the first; later ones do
   * not.
   */
  around<T>(f: () => T): T;
}

/** Makes tfjs's engine run every gradient within the scope of its operation. Called once. */
export function carryScopes(scopes: ScopeKeeper): void {
  const engine = tf.engine() as unknown as TapeKeeper;
  const addTapeNode = engine.addTapeNode.bind(engine);
  const gradients = engine.gradients.bind(engine);
  engine.gradients = (...args) => scopes.around(() => gradients(...args));
  engine.addTapeNode = (name, inputs, outputs, ...rest) => {
    addTapeNode(name, inputs, outputs, ...rest);
    const node = engine.state.activeTape.findLast((node) => node.outputs === outputs)!;
    const place = scopes.current();
    const { gradient } = node;
    if (place === null) return;
    if (gradient === undefined) {
      node.gradient = () => scopes.within(place, () => refuse(name));
      return;
    }
    node.gradient = (dys) => {
      // tfjs would allocate the zeros of outputs that nothing reads, in a trace of shapes alone as well.
      const all = dys.map((dy, i) => dy ?? scopes.within(place, () => tf.zerosLike(outputs[i]!)));
      const gradients = scopes.within(place, () => gradient(all));
      return Object.fromEntries(
        Object.entries(gradients).map(([name, work]) => [name, () => scopes.within(place, work)]),
      );
    };
  };
}

function refuse(op: string): never {
  throw new CompilerError(
    `The operation '${op}' has no gradient${/Grad$|Backprop/.test(op) ? ' itself' : ''}: compute what is differentiated ` +
      'without it, or give it one with tf.customGrad.',
  );
}

/** Prefix of the scopes of gradients. */
export const GRADIENT = 'grad';

/** The layer of a scope, and whether the scope is that of its gradient. */
export function readScope(scope: string): { readonly layer: string; readonly isGradient: boolean } {
  const isGradient = scope === GRADIENT || scope.startsWith(`${GRADIENT} `);
  return { layer: isGradient ? scope.slice(GRADIENT.length + 1) : scope, isGradient };
}

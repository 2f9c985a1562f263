/**
 * @file The layers of gradients. tfjs works gradients out once the forward pass has returned, so their operations would
 * belong to no layer; here they carry the scope of the operation that they are the gradient of.
 */
import * as tf from './tfjs.js';

/** What tfjs keeps of an operation that a gradient may be asked of. */
interface TapeNode {
  gradient?: (dys: tf.Tensor[]) => Record<string, () => tf.Tensor>;
}

interface TapeKeeper {
  addTapeNode(...args: unknown[]): void;
  readonly state: { readonly activeTape: TapeNode[] };
}

/** How the tracer is told where an operation belongs. */
export interface ScopeKeeper {
  /** The scope of what is recorded now, or null outside of a trace. */
  current(): string | null;
  /** Runs `f` within the gradient of what was recorded in `scope`. */
  within<T>(scope: string, f: () => T): T;
}

/** Has tfjs's engine run every gradient within the scope of its operation. Called once. */
export function carryScopes(scopes: ScopeKeeper): void {
  const engine = tf.engine() as unknown as TapeKeeper;
  const original = engine.addTapeNode.bind(engine);
  engine.addTapeNode = (...args) => {
    original(...args);
    const node = engine.state.activeTape.at(-1)!;
    const scope = scopes.current();
    const { gradient } = node;
    if (scope === null || gradient === undefined) return;
    node.gradient = (dys) => {
      const gradients = scopes.within(scope, () => gradient(dys));
      return Object.fromEntries(
        Object.entries(gradients).map(([name, work]) => [name, () => scopes.within(scope, work)]),
      );
    };
  };
}

/** Scopes of gradients begin with this. */
export const GRADIENT = 'grad';

/** The layer of a scope, and whether its gradient is meant. */
export function readScope(scope: string): { readonly layer: string; readonly isGradient: boolean } {
  const isGradient = scope === GRADIENT || scope.startsWith(`${GRADIENT} `);
  return { layer: isGradient ? scope.slice(GRADIENT.length + 1) : scope, isGradient };
}

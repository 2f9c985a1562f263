/** @file Layer scopes of recorded operations, and errors that name them. */
import { GRADIENT, readScope } from './gradientScopes.js';
import { CompilerError } from './tensors.js';
import { showUsersFrame } from './usersFrame.js';

const scopes: string[] = [];

/** Scope of the last gradient; operations that tfjs adds between two gradients belong to it as well. */
let lastGradient = '';

/** Path of the layer being recorded; '' outside of layers. */
export const currentScope = (): string => scopes.at(-1) ?? lastGradient;

/** Runs `f`; nodes recorded meanwhile carry `scope` (a layer's path), which errors and profiles name. */
export function withScope<T>(scope: string, f: () => T): T {
  scopes.push(scope);
  try {
    return f();
  } catch (error) {
    throw explain(error, scope);
  } finally {
    scopes.pop();
  }
}

/** Runs `f`, which computes gradients; they belong to the layers that they differentiate, as 'grad lm/softmax'. */
export function aroundGradients<T>(f: () => T): T {
  const outer = lastGradient;
  try {
    return f();
  } finally {
    lastGradient = outer;
  }
}

/** Runs `f` as the gradient of an operation recorded in `scope`. */
export function withinGradient<T>(scope: string, f: () => T): T {
  const { layer } = readScope(scope);
  lastGradient = layer === '' ? GRADIENT : `${GRADIENT} ${layer}`;
  return withScope(lastGradient, f);
}

/** The layer of a scope, as a suffix for messages; '' outside of layers. */
export function placeOf(scope: string): string {
  const { layer, isGradient } = readScope(scope);
  if (layer === '') return '';
  return isGradient ? ` (in the gradient of layer '${layer}')` : ` (in layer '${layer}')`;
}

/** Adds the place to an error, once, and shows the user's line; rewords tfjs's message for a missing kernel. */
export function explain(error: unknown, scope: string): unknown {
  if (!(error instanceof Error)) return error;
  const where = placeOf(scope);
  const missing = /Kernel '(\w+)' not registered/.exec(error.message);
  if (missing) {
    const told = new CompilerError(
      `The compiler has no rule for the operation '${missing[1]}'${where}. Write it with operations that have one ` +
        '(src/compiler/rules), or add a rule there and its lowering in src/compiler/onnx.',
    );
    showUsersFrame(told, error);
    return told;
  }
  // tfjs's own checks throw plain errors.
  const ours = error instanceof CompilerError || error.constructor === Error;
  if (!ours) return error;
  if (where !== '' && !/ \((in layer '|in the gradient of|where)/.test(error.message)) error.message += where;
  showUsersFrame(error);
  return error;
}

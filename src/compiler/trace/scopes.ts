/** @file Layer scopes of recorded operations, and errors that name them. */

import { CompilerError } from '../program/tensors.js';
import { presentCall } from './callSites.js';
import { GRADIENT, type Place, readScope } from './gradientScopes.js';
import { currentMark, withMark } from './regions.js';
import { showUsersFrame } from './usersFrame.js';

const scopes: string[] = [];

/** Scope of the last gradient; operations that tfjs adds between two gradients belong to it as well. */
let lastGradient = '';
/** The call that is differentiated. */
let differentiated: Error | undefined;
/** Errors in gradients of calls that were not kept. */
const unplaced = new WeakSet<Error>();

/** Whether an error occurred in the gradient of a call that was not kept, so that the user's line is unknown. */
export const isUnplaced = (error: unknown): boolean => error instanceof Error && unplaced.has(error);

/** The call behind the operation being recorded, where calls are kept. */
export const currentCall = (): Error | undefined => differentiated ?? presentCall();

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
  const outer = { lastGradient, differentiated };
  try {
    return f();
  } finally {
    ({ lastGradient, differentiated } = outer);
  }
}

/** Where operations are being recorded. */
export const currentPlace = (): Place => ({
  scope: currentScope(),
  call: currentCall(),
  mark: currentMark(),
});

/** Runs `f` as the gradient of an operation that was recorded there. */
export function withinGradient<T>({ scope, call, mark }: Place, f: () => T): T {
  const { layer } = readScope(scope);
  lastGradient = layer === '' ? GRADIENT : `${GRADIENT} ${layer}`;
  differentiated = call;
  try {
    return withScope(lastGradient, () => withMark(mark && { ...mark, isGradient: true }, f));
  } catch (error) {
    if (error instanceof Error) {
      if (call === undefined) unplaced.add(error);
      else showUsersFrame(error, call);
    }
    throw error;
  }
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

/** @file Calls of layer methods within the layer's scope and precision; errors get its path. */
import type { Precision } from '../../compiler/index.js';
import {
  CompilerError,
  isTensor,
  placeOf,
  showUsersFrame,
  withPrecision,
  withScope,
} from '../../compiler/index.js';
import { currentContext } from './context.js';
import type { SplitDims } from './layerFields.js';
import { splitTensor } from './splitDims.js';
import type { Taps } from './taps.js';

/** An error in a layer; the message starts with the layer's path and class. */
export class LayerError extends Error {
  override readonly name = 'LayerError';
  constructor(
    readonly path: string,
    readonly layerClass: string,
    detail: string,
    options?: ErrorOptions,
  ) {
    super(`${path === '' ? 'model' : path} (${layerClass}): ${detail}`, options);
  }
}

/** Receives the result of a layer's method. */
export type CallObserver = (path: string, method: string, result: unknown) => void;

let observer: CallObserver | undefined;

/** Runs the synchronous function `fn`; reports the layer calls in it to the observer, and to one outside of it, inner calls first. */
export function observeCalls<T>(told: CallObserver, fn: () => T): T {
  const outer = observer;
  observer = (...call) => {
    told(...call);
    outer?.(...call);
  };
  try {
    return fn();
  } finally {
    observer = outer;
  }
}

/** The part of a layer that calls need. */
interface Callee {
  readonly path: string;
  readonly productDtype: Precision;
  /** Of layers: the split of what they give. */
  activationSplit?(name: string, rank: number): SplitDims | undefined;
  error(detail: string, options?: ErrorOptions): LayerError;
}

type Method = (this: Callee, ...args: unknown[]) => unknown;

/** The layer whose method is running; calls of its own methods belong to the same call. */
let running: Callee | undefined;

/** The result of a layer's method, read under the layer's path; that of a method other than `fprop` as `path.method`. */
function tapped(taps: Taps, path: string, method: string, result: unknown): unknown {
  if (!isTensor(result)) return result;
  const layer = path === '' ? 'model' : path;
  return taps.read(method === 'fprop' ? layer : `${layer}.${method}`, result);
}

function wrap(name: string, method: Method): Method {
  const wrapped: Method = function (...args) {
    const context = running === this ? undefined : currentContext();
    if (context === undefined) return method.apply(this, args);
    const outer = running;
    running = this;
    try {
      const result = withScope(this.path, () => {
        const given = withPrecision(this.productDtype, () => method.apply(this, args));
        if (name !== 'fprop' || !isTensor(given)) return given;
        return splitTensor(given, this.path, () => this.activationSplit?.('out', given.rank));
      });
      observer?.(this.path, name, result);
      return context.taps === undefined ? result : tapped(context.taps, this.path, name, result);
    } catch (error) {
      // The compiler's own errors already name the scope.
      if (error instanceof LayerError || error instanceof CompilerError || !(error instanceof Error))
        throw error;
      const told = this.error(`${name}: ${error.message.replace(placeOf(this.path), '')}`, { cause: error });
      showUsersFrame(told, error);
      throw told;
    } finally {
      running = outer;
    }
  };
  // A chain asks for the number of arguments.
  return Object.defineProperty(wrapped, 'length', { value: method.length });
}

const wrappedPrototypes = new WeakSet<object>();

/**
 * Wraps the methods that `layer`'s classes add to those of `base`, once per class, as Flax does for its modules. Only
 * affects calls within a forward pass.
 */
export function wrapMethods(layer: object, base: object): void {
  let proto: object = Object.getPrototypeOf(layer);
  for (; proto !== base && !wrappedPrototypes.has(proto); proto = Object.getPrototypeOf(proto)) {
    wrappedPrototypes.add(proto);
    for (const [name, descriptor] of Object.entries(Object.getOwnPropertyDescriptors(proto))) {
      if (name in base || typeof descriptor.value !== 'function') continue;
      Object.defineProperty(proto, name, { ...descriptor, value: wrap(name, descriptor.value) });
    }
  }
}

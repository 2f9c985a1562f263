/** @file Registration of a module's configurable classes by name. */
import { type AbstractClass, Configurable, registerClass } from '../hparams/index.js';

/** Makes the configurable classes that a module exports known by name to flags and files. */
export function registerExports(exports: Readonly<Record<string, unknown>>): void {
  const isConfigurable = (value: unknown): value is AbstractClass =>
    typeof value === 'function' && value.prototype instanceof Configurable;
  registerClass(...Object.values(exports).filter(isConfigurable));
}

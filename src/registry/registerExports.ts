/** @file Registration of a module's configurable classes by name. */
import { type AbstractClass, Configurable, registerClass } from '../hparams/index.js';

/** Registers a module's exported configurable classes, so that flags and files can name them. */
export function registerExports(exports: Readonly<Record<string, unknown>>): void {
  const isConfigurable = (value: unknown): value is AbstractClass =>
    typeof value === 'function' && value.prototype instanceof Configurable;
  registerClass(...Object.values(exports).filter(isConfigurable));
}

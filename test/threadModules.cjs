// @ts-check
/**
 * @file `node --require THIS`: threads load the modules of threads.ts from one file, in a quarter of the time that tsx takes
 * to find and translate each. What they load beside those comes by tsx, and shares their instances.
 */
'use strict';

const { readFileSync } = require('node:fs');
const Module = require('node:module');
const { dirname } = require('node:path');
const { compileFunction } = require('node:vm');
const { isMainThread } = require('node:worker_threads');

/** @typedef {Module & { load(path: string): void }} Loadable */
/** @type {{ _cache: Record<string, Module>, _nodeModulePaths(from: string): string[], prototype: Loadable }} */
const { _cache: loaded, _nodeModulePaths: pathsFrom, prototype } = /** @type {any} */ (Module);

const file = process.env.LUTHIER_TEST_THREADS;
if (!isMainThread && file !== undefined) {
  /** @type {import('./threads.js').ThreadModules} */
  const modules = JSON.parse(readFileSync(file, 'utf8'));
  const { load } = prototype;

  /** @param {Module} parent @param {string} path */
  const instanceOf = (parent, path) => {
    const known = loaded[path];
    if (known !== undefined) return known.exports;
    const module = /** @type {Loadable} */ (new Module(path, parent));
    loaded[path] = module;
    try {
      module.load(path);
    } catch (error) {
      delete loaded[path];
      throw error;
    }
    return module.exports;
  };

  /** @this {Loadable} @param {string} path */
  prototype.load = function (path) {
    const known = modules[path];
    if (known === undefined) return load.call(this, path);
    const run = compileFunction(known.code, ['exports', 'require', 'module'], { filename: path });
    /** @param {string} specifier */
    const required = (specifier) => {
      const target = known.imports[specifier];
      return target === undefined ? this.require(specifier) : instanceOf(this, target);
    };
    this.filename = path;
    this.paths = pathsFrom(dirname(path));
    run.call(this.exports, this.exports, required, this);
    this.loaded = true;
  };
}

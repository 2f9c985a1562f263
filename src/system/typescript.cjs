// @ts-check
/**
 * @file Loads TypeScript by tsx, whose translations are kept where no other user can write: what lies in tsx's own folder,
 * in the shared temporary one, it runs whoever put it there. CommonJS, for threads and processes begin with it by `require`.
 */
'use strict';

const fs = require('node:fs');
const { homedir } = require('node:os');
const { dirname, isAbsolute, join } = require('node:path');

const OTHERS_MAY_WRITE = 0o022;
const STICKY = 0o1000;

/** What tsx reads when it is loaded: where temporary files go, and whether it keeps anything. */
const read = ['TMPDIR', 'TSX_DISABLE_CACHE'];

/**
 * Whether only this user and root can change what lies at a path.
 *
 * @param {string} path a folder that is there
 * @param {number} user
 * @returns {boolean}
 */
function isOwn(path, user) {
  const { uid, mode } = fs.lstatSync(path);
  if (uid !== user && uid !== 0) return false;
  // In a sticky folder others can add, and can't exchange what is ours.
  if ((mode & OTHERS_MAY_WRITE) !== 0 && (mode & STICKY) === 0) return false;
  return dirname(path) === path || isOwn(dirname(path), user);
}

/**
 * The folder of translations, and of views of source files: `typescript` in that of compiled programs.
 *
 * @param {NodeJS.ProcessEnv} env
 * @returns {string | undefined} undefined where there is none that is this user's alone
 */
function ownFolder(env) {
  const home = env.XDG_CACHE_HOME ?? '';
  const cache = isAbsolute(home) ? home : join(env.HOME || homedir(), '.cache');
  const folder = join(cache, 'luthier', 'typescript');
  const user = process.geteuid?.();
  if (user === undefined) return undefined;
  try {
    fs.mkdirSync(folder, { recursive: true, mode: 0o700 });
    const { uid, mode } = fs.lstatSync(folder);
    return uid === user && (mode & 0o077) === 0 && isOwn(folder, user) ? folder : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Has what tsx makes in its folder be for this user alone: it makes its own when it first keeps something, together with all
 * above it that has been removed by then.
 *
 * @param {string} folder
 */
function makeForOwner(folder) {
  const { mkdirSync } = fs;
  /** @type {any} */ (fs).mkdirSync = (/** @type {fs.PathLike} */ path, /** @type {any} */ options) =>
    mkdirSync(path, `${path}`.startsWith(join(folder, '/')) ? { recursive: true, mode: 0o700 } : options);
}

/**
 * Has tsx, loaded from here on, keep its translations in a folder of this user's own; where there is none, it keeps none.
 *
 * @returns {() => void} called once tsx is loaded: what is loaded next finds the temporary folder that it had
 */
function keepTranslationsApart() {
  // Windows has a temporary folder for each user.
  if (process.platform === 'win32') return () => {};
  const before = read.map((name) => process.env[name]);
  const folder = ownFolder(process.env);
  if (folder === undefined) process.env.TSX_DISABLE_CACHE = '1';
  else {
    process.env.TMPDIR = folder;
    makeForOwner(folder);
  }
  return () => {
    read.forEach((name, i) => {
      if (before[i] === undefined) delete process.env[name];
      else process.env[name] = before[i];
    });
  };
}

/** For threads: what is required from here on may be TypeScript. Takes 40 ms where hooks of `import` take 120. */
function registerRequires() {
  const restore = keepTranslationsApart();
  try {
    require('tsx/cjs/api').register();
  } finally {
    restore();
  }
}

module.exports = { keepTranslationsApart, ownFolder, registerRequires };

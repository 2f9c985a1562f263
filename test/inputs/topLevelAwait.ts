/** @file A module that a prefetch thread cannot load, and has no need to where it reads built-in inputs. */

await Promise.resolve();

export {};

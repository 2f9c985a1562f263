/**
 * @file `node --import THIS`, in the place of tsx: TypeScript for the processes of tests, by esbuild alone, each file
 * translated once. They start in two thirds of the time. How people load TypeScript, by tsx and by the command itself, is
 * what test/system/typescript.test.ts and test/main.test.ts look at.
 */
import { register } from 'node:module';

register('./translationHooks.js', import.meta.url);
process.setSourceMapsEnabled(true);

/** @file Runs by the command line: flags, and the job that they ask for. */
export { overrideFlags } from './changeFlags.js';
export { flagTable } from './flags.js';
export { runFlags } from './runFlags.js';

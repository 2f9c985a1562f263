/** @file Command lines by a table of flags, and the exit of commands. Light, since every command starts with it. */
export {
  type FlagTable,
  flagsHelp,
  nonEmpty,
  oneOf,
  parseFlagTable,
  positive,
  valuesOf,
} from './flagTable.js';
export { type Mode, modes } from './modes.js';
export { describeError, runCommand } from './runCommand.js';

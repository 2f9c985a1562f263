/** @file Texts for people: messages, errors of usage, output on terminals. Light, since every command starts with it. */

export {
  formatCount,
  formatDuration,
  formatGrouped,
  formatScaled,
  formatSeconds,
  type Scales,
} from './formatNumbers.js';
export { bounded, countText, didYouMean, linesBelow, nearest, shellQuoted, shellWord } from './messages.js';
export { type Paint, Progress, paintFor, plain } from './terminalOutput.js';
export { columnsOf, headedTable, padded, textTable } from './textTable.js';
export { UsageError } from './usageError.js';
export { shortened, visible, visibleLines } from './visibleText.js';

/** @file Texts for people: messages, errors of usage, output on terminals. Light, since every command starts with it. */
export { bounded, countText, didYouMean, linesBelow, nearest } from './messages.js';
export { type Paint, Progress, paintFor, plain } from './terminalOutput.js';
export { UsageError } from './usageError.js';
export { shortened, visible, visibleLines } from './visibleText.js';

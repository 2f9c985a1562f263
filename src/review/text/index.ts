/** @file Formatting of reports. Light, since every command starts with it. */

export {
  codeSpan,
  counted,
  escapeMarkdown,
  formatBytes,
  formatCount,
  formatFlops,
  indented,
  markdownTable,
  textTable,
} from './reportFormat.js';

/** @file Formatting of reports. Light, since every command starts with it. */

export {
  codeSpan,
  counted,
  escapeMarkdown,
  formatBytes,
  formatFlops,
  indented,
  markdownTable,
  titled,
} from './reportFormat.js';

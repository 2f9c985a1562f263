// @ts-check
/**
 * @file Chat templates in Jinja in a process of its own, for a template can loop for good or take all memory. Its time is bounded
 * here, its memory by Node's flag.
 */
'use strict';

const { Script } = require('node:vm');
const { Template } = require('@huggingface/jinja');

/** Milliseconds of a rendering. */
const MOST_MS = 1000;
/** Characters of a rendered chat. */
const MOST_LENGTH = 1 << 24;

/** @type {Map<string, import('@huggingface/jinja').Template>} */
const templates = new Map();

/** @param {string} text */
function parsed(text) {
  const found = templates.get(text) ?? new Template(text);
  templates.set(text, found);
  return found;
}

/** Calls a function, which ends with an error where it takes too long. @param {() => string} make */
function withinTime(make) {
  Object.assign(globalThis, { make });
  return new Script('make()').runInThisContext({ timeout: MOST_MS });
}

/** @param {import('./chatRenderer.js').RenderQuestion} question @returns {import('./chatRenderer.js').RenderAnswer} */
function answer({ template, variables }) {
  try {
    const text = withinTime(() => {
      const ready = parsed(template);
      return variables === null ? '' : ready.render(variables);
    });
    if (text.length > MOST_LENGTH) return { error: `it writes more than ${MOST_LENGTH} characters` };
    return { text };
  } catch (error) {
    const { code, message } = /** @type {NodeJS.ErrnoException} */ (error);
    const isLate = code === 'ERR_SCRIPT_EXECUTION_TIMEOUT';
    return { error: isLate ? `it takes more than ${MOST_MS / 1000} s` : message };
  }
}

process.on('message', (question) => {
  process.send?.(answer(/** @type {import('./chatRenderer.js').RenderQuestion} */ (question)));
});
process.on('disconnect', () => process.exit());
// They are sent to a terminal's whole group; the server ends this process once its requests are answered.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => {});

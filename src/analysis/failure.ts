/** @file Errors as findings: message and place in the project. */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { showFile } from '../registry/names/index.js';
import type { ChildError } from '../system/index.js';
import { shortened } from '../system/text/index.js';

/** An error as plain data. */
export interface Failure {
  /** Messages of the error and its causes, one per line. */
  readonly message: string;
  /** Path of the invalid config, constant or layer. */
  readonly path?: string;
  /** `file:line`, or the flag that set the invalid value. */
  readonly place?: string;
}

/** Errors whose names add nothing to their messages. */
const speaking =
  /^(Error|ConfigError|UsageError|ExperimentLoadError|FunctionError|LayerError|TransformError)$/;

/** Properties of the library's errors. */
interface Details {
  /** The message without the place. */
  readonly problem?: unknown;
  readonly path?: unknown;
  readonly place?: unknown;
}

/** esbuild's message for a syntax error. */
const syntaxError = /^Transform failed with \d+ errors?:\n(.+?):(\d+):\d+: ERROR: (.*)/;

/** Characters of a message that are told. */
const LONGEST_MESSAGE = 10_000;

/** Describes any thrown value, also one that throws when it is looked at. */
export function failureOf(error: unknown): Failure {
  try {
    const failure = described(error);
    return { ...failure, message: shortened(failure.message, LONGEST_MESSAGE) };
  } catch {
    return { message: 'It throws a value that throws when it is read.' };
  }
}

function described(error: unknown): Failure {
  if (!(error instanceof Error)) return { message: String(error) };
  const chain: Error[] = [];
  for (let at: unknown = error; at instanceof Error && !chain.includes(at); at = at.cause) chain.push(at);
  const path = chain
    .map((each) => (each as Details).path)
    .find((each) => typeof each === 'string' && each !== '');
  const place =
    chain.map(statedPlace).find((each) => each !== undefined) ??
    chain
      .toReversed()
      .map(placeInStack)
      .find((each) => each !== undefined);
  return {
    message: withoutEchoes(chain.map(messageOf)).join('\n'),
    ...(typeof path === 'string' && { path }),
    ...(place !== undefined && { place }),
  };
}

/** Drops messages that repeat an earlier one, as wrappers do. */
function withoutEchoes(messages: readonly string[]): string[] {
  return messages.filter((message, i) => !messages.slice(0, i).some((before) => before.includes(message)));
}

function messageOf(error: Error): string {
  const { problem } = error as Details;
  if (typeof problem === 'string') return problem;
  // Omits Node's require stack.
  const message = error.message.replace(/\nRequire stack:[\s\S]*/, '');
  const syntax = syntaxError.exec(message);
  if (syntax) return syntax[3]!;
  return speaking.test(error.name) ? message : `${error.name}: ${message}`;
}

function statedPlace(error: Error): string | undefined {
  const { place } = error as Details;
  if (typeof place === 'string') return place;
  const syntax = syntaxError.exec(error.message);
  return syntax ? `${showFile(syntax[1]!)}:${syntax[2]}` : undefined;
}

/** The library's own sources: errors that arise there are about the project's input. */
const library = fileURLToPath(new URL('../', import.meta.url));

/** The innermost line of the project in the stack. */
function placeInStack(error: Error): string | undefined {
  for (const line of (error.stack ?? '').split('\n').slice(1)) {
    const found = /(?:^|[\s(])((?:file:\/\/)?\/[^():]+):(\d+):\d+\)?$/.exec(line);
    if (found === null) continue;
    const file = found[1]!.startsWith('file://') ? fileURLToPath(found[1]!.replace(/\?.*$/, '')) : found[1]!;
    // With source maps, frames of packages may name files that were never installed.
    const isProjects = !file.startsWith(library) && !file.includes('/node_modules/') && existsSync(file);
    if (isProjects) return `${showFile(file)}:${found[2]}`;
  }
  return undefined;
}

/** Most lines of a process's output that are told. */
const mostLines = 8;

/** Report of how an experiment ended its process. */
export function endText({ reason, message, output }: ChildError, command: string, seconds: number): string {
  if (reason === 'timeout')
    return `It took longer than ${seconds} s; luthier ${command} --timeout=SECONDS gives it more.`;
  const said = output.trim().split('\n').slice(-mostLines).join('\n');
  // Out of memory, V8 only shows its internals.
  return said === '' || /heap out of memory/.test(output) ? message : `${message} It said:\n${said}`;
}

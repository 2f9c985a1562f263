/** @file The workflows on GitHub, read from their files. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { parse } from 'yaml';
import { temporaryDirectory } from './command.js';

export interface Step {
  readonly name?: string;
  readonly if?: string;
  readonly uses?: string;
  readonly run?: string;
  readonly with?: Readonly<Record<string, string | number | boolean>>;
  readonly env?: Readonly<Record<string, string>>;
  readonly 'continue-on-error'?: boolean;
}

interface Job {
  readonly permissions?: Readonly<Record<string, string>>;
  readonly if?: string;
  readonly steps: readonly Step[];
}

export interface Workflow {
  readonly name: string;
  readonly on: unknown;
  readonly permissions: Readonly<Record<string, string>>;
  readonly jobs: Readonly<Record<string, Job>>;
}

/** A workflow of this repository, by the name of its file. */
export function readWorkflow(name: string): Workflow {
  const text = readFileSync(new URL(`../.github/workflows/${name}`, import.meta.url), 'utf8');
  return parse(text, { strict: true, uniqueKeys: true }) as Workflow;
}

/** The steps of all its jobs. */
export function stepsOf({ jobs }: Workflow): Step[] {
  return Object.values(jobs).flatMap(({ steps }) => steps);
}

type Parser = typeof import('@actions/workflow-parser');
let parser: Promise<Parser> | undefined;

/** GitHub's own parser. It imports JSON as bundlers take it, and Node does not. */
async function bundledParser(): Promise<Parser> {
  const outfile = join(temporaryDirectory(), 'parser.mjs');
  const entry = { contents: "export * from '@actions/workflow-parser'", resolveDir: import.meta.dirname };
  await build({ stdin: entry, bundle: true, format: 'esm', platform: 'node', outfile, logLevel: 'error' });
  return (await import(pathToFileURL(outfile).href)) as Parser;
}

/** What GitHub would say against a workflow before it runs it. */
export async function problemsOf(content: string): Promise<string[]> {
  parser ??= bundledParser();
  const { NoOperationTraceWriter, parseWorkflow } = await parser;
  const { context } = parseWorkflow({ name: 'test.yml', content }, new NoOperationTraceWriter());
  return context.errors.getErrors().map(({ message }) => message);
}

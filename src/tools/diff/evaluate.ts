/** @file Evaluates experiments of the version of the project that this process runs in. */
import { fileURLToPath } from 'node:url';
import { type ConfiguredExperiment, configure, type Override } from '../../cli/index.js';
import { effectiveConstants } from '../../experiment/index.js';
import { registerExports, resolveExperiment } from '../../registry/index.js';
import type { Analysis } from '../analysis/types.js';
import { configDocument, encodeLeaf } from './configDocument.js';
import type { AnalysisDocument, ConstantEntry, ExperimentDocument, Failure } from './protocol.js';

/** Experiments, each with its configs once they were asked for. */
export class Evaluation {
  private readonly configured = new Map<string, ConfiguredExperiment>();

  /** The constants and configs of the experiment `name`, or what keeps it from having them. */
  async configs(name: string, changes: readonly Override[]): Promise<ExperimentDocument> {
    try {
      const { experiment, configs } = await this.configure(name, changes);
      const constants = effectiveConstants(experiment).map(
        ({ name: constant, value, setBy }): ConstantEntry => {
          return { name: constant, setBy, ...(value === undefined ? {} : { value: encodeLeaf(value) }) };
        },
      );
      return { name, constants, config: configDocument(configs) };
    } catch (error) {
      return { name, error: failureOf(error) };
    }
  }

  private async configure(name: string, changes: readonly Override[]): Promise<ConfiguredExperiment> {
    const resolved = await resolveExperiment(name);
    if (changes.length > 0) registerExports(await import('../../index.js'));
    const configured = configure(resolved, changes);
    this.configured.set(name, configured);
    return configured;
  }

  /** What the model of the experiment is, or why that cannot be told. */
  async analysis(name: string, changes: readonly Override[]): Promise<AnalysisDocument> {
    try {
      const configured = this.configured.get(name) ?? (await this.configure(name, changes));
      const analyze = await analyzer();
      if (analyze === undefined) {
        return { name, notAnalysed: { message: 'This version of Luthier does not analyse models.' } };
      }
      return { name, analysis: await analyze(configured) };
    } catch (error) {
      return { name, notAnalysed: failureOf(error) };
    }
  }
}

type Analyze = (configured: ConfiguredExperiment) => Analysis | Promise<Analysis>;

/** The analysis of this version, which an early one lacks. */
async function analyzer(): Promise<Analyze | undefined> {
  const file = new URL('../analysis/analyze.js', import.meta.url);
  try {
    const module = (await import(file.href)) as { analyze?: Analyze };
    return module.analyze;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND') return undefined;
    throw error;
  }
}

/** What to tell of an error: all messages of its chain of causes, and where in the project it arose. */
function failureOf(error: unknown): Failure {
  if (!(error instanceof Error)) return { message: String(error) };
  const place = placeOf(error);
  return { message: messageOf(error), ...(place === undefined ? {} : { place }) };
}

function messageOf(error: Error): string {
  const { problem } = error as { problem?: unknown };
  // A ConfigError's message ends with the place, which is told beside it.
  const own = typeof problem === 'string' ? problem : error.message;
  const text = /^(Error|ConfigError|UsageError|ExperimentLoadError|FunctionError|LayerError)$/.test(
    error.name,
  )
    ? own
    : `${error.name}: ${own}`;
  return error.cause instanceof Error ? `${text}\n${messageOf(error.cause)}` : text;
}

/** `file:line`: as the error says, or else of the innermost line of the project in the stack. */
function placeOf(error: Error): string | undefined {
  const { place, cause } = error as { place?: unknown; cause?: unknown };
  if (typeof place === 'string') return place;
  const inner = cause instanceof Error ? placeOf(cause) : undefined;
  if (inner !== undefined) return inner;
  for (const line of (error.stack ?? '').split('\n')) {
    const found = /((?:file:\/\/)?\/[^():]*(?:\([^()]*\)[^():]*)*):(\d+)(?::\d+)?\)?:?(?:\s|$)/.exec(line);
    if (found === null) continue;
    const file = found[1]!.startsWith('file://') ? fileURLToPath(found[1]!.replace(/\?.*$/, '')) : found[1]!;
    const isOwn = file.startsWith(`${process.cwd()}/`) && !file.includes('/node_modules/');
    if (isOwn && !file.startsWith(library)) return `${file.slice(process.cwd().length + 1)}:${found[2]}`;
  }
  return undefined;
}

/** The library's own sources, which stand in the project where that is the library itself. */
const library = fileURLToPath(new URL('../../', import.meta.url));

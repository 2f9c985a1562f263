/** @file `luthier serve`: a trained model behind HTTP. */
import { setTimeout as sleep } from 'node:timers/promises';
import { nonEmpty, positive } from '../../cli/flagTable.js';
import { JobError } from '../../programs/index.js';
import { UsageError } from '../../registry/usageError.js';
import { exitCodeOfSignal, InterruptedError, StopSignal, writeText } from '../../system/index.js';
import type { TrainedRun } from '../../trained/index.js';
import { isLoopback } from '../../trained/server/hosts.js';
import { type ServerOptions, serve } from '../../trained/server/server.js';
import type { Arguments, Command, Report } from '../command.js';
import { runOf, trainedFlags } from './trainedFlags.js';

/** Time that requests under way have to end once the server is asked to stop. */
const GRACE_MS = 10_000;
/** Of that, the time in which those that are cut are told so, and what they computed is ended. */
const LAST_MS = 500;

/** Codes of hosts that are no address of this machine. */
const wrongHosts: ReadonlySet<string> = new Set(['ENOTFOUND', 'EAI_AGAIN', 'EADDRNOTAVAIL', 'EINVAL']);

function portOf(text: string, flag: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) < 65_536) return Number(text);
  throw new UsageError(`${flag}: expected a port from 0 (any that is free) to 65535; got '${text}'.`);
}

const stoppedBy = (signal: string): Report => ({
  text: () => `${signal}: stopped.`,
  json: () => ({ signal }),
});

/** A run that is ready to answer; undefined where a signal came first, which ends its compiler too. */
async function prepared(
  args: Arguments,
  batchSize: number,
  stop: StopSignal,
): Promise<TrainedRun | undefined> {
  try {
    const run = await runOf(args, { batchSize });
    await run.prepare();
    if (stop.received === undefined) return run;
    await run.dispose();
  } catch (error) {
    if (!(error instanceof InterruptedError) || stop.received === undefined) throw error;
  }
  return undefined;
}

/** The options of a server that flags set, and the size of its batches. */
export function serveOptions(
  values: Arguments['values'],
): Omit<ServerOptions, 'log'> & { batchSize: number } {
  const { batchSize = 8, ...given } = values as Partial<ServerOptions> & { batchSize?: number };
  const { host = '127.0.0.1', port = 8000, maxBody = 1 << 20, maxWaiting = 64, maxTokens } = given;
  return { batchSize, host, port, maxBody, maxWaiting, maxTokens };
}

async function served(args: Arguments): Promise<Report> {
  const { batchSize, ...options } = serveOptions(args.values);
  const { host, port } = options;
  let ask: (signal: string) => void = () => {};
  const asked = new Promise<string>((resolve) => {
    ask = resolve;
  });
  const stop = new StopSignal({ first: ask });
  stop.listen();
  const run = await prepared(args, batchSize, stop);
  if (run === undefined) {
    const signal = stop.received!;
    stop.close();
    return { ...stoppedBy(signal), exitCode: exitCodeOfSignal[signal] };
  }
  const server = await serve(run, {
    ...options,
    log: (error) => args.warn((error as Error).stack ?? String(error)),
  }).catch((error: NodeJS.ErrnoException) => {
    const Kind = wrongHosts.has(error.code ?? '') ? UsageError : JobError;
    throw new Kind(`luthier serve: can't listen on ${host}, port ${port}: ${error.code ?? error.message}.`);
  });
  if (!isLoopback(host))
    args.warn(`--host=${host}: other machines can use the server; it asks nobody who they are.`);
  writeText(`Serving ${run.name}, step ${run.step}, at ${server.url}\n`);
  const signal = await asked;
  await server.close(GRACE_MS - LAST_MS);
  // A batch or a compilation that nobody waits for any more ends with the process.
  await Promise.race([run.dispose(), sleep(LAST_MS)]);
  stop.close();
  return stoppedBy(signal);
}

export const serveCommand: Command = {
  usage: 'DIR',
  positionals: [1, 1],
  flags: {
    host: {
      ...{ key: 'host', value: 'NAME', parse: nonEmpty },
      about: 'Address to listen on. Default: 127.0.0.1, which only programs of this machine reach.',
    },
    port: {
      ...{ key: 'port', value: 'N', parse: portOf },
      about: 'Port to listen on; 0 takes a free one. Default: 8000.',
    },
    batch_size: {
      ...{ key: 'batchSize', value: 'N', parse: positive(true) },
      about: 'Continuations that are decoded, or examples that are predicted, at once. Default: 8.',
    },
    max_tokens: {
      ...{ key: 'maxTokens', value: 'N', parse: positive(true) },
      about: 'Tokens that a request may ask for. Default: as many as the model has room for.',
    },
    max_waiting: {
      ...{ key: 'maxWaiting', value: 'N', parse: positive(true) },
      about:
        'Continuations or examples that are computed or wait; further requests are refused with 503. Default: 64.',
    },
    max_body: {
      ...{ key: 'maxBody', value: 'BYTES', parse: positive(true) },
      about: 'Size of a request. Default: 1048576.',
    },
    ...trainedFlags,
  },
  changes: false,
  details: [
    'GET /health, GET /v1/models and POST /v1/completions, as OpenAI has them, with "stream": true for server-sent events.',
    'Of other models POST /predict: {"instances": [RECORD or TEXT or {"b64": FILE}, …]} gives a prediction for each.',
    'Requests that wait together are decoded in one batch. The first SIGINT or SIGTERM lets those under way end.',
    '',
    '  npx luthier serve out/lm_small --port=8000',
    `  curl http://127.0.0.1:8000/v1/completions -H 'content-type: application/json' -d '{"prompt": "export "}'`,
    '',
    'Exit codes: 0; 1 if the run has no checkpoint or a broken one, or the port is taken; 2 for a wrong command line; 129, 130',
    'or 143 for SIGHUP, SIGINT or SIGTERM before the server is ready.',
  ].join('\n'),
  run: served,
};

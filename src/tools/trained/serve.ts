/** @file `luthier serve`: a trained model behind HTTP. */
import { setTimeout as sleep } from 'node:timers/promises';
import { nonEmpty, positive } from '../../cli/commandLine/index.js';
import { JobError } from '../../programs/index.js';
import { exitCodeOfSignal, InterruptedError, StopSignal, writeText } from '../../system/index.js';
import { UsageError } from '../../system/text/index.js';
import { isLoopback, type ServerOptions, serve, type TrainedRun } from '../../trained/index.js';
import type { Arguments, Command, Report } from '../command.js';
import { runOf, trainedFlags } from './trainedFlags.js';

/** Time for requests in progress to finish after a stop signal. */
const GRACE_MS = 10_000;
/** The part of that time left for ending requests with an error, and for stopping their computations. */
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
    args.warn(`--host=${host}: other machines can reach the server; it has no authentication.`);
  writeText(`Serving ${run.name}, step ${run.step}, at ${server.url}\n`);
  const signal = await asked;
  await server.close(GRACE_MS - LAST_MS);
  // Abandoned batches and compilations end with the process.
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
      about: 'Address to listen on. Default: 127.0.0.1, reachable from this machine only.',
    },
    port: {
      ...{ key: 'port', value: 'N', parse: portOf },
      about: 'Port to listen on; 0 chooses a free port. Default: 8000.',
    },
    batch_size: {
      ...{ key: 'batchSize', value: 'N', parse: positive(true) },
      about: 'Batch size: continuations decoded, or examples predicted, together. Default: 8.',
    },
    max_tokens: {
      ...{ key: 'maxTokens', value: 'N', parse: positive(true) },
      about: "Most tokens of a request's continuation. Default: the model's context length.",
    },
    max_waiting: {
      ...{ key: 'maxWaiting', value: 'N', parse: positive(true) },
      about:
        'Most continuations or examples in progress or waiting; further requests get status 503. Default: 64.',
    },
    max_body: {
      ...{ key: 'maxBody', value: 'BYTES', parse: positive(true) },
      about: "Largest size of a request's body. Default: 1048576.",
    },
    ...trainedFlags,
  },
  changes: false,
  details: [
    'GET /health, GET /v1/models and POST /v1/completions, as OpenAI has them, with "stream": true for server-sent events.',
    'Models other than language models have POST /predict: {"instances": [RECORD or TEXT or {"b64": FILE}, …]} gives a prediction for each.',
    'Models that embed texts have POST /v1/embeddings, as OpenAI has it.',
    'Waiting requests are decoded in one batch. On the first SIGINT or SIGTERM, requests in progress finish.',
    '',
    '  npx luthier serve out/lm_small --port=8000',
    `  curl http://127.0.0.1:8000/v1/completions -H 'content-type: application/json' -d '{"prompt": "export "}'`,
    '',
    'Exit codes: 0; 1 if the run has no checkpoint or a broken one, or the port is taken; 2 for a wrong command line; 129, 130',
    'or 143 for SIGHUP, SIGINT or SIGTERM before the server is ready.',
  ].join('\n'),
  run: served,
};

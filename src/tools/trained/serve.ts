/** @file `luthier serve`: a trained model behind HTTP. */
import { setTimeout as sleep } from 'node:timers/promises';
import { nonEmpty, positive } from '../../cli/commandLine/index.js';
import { explain, readRegularFile } from '../../files/index.js';
import { JobError } from '../../programs/index.js';
import { exitCodeOfSignal, InterruptedError, StopSignal, writeText } from '../../system/index.js';
import { UsageError } from '../../system/text/index.js';
import { isLoopback, loadRun, type ServerOptions, serve, type TrainedRun } from '../../trained/index.js';
import type { Arguments, Command, Report } from '../command.js';
import { cacheFlags, loadOptions, runOf, trainedFlags } from './trainedFlags.js';

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

/** A run and its adapters. */
interface Prepared {
  readonly run: TrainedRun;
  readonly adapters: Readonly<Record<string, TrainedRun>>;
}

const disposed = async ({ run, adapters }: Prepared): Promise<void> => {
  for (const each of [run, ...Object.values(adapters)]) await each.dispose();
};

/** A run that is ready to answer; undefined where a signal came first, which ends its compiler too. */
async function prepared(args: Arguments, batchSize: number, stop: StopSignal): Promise<Prepared | undefined> {
  try {
    const chatTemplate = chatTemplateIn(args.values.chatTemplate as string | undefined);
    const run = await runOf(args, { batchSize, chatTemplate });
    const adapters = await adaptersOf(args, run, batchSize);
    for (const each of [run, ...Object.values(adapters)]) {
      // A template that can't be read is told before the server listens.
      if (each.continuesText) each.chat.template;
      await each.prepare();
    }
    if (stop.received === undefined) return { run, adapters };
    await disposed({ run, adapters });
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
  const {
    host = '127.0.0.1',
    port = 8000,
    maxBody = 1 << 20,
    maxWaiting = 64,
    maxTokens,
    maxSeconds,
  } = given;
  return { batchSize, host, port, maxBody, maxWaiting, maxTokens, maxSeconds };
}

/** The text of the file of a chat template. */
function chatTemplateIn(file: string | undefined): string | undefined {
  if (file === undefined) return undefined;
  try {
    return readRegularFile(file).toString('utf8');
  } catch (error) {
    throw new UsageError(`--chat_template=${file}: it can't be read (${explain(error)}).`, { cause: error });
  }
}

/** Loads the adapters that the command names, as `NAME=DIR`. @throws UsageError for those that are of no use */
async function adaptersOf({ values }: Arguments, base: TrainedRun, batchSize: number) {
  const adapters: Record<string, TrainedRun> = {};
  for (const each of (values.adapters ?? []) as readonly string[]) {
    const [, name = '', directory = ''] = /^([^=]+)=(.+)$/.exec(each) ?? [];
    if (directory === '' || name in adapters)
      throw new UsageError(`--adapter=${each}: expected NAME=DIR, each name once.`);
    const { checkpoint: _, ...options } = loadOptions(values);
    const run = await loadRun(directory, { ...options, batchSize });
    adapters[name] = run;
    if (run.continuesText && base.continuesText && run.tokenizer.identity() === base.tokenizer.identity())
      continue;
    throw new UsageError(
      `--adapter=${each}: expected a run of the same tokenizer as ${base.name}, such as one that fine-tuned it; ${run.name} is another.`,
    );
  }
  return adapters;
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
  const ready = await prepared(args, batchSize, stop);
  if (ready === undefined) {
    const signal = stop.received!;
    stop.close();
    return { ...stoppedBy(signal), exitCode: exitCodeOfSignal[signal] };
  }
  const { run, adapters } = ready;
  const server = await serve(run, {
    ...{ ...options, adapters },
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
  await Promise.race([disposed(ready), sleep(LAST_MS)]);
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
    cache_tokens: {
      ...{ key: 'cacheTokens', value: 'N', parse: positive(true) },
      about:
        "Most tokens that all continuations have together, prompts included; further ones wait. Default: the batch size times the model's context length.",
    },
    max_tokens: {
      ...{ key: 'maxTokens', value: 'N', parse: positive(true) },
      about: "Most tokens of a request's continuation. Default: the model's context length.",
    },
    max_waiting: {
      ...{ key: 'maxWaiting', value: 'N', parse: positive(true) },
      about:
        'Most continuations or examples in progress or waiting; further requests get status 429. Default: 64.',
    },
    max_seconds: {
      ...{ key: 'maxSeconds', value: 'N', parse: positive(true) },
      about: 'Seconds after which a request for text is given up, with status 503. Default: 600.',
    },
    max_body: {
      ...{ key: 'maxBody', value: 'BYTES', parse: positive(true) },
      about: "Largest size of a request's body. Default: 1048576.",
    },
    adapter: {
      ...{ key: 'adapters', value: 'NAME=DIR', repeated: true, parse: nonEmpty },
      about:
        'A run that fine-tuned the same model, for requests whose model is NAME, or the name of the model, a colon and NAME. May be repeated.',
    },
    chat_template: {
      ...{ key: 'chatTemplate', value: 'FILE', parse: nonEmpty },
      about:
        'Template of chats in Jinja. Default: that of training or of the imported model, or the messages alone.',
    },
    ...cacheFlags,
    ...trainedFlags,
  },
  changes: false,
  details: [
    'POST /v1/completions and /v1/chat/completions, as OpenAI has them, with "stream": true for server-sent events; POST /tokenize',
    'and /detokenize; GET /v1/models, /health, /metrics for Prometheus, and / for a page to chat on.',
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

/** @file Metrics of a server for Prometheus: requests, tokens, the queue and its rows, and how long clients wait. */
import { type PrometheusMetric, prometheusNumber, prometheusText } from '../../summaries/index.js';
import type { Completion } from '../completion.js';
import type { DecodeLoad } from '../decodeQueue.js';

/** Bounds of the buckets of times to a first token and of requests, in seconds. */
const LONG = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];
/** Those of times between two tokens. */
const SHORT = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];

/** Counts of values by buckets, each of which has all up to its bound. */
class Histogram {
  readonly #counts: number[];
  #sum = 0;
  #count = 0;

  constructor(
    private readonly name: string,
    private readonly help: string,
    private readonly bounds: readonly number[],
  ) {
    this.#counts = bounds.map(() => 0);
  }

  take(value: number): void {
    this.#sum += value;
    this.#count++;
    for (const [i, bound] of this.bounds.entries()) if (value <= bound) this.#counts[i]!++;
  }

  get metric(): PrometheusMetric {
    const buckets = [...this.bounds, Number.POSITIVE_INFINITY].map((bound, i) => ({
      ...{ suffix: '_bucket', labels: { le: prometheusNumber(bound) } },
      value: this.#counts[i] ?? this.#count,
    }));
    const totals = [
      { suffix: '_sum', labels: {}, value: this.#sum },
      { suffix: '_count', labels: {}, value: this.#count },
    ];
    return { name: this.name, type: 'histogram', help: this.help, samples: [...buckets, ...totals] };
  }
}

const seconds = (from: number): number => (performance.now() - from) / 1000;

/** Metrics since the server began. */
export class ServerMetrics {
  /** Requests by route and status, joined by a space. */
  readonly #requests = new Map<string, number>();
  readonly #ends = new Map<string, number>();
  #promptTokens = 0;
  #drawnTokens = 0;
  readonly #first = new Histogram(
    'luthier_time_to_first_token_seconds',
    'Time from a request to the first token of a continuation, the queue included.',
    LONG,
  );
  readonly #next = new Histogram(
    'luthier_time_per_output_token_seconds',
    'Time between two tokens of a continuation.',
    SHORT,
  );
  readonly #whole = new Histogram(
    'luthier_request_seconds',
    'Time from a request to the end of its answer.',
    LONG,
  );

  /** Counts a request that is answered, or was given up. @param begun of `performance.now()` */
  answered(route: string, status: number, begun: number): void {
    const labels = `${route} ${status}`;
    this.#requests.set(labels, (this.#requests.get(labels) ?? 0) + 1);
    this.#whole.take(seconds(begun));
  }

  /** Follows a continuation. @param begun of `performance.now()` */
  async follow(completion: Completion, begun: number): Promise<void> {
    this.#promptTokens += completion.promptIds.length;
    let last = begun;
    let histogram = this.#first;
    completion.onToken = () => {
      histogram.take(seconds(last));
      this.#drawnTokens++;
      histogram = this.#next;
      last = performance.now();
    };
    await completion.ended;
    const reason = completion.finishReason!;
    this.#ends.set(reason, (this.#ends.get(reason) ?? 0) + 1);
  }

  /** All metrics in Prometheus' text format. @param load of each model by its name */
  text(load: Readonly<Record<string, DecodeLoad>>): string {
    const counter = (name: string, help: string, value: number): PrometheusMetric => ({
      ...{ name, type: 'counter', help, samples: [{ labels: {}, value }] },
    });
    const gauge = (name: string, help: string, of: keyof DecodeLoad): PrometheusMetric => {
      const samples = Object.entries(load).map(([model, each]) => ({ labels: { model }, value: each[of] }));
      return { name, type: 'gauge', help, samples };
    };
    const { user, system } = process.cpuUsage();
    return prometheusText([
      {
        ...{ name: 'luthier_requests_total', type: 'counter', help: 'Requests that were answered.' },
        samples: Array.from(this.#requests, ([labels, value]) => {
          const [route = '', status = ''] = labels.split(' ');
          return { labels: { route, status }, value };
        }),
      },
      {
        ...{ name: 'luthier_completions_total', type: 'counter', help: 'Continuations by how they ended.' },
        samples: Array.from(this.#ends, ([reason, value]) => ({ labels: { reason }, value })),
      },
      counter('luthier_prompt_tokens_total', 'Tokens of prompts.', this.#promptTokens),
      counter('luthier_generation_tokens_total', 'Tokens that were drawn.', this.#drawnTokens),
      gauge('luthier_rows', 'Continuations that are decoded at once, at most.', 'rows'),
      gauge('luthier_rows_busy', 'Continuations that are decoded.', 'busy'),
      gauge('luthier_completions_waiting', 'Continuations that wait for a row.', 'waiting'),
      gauge(
        'luthier_cache_tokens',
        'Tokens of the continuations that are decoded, with their prompts.',
        'tokens',
      ),
      gauge('luthier_cache_places', 'Tokens that there is room for.', 'places'),
      ...[this.#first.metric, this.#next.metric, this.#whole.metric],
      {
        ...{ name: 'process_resident_memory_bytes', type: 'gauge', help: 'Memory of the process.' },
        samples: [{ labels: {}, value: process.memoryUsage.rss() }],
      },
      counter('process_cpu_seconds_total', 'Time of processors.', (user + system) / 1e6),
    ]);
  }
}

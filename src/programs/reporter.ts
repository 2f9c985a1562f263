/** @file Reporter: console line, metrics.jsonl and TensorBoard events of a job. */
import { join, resolve } from 'node:path';
import { sizeOf } from '../compiler/index.js';
import { describeSkipped, type Skipped } from '../inputs/index.js';
import { describeConfigs, isOfOwnRun, type JobOptions } from '../runs/index.js';
import {
  type BaseTracker,
  EventFile,
  formatThroughput,
  MetricsFile,
  type MetricsLine,
  ProgressLine,
  type SummaryValue,
  tableFields,
  tableImage,
  tableMarkdown,
  tableText,
  throughputScalar,
} from '../summaries/index.js';
import type { StopSignalName } from '../system/index.js';
import { formatCount, formatGrouped } from '../system/text/index.js';
import type { DecodeResult, EvalResult, InferResult, SingleTask, WeightedValues } from '../tasks/index.js';
import type { RowNames } from './batchBuffers.js';
import { decodedText } from './exampleFiles.js';
import { TRAIN } from './programDataset.js';
import { RunTrackers } from './trackedRun.js';
import { metricScalars, type Scalars, skippedScalar, type TrainMeter } from './trainMeter.js';
import type { TrainReport } from './trainProgram.js';

/** Summaries by tag. */
type Summaries = Readonly<Record<string, SummaryValue>>;

/** Decoded examples printed on the console; the file has all. */
const printedExamples = 4;

/** Steps of a run. */
export interface Course {
  readonly firstStep: number;
  readonly numTrainSteps: number;
  /** Steps between progress lines in a log. */
  readonly logIntervalSteps?: number;
  /** Programs that rerun at the first step; their earlier lines for it are dropped. */
  readonly again?: readonly string[];
  readonly trackers?: readonly BaseTracker[];
}

/** Whether a metric says nothing new: without auxiliary losses, the cross entropies are the total loss. */
const isImplied = (name: string, value: number, total: number | undefined): boolean =>
  (name === 'aux_loss' && value === 0) || (['avg_xent', 'log_pplx'].includes(name) && value === total);

/** Metrics as the console shows them: `total_loss 2.5`. */
function shownMetrics(metrics: WeightedValues): string[] {
  const total = metrics.total_loss?.value;
  return Object.entries(metrics)
    .filter(([name, { value }]) => !name.startsWith('num_') && !isImplied(name, value, total))
    .map(([name, { value }]) => `${name} ${Number(value.toPrecision(5))}`);
}

/** Reports on one job. Must be closed at its end. */
export class Reporter {
  readonly #metrics: MetricsFile;
  readonly #line: ProgressLine;
  readonly #trackers: RunTrackers;
  readonly #events = new Map<string, EventFile>();
  readonly #isTraining: boolean;
  /** Number of examples left out that was printed last, by program. */
  readonly #skipped = new Map<string, number>();
  #wroteHow = false;
  readonly #notify = (line: string) => this.tell(line);
  /** Number of failed evaluations and decodes in this process. */
  failures = 0;

  constructor(
    private readonly options: JobOptions,
    private readonly course: Course,
  ) {
    this.#isTraining = options.mode.startsWith('train');
    const resume = this.#isTraining ? { resumeStep: course.firstStep, again: course.again } : {};
    this.#metrics = new MetricsFile(join(options.jobLogDir, 'metrics.jsonl'), {
      ...resume,
      notify: this.#notify,
    });
    this.#line = new ProgressLine({
      stream: process.stdout,
      totalSteps: course.numTrainSteps,
      everySteps: course.logIntervalSteps,
    });
    const { name, jobLogDir } = options;
    const run = () => ({ name, jobLogDir: resolve(jobLogDir), config: hparamsOf(settingsOf(options)) });
    this.#trackers = new RunTrackers(course.trackers ?? [], run, this.#notify);
  }

  /** Prints the model's size, and whether training starts from a checkpoint or initial values. */
  trainingStarts(task: SingleTask, globalBatchSize: number, restored: string | undefined): void {
    const { name, jobLogDir } = this.options;
    const parameters = task.variables.reduce((sum, { shape }) => sum + sizeOf(shape), 0);
    this.#line.message(
      `${name}: ${formatCount(parameters)} parameters, batches of ${globalBatchSize}, ` +
        `${this.course.numTrainSteps} steps, in ${jobLogDir}`,
    );
    if (restored !== undefined) this.#line.message(`Going on from ${restored}`);
    const { firstStep } = this.course;
    const settings = settingsOf(this.options);
    this.#eventFile(TRAIN).summaries(firstStep, {
      'Total Num Params': formatGrouped(parameters),
      'Global batch size': String(globalBatchSize),
      config: verbatim(settings),
    });
    // TensorBoard finds the metrics of a run in the folders below.
    this.#eventFile('').hparams(firstStep, hparamsOf(settings));
  }

  /** Prints permanent lines, above the live one. */
  tell(...lines: readonly string[]): void {
    for (const line of lines) this.#line.message(line);
  }

  /** Updates the live line after a step without a summary. */
  progress(step: number, meter: TrainMeter): void {
    const { lastLoss: loss, throughput, mfu, inputWait, waitTag, skippedExamples } = meter;
    const skipped = skippedExamples.count;
    this.#line.update({ step, loss, throughput, mfu, inputWait, waitTag, skipped });
  }

  trainSummary(step: number, scalars: Scalars, meter: TrainMeter, media: Summaries): void {
    this.#write(TRAIN, step, { ...scalars, ...media }, this.#howMeasured(meter));
    this.progress(step, meter);
  }

  /** Prints a warning about a step with a skipped update. */
  invalidStep(step: number, { update, loss }: TrainReport, skipped: number): void {
    // One line per step would bury everything else if all steps are invalid.
    if (skipped > 3 && skipped % 100 !== 0) return;
    this.#line.message(
      `Step ${step}: update left out, loss ${loss}, gradient norm ${update.rawGradNorm} (${skipped} so far).`,
    );
  }

  /**
   * Tells the data rows of a step whose loss is a spike, or whose update was left out.
   *
   * @param bound the one that the loss is above; undefined where it is below
   */
  lossSpike(step: number, { loss, update }: TrainReport, bound: number | undefined, rows: RowNames): void {
    const from = rows.length === 0 ? 'rows without names' : `the rows ${shortList(rows)}`;
    const what =
      bound === undefined
        ? 'The step without an update had'
        : `Loss ${loss} is a spike, above ${Number(bound.toPrecision(4))}: the step had`;
    this.#line.message(`Step ${step}: ${what} ${from}.`);
    this.#metrics.write({
      ...{ program: 'loss_spikes', step, loss, grad_norm: update.rawGradNorm },
      ...(bound !== undefined && { bound }),
      rows,
    });
  }

  /** Writes summaries of a program. */
  summary(program: string, step: number, summaries: Summaries): void {
    this.#write(program, step, summaries);
  }

  evaluated(program: string, step: number, result: EvalResult): void {
    const { metrics, tables, media, batches, skipped, seconds, throughput, changes } = result;
    this.#dataTold(program, changes, skipped);
    const scalars = {
      ...{ ...metricScalars(metrics), batches, ...throughputScalar(throughput) },
      ...skippedScalar(skipped),
    };
    const named = Object.entries(tables).map(([name, table]) => [`Metrics/${name}`, table] as const);
    const pictures = named.filter(([, { rows, columns }]) => rows.join() === columns.join());
    this.#write(
      program,
      step,
      {
        ...{ ...scalars, ...media },
        ...Object.fromEntries(named.map(([tag, table]) => [tag, tableMarkdown(table)])),
        ...Object.fromEntries(pictures.map(([tag, table]) => [`${tag}-image`, tableImage(table)])),
      },
      Object.fromEntries(named.map(([tag, table]) => [tag, tableFields(table)])),
    );
    const shown = shownMetrics(metrics);
    const took = `${batches} ${batches === 1 ? 'batch' : 'batches'} in ${seconds.toFixed(1)} s`;
    this.#line.message(
      `${program} at step ${step}: ${shown.join(', ')}, ${took}, ${formatThroughput(throughput)}`,
    );
    for (const [name, table] of Object.entries(tables))
      this.#line.message(`${name} (${program}):\n${tableText(table)}`);
  }

  decoded(program: string, step: number, result: DecodeResult): void {
    const { metrics, examples, path, skipped, seconds, throughput, changes } = result;
    this.#dataTold(program, changes, skipped);
    const shown = examples.slice(0, printedExamples).map(decodedText);
    const scalars = {
      ...{ num_examples: examples.length, ...throughputScalar(throughput) },
      ...skippedScalar(skipped),
    };
    const tagged = Object.entries(scalars).map(([name, value]) => [`decode_metrics/${name}`, value]);
    this.#write(program, step, {
      ...metricScalars(metrics),
      ...Object.fromEntries(tagged),
      decoded: verbatim(shown.join('\n\n')),
    });
    const took = `${examples.length} examples in ${seconds.toFixed(1)} s`;
    const parts = [...shownMetrics(metrics), took, formatThroughput(throughput)];
    if (path !== undefined) parts.push(`in ${path}`);
    this.#line.message(`${program} at step ${step}: ${parts.join(', ')}`);
    for (const text of shown) this.#line.message(text);
  }

  inferred(program: string, step: number, result: InferResult): void {
    const { numExamples, path, skipped, seconds, throughput, changes } = result;
    this.#dataTold(program, changes, skipped);
    const scalars = { num_examples: numExamples, ...throughputScalar(throughput), ...skippedScalar(skipped) };
    this.#write(program, step, scalars);
    this.#line.message(
      `${program} at step ${step}: ${numExamples} examples, ${seconds.toFixed(1)} s, ${formatThroughput(throughput)}, in ${path}`,
    );
  }

  /** Prints the failure of a program. */
  failed(program: string, step: number, error: Error, goesOn: boolean): void {
    this.failures += 1;
    // The author of an input or layer needs the line that threw.
    const isOwn = /^(Type|Range|Reference|Syntax)?Error$/.test(error.name);
    const told = isOwn ? error.stack : error.message;
    this.#line.message(
      `${program} at step ${step} failed, ${goesOn ? 'training goes on' : 'training stops (onEvalError)'}: ${told}`,
    );
    this.#metrics.write({ program, step, error: error.message });
  }

  /** @param ended why a program ended training early, if one did */
  trainingEnds(
    step: number,
    { meanThroughput, skippedExamples }: TrainMeter,
    signal: StopSignalName | undefined,
    ended: string | undefined,
  ): void {
    const { jobLogDir, name, mode } = this.options;
    this.#skippedTold(TRAIN, skippedExamples);
    if (this.failures > 0) {
      const what =
        this.failures === 1 ? 'One evaluation or decode' : `${this.failures} evaluations or decodes`;
      this.#line.message(`${what} failed; see above, and "error" in ${join(jobLogDir, 'metrics.jsonl')}.`);
    }
    if (ended !== undefined) this.#line.message(`Training ends at step ${step}: ${ended}`);
    else if (signal && step < this.course.numTrainSteps) {
      this.#line.message(savedLine(this.options, step, this.course.numTrainSteps));
      return;
    }
    const speed = meanThroughput ? ` at ${formatThroughput(meanThroughput)}` : '';
    this.#line.message(
      `Trained ${name} to step ${step}${speed}; everything is in ${jobLogDir}${mode === 'train' ? '' : ', TensorBoard events in its summaries'}`,
    );
  }

  async close(): Promise<void> {
    this.#line.finish();
    this.#trackers.close();
    for (const events of this.#events.values()) events.close();
    this.#metrics.close();
  }

  /** Terms of MFU, added to the first summary with one, so that it can be verified. */
  #howMeasured({ cost, firstStepSeconds }: TrainMeter): MetricsLine {
    if (this.#wroteHow || cost === undefined) return {};
    this.#wroteHow = true;
    return {
      peak_tflops: cost.peak.flops / 1e12,
      peak_source: cost.peak.source,
      model_flops_per_step: cost.flops,
      palm_flops_per_step: cost.productFlops,
      causal_flops_per_step: cost.visibleFlops,
      seconds_to_first_step: firstStepSeconds ?? null,
    };
  }

  #dataTold(program: string, changes: string | undefined, skipped: Skipped): void {
    this.#skippedTold(program, skipped);
    if (changes !== undefined)
      this.#line.message(
        `${program}: its data is not what this run read at first, so figures of before do not compare: ${changes}.`,
      );
  }

  #skippedTold(program: string, skipped: Skipped): void {
    // An evaluation reads the same data each time.
    if (skipped.count === (this.#skipped.get(program) ?? 0)) return;
    this.#skipped.set(program, skipped.count);
    this.#line.message(`${program}: ${describeSkipped(skipped)}`);
  }

  /** Writes a program's summaries to TensorBoard, the scalars to metrics.jsonl. @param notes text for metrics.jsonl only */
  #write(program: string, step: number, summaries: Summaries, notes: MetricsLine = {}): void {
    this.#eventFile(program).summaries(step, summaries);
    const numbers = Object.entries(summaries).filter(([, value]) => typeof value === 'number');
    if (numbers.length === 0) return;
    const scalars = Object.fromEntries(numbers) as Scalars;
    this.#metrics.write({ program, step, ...scalars, ...notes });
    this.#trackers.log({ program, step, scalars });
  }

  /** Opened at the first summary, so that programs without one leave no empty file. */
  #eventFile(program: string): EventFile {
    let events = this.#events.get(program);
    if (!events) {
      const directory = join(this.options.jobLogDir, 'summaries', program);
      const resumeStep = this.#isTraining ? this.course.firstStep : undefined;
      events = new EventFile(directory, { resumeStep, notify: this.#notify });
      this.#events.set(program, events);
    }
    return events;
  }
}

/** Tells that the state of a run that is not at its end was saved. */
export function savedLine(
  { checkpoint }: Pick<JobOptions, 'checkpoint'>,
  step: number,
  numTrainSteps: number,
): string {
  // With it, each command goes back.
  const without = isOfOwnRun(checkpoint) ? ' without --checkpoint' : '';
  return `Saved at step ${step} of ${numTrainSteps}; the same command${without} goes on from there.`;
}

/** A text as TensorBoard is to show it: four spaces keep Markdown from reading it. */
export const verbatim = (text: string): string => text.replace(/^/gm, '    ');

/** The fields of a job's configs that are set, as `path : value` lines. */
const settingsOf = (options: JobOptions): string => describeConfigs(options, { unset: false });

/** The fields of `path : value` lines as hyperparameters: numbers, and the text of all others. */
function hparamsOf(settings: string): Record<string, number | string> {
  const fields = [...settings.matchAll(/^(.*?) : (.*)$/gm)].map(([, path, value]) => [
    path,
    Number.isFinite(Number(value)) ? Number(value) : value,
  ]);
  return Object.fromEntries(fields);
}

/** Names in a line, the first eight of many. */
export function shortList(names: readonly string[]): string {
  const shown = names.length > 8 ? [...names.slice(0, 8), `and ${names.length - 8} more`] : names;
  return shown.join(', ');
}

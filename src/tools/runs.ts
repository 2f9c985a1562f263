/** @file `luthier runs`: a table of trained runs by a metric, with the settings that differ. */
import { nonEmpty } from '../cli/commandLine/index.js';
import { showFile } from '../registry/names/index.js';
import type { ComparedRun, CompareOptions, RunComparison } from '../runs/index.js';
import { headedTable, UsageError } from '../system/text/index.js';
import type { Command, Report } from './command.js';
import { runsIn } from './runDirectories.js';

/** `-accuracy`: the highest value is best; `+loss`: the lowest one; `loss`: as the runs track it. */
function parseSort(text: string, flag: string): CompareOptions {
  const [, sign, metric = ''] = /^([+-]?)(.*)$/s.exec(text)!;
  const best = ({ '-': 'max', '+': 'min' } as const)[sign!];
  return { metric: nonEmpty(metric, flag), best };
}

/** JSON has no non-finite numbers: they are texts. */
const plain = (at: ComparedRun['last']): object | null => {
  if (at === undefined) return null;
  return { step: at.step, value: Number.isFinite(at.value) ? at.value : String(at.value) };
};

function documentOf({ run, last, best, settings }: ComparedRun): object {
  const { directory, state, reason = null, step, numTrainSteps = null, seconds = null, problems } = run;
  return {
    ...{ directory: showFile(directory), state, reason, step, numTrainSteps, seconds },
    ...{ last: plain(last), best: plain(best), settings, problems },
  };
}

async function reportOf(comparison: RunComparison): Promise<Report> {
  const { runTable } = await import('../runs/index.js');
  const names = comparison.runs.map(({ run }) => [run.directory, { name: showFile(run.directory) }] as const);
  const { header, rows, below } = runTable(comparison, new Map(names));
  return {
    text: (paint) => `${headedTable(rows, header, paint)}\n\n${below.join('\n')}`,
    json: () => ({
      ...{ metric: comparison.metric ?? null, best: comparison.best, differing: comparison.differing },
      following: comparison.following,
      runs: comparison.runs.map(documentOf),
    }),
  };
}

export const runs: Command = {
  usage: 'DIR…',
  positionals: [1, Number.POSITIVE_INFINITY],
  flags: {
    sort: {
      ...{ key: 'sort', value: 'METRIC', parse: parseSort },
      about:
        'The metric, best runs first: PROGRAM/NAME as in metrics.jsonl (eval_test_validation/total_loss, train/learning/lr), ' +
        'or its end: evaluations come first. -METRIC: higher values are better, +METRIC: lower ones; otherwise ' +
        'task.train.trackMetric decides, else lower ones are. Default: the metric that the runs track, else the evaluation ' +
        'loss, else the training loss.',
    },
  },
  changes: false,
  details: [
    'Lists the job directories in each DIR, at any depth, by the best value of the metric. What differs between the runs',
    'follows: constants that flags set, then settings of model_params.txt, without those that follow from the constants.',
    'The state is running, finished, stopped (by a signal, and saved), failed (by an error, shown',
    'below the table) or unfinished (killed). The duration is that of all processes that trained the run.',
    '',
    '  npx luthier runs out --sort=-fraction_of_correct_next_step_preds',
    '',
    'Exit codes: 0; 1 if a run has missing or broken files; 2 for a wrong command line, or no run.',
  ].join('\n'),
  async run({ positionals, values }) {
    const directories = runsIn(positionals);
    const { compareRuns, readRun, UnknownMetric } = await import('../runs/index.js');
    const summaries = [];
    for (const directory of directories) summaries.push(await readRun(directory));
    try {
      const comparison = compareRuns(summaries, values.sort as CompareOptions | undefined);
      const isWhole = summaries.every(({ problems }) => problems.length === 0);
      return { ...(await reportOf(comparison)), exitCode: isWhole ? 0 : 1 };
    } catch (error) {
      throw error instanceof UnknownMetric ? new UsageError(error.message) : error;
    }
  },
};

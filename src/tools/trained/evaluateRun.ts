/** @file `luthier evaluate`: metrics of a trained language model on tasks. */
import { nonEmpty } from '../../cli/commandLine/index.js';
import { textTable, UsageError } from '../../system/text/index.js';
import { readTask } from '../../tasks/index.js';
import { evaluateTask, type TaskResult } from '../../trained/index.js';
import type { Arguments, Command, Report } from '../command.js';
import { runOf, trainedFlags } from './trainedFlags.js';

async function evaluated(args: Arguments): Promise<Report> {
  const { tasks: files } = args.values as { readonly tasks?: readonly string[] };
  if (files === undefined) throw new UsageError('luthier evaluate: no tasks: --tasks=FILE,… is required.');
  // Bad lines are told before a model is loaded.
  const tasks = files.map(readTask);
  const run = await runOf(args, { parametersOf: 'eval' });
  const results: TaskResult[] = [];
  for (const task of tasks) results.push(await evaluateTask(run, task));
  await run.dispose();
  const rows = results.flatMap(({ task, examples, metrics }) =>
    Object.entries(metrics)
      .filter(([name]) => !name.endsWith('_stderr'))
      .map(([name, value]) => {
        const error = metrics[`${name}_stderr`];
        return [
          task,
          `${examples}`,
          name,
          value.toFixed(4),
          error === undefined ? '' : `± ${error.toFixed(4)}`,
        ];
      }),
  );
  return {
    text: () =>
      `${run.name} at step ${run.step}\n${textTable(rows, ['task', 'examples', 'metric', 'value', 'error'])}`,
    json: () => ({ experiment: run.name, step: run.step, isAveraged: run.isAveraged, tasks: results }),
  };
}

export const evaluateCommand: Command = {
  usage: 'DIR',
  positionals: [1, 1],
  flags: {
    tasks: {
      ...{ key: 'tasks', value: 'FILE,…' },
      about: 'Files in JSON Lines, each a task.',
      parse: (text, flag) => text.split(',').map((file) => nonEmpty(file.trim(), flag)),
    },
    ...trainedFlags,
  },
  changes: false,
  details: [
    'The keys of the lines make the kind of a task:',
    '',
    '  {"context": "The sky is", "choices": ["blue", "loud"], "answer": 0}   acc and acc_norm, by log-likelihood',
    '  {"text": "A whole text."}                                            perplexity of words and bytes, bits a byte',
    '  {"prompt": "2 + 2 =", "answer": ["4", "four"], "stop": ["\\n"]}       exact_match of a greedy continuation',
    '',
    'Metrics are those of lm-evaluation-harness. The weights are those that evaluations use.',
    '',
    '  npx luthier evaluate out/lm_small --tasks=choices.jsonl,texts.jsonl',
    '',
    'Exit codes: 0; 1 if the run has no checkpoint or is no language model; 2 for a wrong command line or task.',
  ].join('\n'),
  run: evaluated,
};

/** @file Published weights from the command line: trained on, saved, and continued with the tokenizer that is beside them. */
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runLuthier } from '../command.js';
import { scratchProject } from '../tools/scratch.js';

const published = join(import.meta.dirname, '../fixtures/published/gpt2');

/** The experiment of docs/guide/fine-tuning.md with other data. */
const experiment = `\
import { AdamW, CheckpointLoadingRules, Experiment, LanguageModel, Learner, pretrainedLm, SingleTask, TextInput, Train } from 'luthier';
import { PretrainedTokenizer } from 'luthier/inputs';

const folder = 'models/gpt2';

export class FineTuned extends Experiment {
  override task() {
    return SingleTask.config({
      model: LanguageModel.config({ lmTpl: pretrainedLm(folder) }),
      train: Train.config({
        learner: Learner.config({ optimizer: AdamW.config({ learningRate: 2e-2 }) }),
        numTrainSteps: 12,
        summaryIntervalSteps: 1,
        initFromCheckpoint: [CheckpointLoadingRules.config({ checkpoint: folder })],
      }),
    });
  }

  override datasets() {
    const tokenizer = PretrainedTokenizer.config({ file: \`\${folder}/tokenizer.json\` });
    const values = { files: ['numbers.txt'], tokenizer, seqLen: 16, batchSize: 4 };
    return [TextInput.config({ ...values, name: 'train', isTraining: true, sampling: 'random' })];
  }
}
`;

test('a tiny GPT-2 is fine-tuned by the command line, and writes', async () => {
  const project = scratchProject({ 'experiments/numbers.ts': experiment });
  mkdirSync(join(project, 'models'));
  cpSync(published, join(project, 'models/gpt2'), { recursive: true });
  writeFileSync(join(project, 'numbers.txt'), 'one two three four five six seven eight nine ten '.repeat(40));
  const trained = await runLuthier(
    ['train', '--exp=numbers.FineTuned', '--job_log_dir=out/fine', '--engine=onnx'],
    project,
  );
  expect(trained.code, trained.stderr).toBe(0);
  expect(trained.stdout).toMatch(/\nInitial values of (\d+) of \1 variables come from models\/gpt2\.\n/);
  const run = join(project, 'out/fine');
  const record = JSON.parse(readFileSync(join(run, 'init_from_checkpoint.json'), 'utf8'));
  expect(record).toMatchObject({ checkpoints: [{ path: 'models/gpt2' }], notLoaded: [] });
  expect(record.checkpoints[0].variables['lm/softmax/w']).toBe('transformer.wte.weight');
  const losses = readFileSync(join(run, 'metrics.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
    .filter(({ program }) => program === 'train')
    .map(({ loss }) => loss as number);
  expect(losses.at(-1)).toBeLessThan(losses[0]! - 1);

  const args = [
    'generate',
    'out/fine',
    '--prompt=one two',
    '--max_tokens=8',
    '--format=json',
    '--engine=onnx',
  ];
  const written = await runLuthier(args, project);
  expect(written.code, written.stderr).toBe(0);
  const [completion] = JSON.parse(written.stdout).completions;
  expect(completion).toMatchObject({ prompt: 'one two', tokens: 8 });
  expect(completion.text).not.toBe('');
});

/** @file luthier diff RUN, checked by going on: the same sentence, and an exit code that is 1 where the job's is not 0. */
import { cpSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect } from 'vitest';
import { runCommand, runLuthier, temporaryDirectory } from '../command.js';
import { withCommandEnvironment } from '../loader.js';
import { kinds } from './kinds.js';
import { repositoryOf, type TestRepository } from './repository.js';
import { type Edits, instead } from './scratchReview.js';

const test = kinds(3);

withCommandEnvironment();

const corpus = 'the ship sails over a calm grey sea at night. '.repeat(60);
const FILE = 'experiments/text.ts';
const experiments = `import { z } from 'zod';
import { Experiment } from 'luthier';
import { TextInput } from 'luthier/inputs';
import { AdamW, Learner } from 'luthier/learners';
import { gpt2Lm, LanguageModel } from 'luthier/models';
import { SingleTask, Train } from 'luthier/tasks';

class OwnModel extends LanguageModel.with({}) {}

export class Plain extends Experiment.with({ numHeads: z.int().default(2), rate: z.number().default(1e-2) }) {
  override task() {
    const lmTpl = gpt2Lm({ vocabSize: 256, modelDims: 8, numLayers: 1, numHeads: this.numHeads, maxSeqLength: 16 });
    const optimizer = AdamW.config({ learningRate: this.rate });
    return SingleTask.config({
      model: OwnModel.config({ lmTpl }),
      train: Train.config({ learner: Learner.config({ optimizer }), numTrainSteps: 3, summaryIntervalSteps: 1 }),
    });
  }
  override datasets() {
    return [TextInput.config({ name: 'train', isTraining: true, files: ['corpus.txt'], batchSize: 2, seqLen: 8 })];
  }
}
`;

let repository: TestRepository;
let run: string;
const flags = ['--exp=text.Plain', '--engine=eager', '--set', 'rate=0.02'];

beforeAll(async () => {
  repository = repositoryOf({ [FILE]: experiments, 'corpus.txt': corpus });
  run = join(temporaryDirectory(), 'run');
  const { code, stdout, stderr } = await runCommand([...flags, `--job_log_dir=${run}`], repository.folder);
  expect(code, stdout + stderr).toBe(0);
}, 120_000);

/** What the review says of an edit, and what a job says that goes on for a step, each with its exit code. */
async function told(edits: Edits, given: readonly string[] = []) {
  const { folder, git, write } = repository;
  git('reset', '--quiet', '--hard', 'main');
  const edited = Object.entries(edits).map(([file, edit]) => [
    file,
    typeof edit === 'string' ? edit : edit(readFileSync(join(folder, file), 'utf8')),
  ]);
  write(Object.fromEntries(edited));
  const review = await runLuthier(['diff', run, ...given], folder);
  const copy = temporaryDirectory();
  cpSync(run, copy, { recursive: true });
  const more = ['--set', 'task.train.numTrainSteps=4'];
  const job = await runCommand([...flags, ...given, ...more, `--job_log_dir=${copy}`], folder);
  const text = review.stdout.replaceAll(run, 'RUN').replace(/--base=\w+/, '--base=COMMIT');
  return { code: review.code, text: text + review.stderr, job };
}

test('with nothing changed, by the flags that the run was started with', async () => {
  const { code, text, job } = await told({});
  expect([code, job.code]).toEqual([0, 0]);
  expect(text).toMatchInlineSnapshot(`
    "1 the same
    RUN, step 3 → working tree

    Note: text.Plain goes on with the same bits.

    Note: Settings were compared, and both by the code of now; what the code computed then is not known. npx luthier diff text.Plain --base=COMMIT --exact compares it.
    "
  `);
});

test('changed settings', async () => {
  const { code, text, job } = await told({}, ['--set', 'task.train.learner.optimizer.beta1=0.5']);
  expect([code, job.code]).toEqual([0, 0]);
  expect(text).toMatchInlineSnapshot(`
    "1 changes at the same cost
    RUN, step 3 → working tree

    text.Plain
      Fields
        task.train.learner.optimizer.beta1 : 0.9 (default) → 0.5  (--set task.train.learner.optimizer.beta1=0.5; was default of AdamW)

    Parameters, FLOPs, tokens and memory as before: text.Plain

    Runs go on changed: text.Plain
      optimizer update

    Note: Settings were compared, and both by the code of now; what the code computed then is not known. npx luthier diff text.Plain --base=COMMIT --exact compares it.
    "
  `);
});

test('another model', async () => {
  const { code, text, job } = await told({ [FILE]: instead('z.int().default(2)', 'z.int().default(4)') });
  expect([code, job.code]).toEqual([1, 1]);
  expect(text).toMatchInlineSnapshot(`
    "1 can't go on from its checkpoints
    RUN, step 3 → working tree

    text.Plain
      Fields
        task.model.lmTpl.stackedTransformerTpl.numHeads : 2 → 4  (luthier/src/models/presets/layerNormStack.ts:26; forces a new run)

    Consequences                           before   after
    text.Plain    Peak memory of training  165 kB  165 kB  +128 B, +0.078%

    Runs cannot go on: text.Plain
      forced by task.model.lmTpl.stackedTransformerTpl.numHeads: 2 → 4
      RUN/checkpoints/checkpoint_00000003: not compatible with this model, 4 differences
      initFromCheckpoint would load 7 of 11 variables, not lm/transformer/x_layers_0/self_attention/key/w, lm/transformer/x_layers_0/self_attention/query/w, lm/transformer/x_layers_0/self_attention/value/w, lm/transformer/x_layers_0/self_attention/post/w
      lm/transformer/x_layers_0/self_attention/key/w [8, 2, 4] float32 → [8, 4, 2] float32
      lm/transformer/x_layers_0/self_attention/query/w [8, 2, 4] float32 → [8, 4, 2] float32
      lm/transformer/x_layers_0/self_attention/value/w [8, 2, 4] float32 → [8, 4, 2] float32
      lm/transformer/x_layers_0/self_attention/post/w [8, 2, 4] float32 → [8, 4, 2] float32

    Note: Settings were compared, and both by the code of now; what the code computed then is not known. npx luthier diff text.Plain --base=COMMIT --exact compares it.
    "
  `);
  expect(job.stderr).toContain('not compatible with this model');
});

test('an edited corpus', async () => {
  const { code, text, job } = await told({ 'corpus.txt': corpus.replace('calm', 'wild') });
  expect([code, job.code]).toEqual([1, 1]);
  const [, error] = /Runs cannot go on: text\.Plain\n {2}(.*)/.exec(text)!;
  expect(job.stderr).toContain(error!.split(' Since the run began')[0]);
});

test('recorded settings of a class that is gone', async () => {
  const { code, text, job } = await told({ [FILE]: (source) => source.replaceAll('OwnModel', 'OurModel') });
  expect([code, job.code]).toEqual([0, 0]);
  expect(text).toMatchInlineSnapshot(`
    "1 the same
    RUN, step 3 → working tree

    Note: text.Plain goes on; whether with the same bits is not known.

    Note: The recorded settings can't be read by this code: 'OwnModel' is unknown: the document has it from ./experiments/text.ts, which does not export it. Export it there; if it has moved, name its file under "modules"; if it was renamed, call registerAlias.
    "
  `);
});

test('the flags of now come after those of the run', async () => {
  const { code, text } = await told({}, ['--set', 'numHeads=4']);
  expect(code).toBe(1);
  expect(text).toContain('forced by task.model.lmTpl.stackedTransformerTpl.numHeads: 2 → 4');
});

test('no run, and a run without a checkpoint', async () => {
  const { folder } = repository;
  const none = await runLuthier(['diff', 'experiments'], folder);
  const copy = join(temporaryDirectory(), 'run');
  cpSync(run, copy, { recursive: true });
  rmSync(join(copy, 'checkpoints'), { recursive: true });
  const bare = await runLuthier(['diff', copy], folder);
  expect([none.code, bare.code]).toEqual([2, 2]);
  expect([none.stderr, bare.stderr.replaceAll(copy, 'RUN')]).toMatchInlineSnapshot(`
    [
      "experiments: expected the directory of a run, which has an experiment.json, and there is none.
    ",
      "RUN: No checkpoints were found in directory checkpoint_dir=RUN
    ",
    ]
  `);
});

/** @file Whatever ends a run, its work is saved, told, and gone on with as if nothing had been. */

import { cpSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, expect, test, vi } from 'vitest';
import { oneProcess, project, startCommand, temporaryDirectory } from '../command.js';
import { answers } from '../fixtures/faults/experiments/answers.js';
import { longTest } from '../longTest.js';
import { readEvents } from '../summaries/readEvents.js';
import { stateAt, stepReached, untimedLines as untimed } from './runs.js';

const faults = fileURLToPath(new URL('../fixtures/faults', import.meta.url));
const run = oneProcess('src/main.ts', faults);
const corpus = join(project, 'corpus/counting.txt');

const flags = (directory: string, ...sets: readonly string[]) => [
  ...['--exp=faulty.Faulty', `--job_log_dir=${directory}`, '--mode=train_and_decode'],
  ...[`dataPath=${corpus}`, 'numTrainSteps=12', ...sets].flatMap((set) => ['--set', set]),
];

const checkpoints = (directory: string) =>
  readdirSync(join(directory, 'checkpoints')).map((name) => Number(name.replace('checkpoint_', '')));

let whole: string;

beforeAll(async () => {
  whole = temporaryDirectory();
  const { code, stderr } = await run(flags(whole));
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
});

/** Starts it again as it should have been, and looks whether it comes to what an undisturbed run comes to. */
async function expectToGoOn(directory: string): Promise<void> {
  const { code, stderr, stdout } = await run(flags(directory));
  expect({ code, stderr }, stdout).toEqual({ code: 0, stderr: '' });
  expect(stateAt(directory, 12).equals(stateAt(whole, 12))).toBe(true);
  expect(untimed(directory)).toEqual(untimed(whole));
}

test('evaluations read all of the data from its start; rolling ones go on and start over', () => {
  const lines = untimed(whole);
  const of = (name: string) => lines.filter(({ program }) => program === name);
  expect(lines.filter(({ program }) => program === 'train').map(({ step }) => step)).toEqual([5, 10, 12]);
  expect(of('eval_test_validation').map(({ step, batches }) => [step, batches])).toEqual(
    [3, 6, 9, 12].map((step) => [step, 5]),
  );
  // 14 rows in batches of 3: the fifth batch has 2 rows, and 1 label fewer.
  const weights = of('eval_test_rolling').map((line) => line['Metrics/log_pplx-weight']);
  expect(weights).toEqual([96, 96, expect.any(Number), 96]);
  expect(weights[2]).toBeLessThan(96);
  expect(of('decode_test_validation').map(({ step }) => step)).toEqual([6, 12]);
});

test('the layers that were built, and the sources of the state, are in files', () => {
  const read = (name: string) => readFileSync(join(whole, name), 'utf8');
  expect(read('post_init_model_params.txt')).toMatch(/^lm\/transformer : class StackedTransformer$/m);
  expect(read('train_state_provenance.txt')).toMatch(/^mdl_vars\/lm\/softmax\/w : random_init$/m);
});

test('decodes are texts for TensorBoard, told as Markdown shows them unchanged', () => {
  const events = readEvents(join(whole, 'summaries/decode_test_validation'));
  const texts = events.filter(({ plugin }) => plugin === 'text');
  expect(texts.map(({ step, tag }) => [step, tag])).toEqual([
    [6, 'decoded'],
    [12, 'decoded'],
  ]);
  for (const { step, strings } of texts) {
    const path = join(whole, `decoder_out/validation/decoder_out_${step}_shard_0.jsonl`);
    const examples = readFileSync(path, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    const told = examples
      .map(({ prefix, decoded_substr }) => `---\n${prefix}\n>>>\n${decoded_substr}`)
      .join('\n\n');
    expect(String(strings[0])).toBe(told.replace(/^/gm, '    '));
  }
});

test('an input that fails: its error, the state of the last step, and the same end as without it', async () => {
  const directory = temporaryDirectory();
  const { code, stderr, stdout } = await run(flags(directory, 'datasets[0].failsAt=7'));
  expect(code).toBe(1);
  expect(stderr).toMatch(/^Error: the shelf fell over\n {4}at FaultyText\.getNext .*faulty\.ts/);
  expect(stdout).toContain('\nSaved at step 7 of 12; the same command goes on from there.\n');
  expect(checkpoints(directory).at(-1)).toBe(7);
  await expectToGoOn(directory);
});

test.each(['timer', 'rejection'])('an error that nobody awaits, by a %s: the same', async (strays) => {
  const directory = temporaryDirectory();
  const { code, stderr, stdout } = await run(
    flags(directory, 'datasets[0].straysAt=7', `datasets[0].strays=${strays}`),
  );
  expect(code).toBe(1);
  expect(stderr).toMatch(/^Error: the shelf fell over\n {4}at .*faulty\.ts/);
  const saved = checkpoints(directory).at(-1)!;
  expect([7, 8]).toContain(saved);
  expect(stdout).toContain(`\nSaved at step ${saved} of 12; the same command goes on from there.\n`);
  await expectToGoOn(directory);
});

longTest('an input that never answers ends the run, saved, and an evaluation of it', async () => {
  const directory = temporaryDirectory();
  const never = (dataset: number, at: number, ...more: string[]) => {
    const sets = [`datasets[${dataset}].straysAt=${at}`, `datasets[${dataset}].strays=never`];
    return startCommand([...flags(directory, ...sets), ...more], faults).finished;
  };
  const told =
    'The run awaits a promise that nothing is left to settle: no timer, file, thread or connection is open. ' +
    'Settle every promise that an input, an evaluation or a program of your own returns.\n';
  const { code, stderr, stdout } = await never(0, 7);
  expect({ code, stderr }, stdout).toEqual({ code: 1, stderr: told });
  expect(checkpoints(directory).at(-1)).toBe(7);
  expect(await never(1, 2, '--mode=eval')).toMatchObject({ code: 1, stderr: told });
});

longTest(
  'a corpus deleted before its prefetch thread reads it is named, and the state is saved',
  async () => {
    const directory = temporaryDirectory();
    const deleted = join(directory, 'counting.txt');
    cpSync(corpus, deleted);
    const reading = ['datasets[0].deletesAt=1', 'datasets[0].prefetchBatches=2', `dataPath=${deleted}`];
    const unending = ['numTrainSteps', 'task.train.evalIntervalSteps', 'task.train.summaryIntervalSteps'];
    const sets = [
      ...reading,
      ...[...unending, 'task.train.saveIntervalSteps'].map((path) => `${path}=100000000`),
    ];
    const { code, stdout, stderr } = await run([...flags(directory, ...sets), '--mode=train']);
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: `Input 'train' failed in its prefetch thread: ${deleted} was deleted after the start. Restore it.\n`,
    });
    const saved = checkpoints(directory).at(-1)!;
    expect(saved).toBeGreaterThan(1);
    expect(stdout).toContain(`\nSaved at step ${saved} of 100000000; the same command goes on from there.\n`);
  },
);

test('a shape error in a custom layer names its path, and its file and line before those of the framework', async () => {
  const sets = ['--set', `dataPath=${corpus}`];
  const { code, stderr } = await run([
    ...['--exp=misshapen.TinyMisshapen', `--job_log_dir=${temporaryDirectory()}`, ...sets],
  ]);
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /^CompilerError: matMul: expected inner dimensions that are equal, got 64 and 3 of float32\[[\d,]*64\] and float32\[3,3\]\. \(in layer 'lm\/transformer\/x_layers_0\/ff_layer\/ffn_layer1\/activation'\)\n {4}at Misshapen\.fprop \(experiments\/misshapen\.ts:9:15\)\n/,
  );
});

test('an id out of range is reported with its place; earlier batches are trained on and saved', async () => {
  const directory = temporaryDirectory();
  const { code, stderr, stdout } = await run(flags(directory, 'datasets[0].badIdAt=7'));
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /^Input 'train', step 8: ids\[1,1\] \(tokens \d+ to \d+ of split 'train'\) of its batch, 300 is not one of the 256 rows of float32\[256,16\], 0 to 255 \(in layer 'lm\/[\w/]+'\)\. task\.model\.lmTpl\.vocabSize is 256\.\n$/,
  );
  expect(stdout).toContain('\nSaved at step 7 of 12; the same command goes on from there.\n');
  await expectToGoOn(directory);
});

longTest('a training input that ends says how to fix it, at every start', async () => {
  const directory = temporaryDirectory();
  for (const start of ['first', 'second']) {
    const { code, stderr } = await run(flags(directory, 'datasets[0].endsAt=7'));
    expect({ code, stderr }, start).toEqual({
      code: 1,
      stderr:
        "Input 'train' has no more data at step 7, and training reads its data over and over. Set repeat=true of " +
        'the input, let an input of your own start over, or end the training here: --set task.train.numTrainSteps=7.\n',
    });
    expect(checkpoints(directory).at(-1)).toBe(7);
  }
  await expectToGoOn(directory);
});

test('a failing evaluation or decode is reported, and training continues', async () => {
  const directory = temporaryDirectory();
  const { code, stdout, stderr } = await run(flags(directory, 'datasets[1].failsAt=1', 'decodesFailAt=0'));
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toContain(
    '\neval_test_validation at step 3 failed, training goes on: Error: the shelf fell over\n    at ',
  );
  expect(stdout).toContain(
    `\n6 evaluations or decodes failed; see above, and "error" in ${directory}/metrics.jsonl.\nTrained faulty.Faulty`,
  );
  expect(stateAt(directory, 12).equals(stateAt(whole, 12))).toBe(true);
  const faulty = ['eval_test_validation', 'decode_test_validation'];
  const of = (job: string, fails: boolean) =>
    untimed(job).filter(({ program }) => faulty.includes(program as string) === fails);
  const error = 'the shelf fell over';
  expect(of(directory, true)).toEqual(of(whole, true).map(({ program, step }) => ({ program, step, error })));
  expect(of(directory, true).map(({ step }) => step)).toEqual([3, 6, 6, 9, 12, 12]);
  expect(of(directory, false)).toEqual(of(whole, false));
});

longTest('or training stops, saves, and later resumes with the missing evaluations', async () => {
  const directory = temporaryDirectory();
  const stopping = flags(directory, 'datasets[2].failsAt=0', 'task.train.onEvalError=stop');
  const { code, stdout, stderr } = await run(stopping);
  expect(code).toBe(1);
  expect(stderr).toMatch(/^Error: the shelf fell over\n/);
  expect(stdout).toContain(
    '\neval_test_rolling at step 3 failed, training stops (onEvalError): Error: the shelf',
  );
  expect(stdout).toContain('\nSaved at step 3 of 12; the same command goes on from there.\n');
  await expectToGoOn(directory);
  // A finished run that is started again tells its figures again, and nothing twice in metrics.jsonl.
  await expectToGoOn(directory);
});

longTest('consecutive invalid steps end the run; the good checkpoint before them stays', async () => {
  const directory = temporaryDirectory();
  const bad = ['datasets[0].nanFrom=4', 'numTrainSteps=40', 'task.train.maxInvalidSteps=7'];
  const { code, stdout, stderr } = await run(flags(directory, ...bad, 'task.train.evalIntervalSteps=100'));
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr:
      'Training ended at step 11 of 40: the updates of the last 7 steps were left out, loss NaN, gradient norm NaN. ' +
      'The first value that is not finite is handed in: NaN in batch.weights (float32[2,16]). ' +
      'The newest checkpoint before them is that of step 4; it is kept. ' +
      'A lower learning rate or clipGradientNormToValue of the optimizer may help; ' +
      'task.train.maxInvalidSteps=null goes on nevertheless.\n',
  });
  expect(stdout).toContain('Saved at step 11 of 40');
  expect(checkpoints(directory)).toEqual([4, 8, 11]);
  expect(stateAt(directory, 11).subarray(-4096).equals(stateAt(directory, 4).subarray(-4096))).toBe(true);

  const hot = ['learningRate=1e38', 'task.train.maxInvalidSteps=3', 'task.train.evalSkipTrain=true'];
  const unending = await run(flags(temporaryDirectory(), ...hot, 'task.train.maxInvalidSteps=null'));
  expect(unending).toMatchObject({ code: 0, stderr: '' });
  expect(unending.stdout).toMatch(
    /\nOf 12 steps, \d+ changed nothing: their updates were left out\.\nTrained/,
  );
  const burnt = await run(flags(temporaryDirectory(), ...hot));
  expect(burnt.code).toBe(1);
  expect(burnt.stderr).toMatch(
    /steps were left out.* The first value that is not finite is (NaN|infinity) in the result of \w+ \(float32\[[\d,]*\]\), in (the gradient of )?layer 'lm/,
  );
});

longTest(
  'steps beyond the last gradient norms are left out with their rows told, up to a budget, also over a resumption',
  async () => {
    const sets = [
      ...[
        'numTrainSteps=90',
        'datasets[0].scrambledAt=[70,80]',
        'learningRate=3e-3',
        'task.train.evalIntervalSteps=100',
      ],
      ...[
        'task.train.summaryIntervalSteps=100',
        'task.train.decodeIntervalSteps=100',
        'task.train.lossSpikeSigma=3',
      ],
      ...[
        'task.train.learner.skipStepGradientNormSigma=6',
        'task.train.learner.skipStepGradientNormWindow=40',
      ],
    ];
    const [ended, undisturbed] = [temporaryDirectory(), temporaryDirectory()];
    const { code, stdout, stderr } = await run(flags(ended, ...sets, 'task.train.invalidStepBudget=1'));
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(
        /^Training ended at step 81 of 90: of the last 1000 steps the updates of 2 were left out, loss [\d.]+, gradient norm [\d.]+\. The gradients before set a bound of [\d.]+ \(learner\.skipStepGradientNormSigma is 6\)\. The newest checkpoint before them is that of step \d+; it is kept\. A lower learning rate or clipGradientNormToValue of the optimizer may help; task\.train\.invalidStepBudget is 1, and null goes on nevertheless\.\n$/,
      ),
    });
    expect(stdout).toMatch(
      /\nStep 71: Loss [\d.]+ is a spike, above [\d.]+: the step had the rows tokens (\d+) to \d+ of split 'train', tokens \d+ to \d+ of split 'train'\.\n/,
    );
    for (const directory of [ended, undisturbed])
      expect(await run(flags(directory, ...sets))).toMatchObject({ code: 0, stderr: '' });
    expect(stateAt(ended, 90).equals(stateAt(undisturbed, 90))).toBe(true);
    expect(untimed(ended)).toEqual(untimed(undisturbed));
    const spikes = untimed(undisturbed).filter(({ program }) => program === 'loss_spikes');
    expect(spikes.map(({ step, rows }) => [step, (rows as unknown as string[]).length])).toEqual([
      [71, 2],
      [81, 2],
    ]);
  },
);

longTest('where nothing can be saved, the error is still that of the run', async () => {
  const directory = temporaryDirectory();
  const training = startCommand(
    flags(directory, 'numTrainSteps=60', 'task.train.summaryIntervalSteps=1'),
    faults,
  );
  await stepReached(directory, 2, training);
  // The run may be writing there: it makes the directory again where a save comes between the two.
  await vi.waitFor(() => {
    rmSync(join(directory, 'checkpoints'), { recursive: true, force: true });
    writeFileSync(join(directory, 'checkpoints'), '');
  });
  const { code, stdout, stderr } = await training.finished;
  expect(code, stdout).toBe(1);
  expect(stderr).toContain(`${directory}/checkpoints`);
  expect(stderr).toContain('ENOTDIR');
  expect(stdout).toMatch(/\nNot saved at step 60: .*ENOTDIR.* There is no checkpoint\.\n/);
});

test('more ids than the model has are an error before the first step', async () => {
  const directory = temporaryDirectory();
  const { code, stderr } = await run(flags(directory, 'task.model.lmTpl.vocabSize=60'));
  expect({ code, stderr }).toEqual({
    code: 2,
    stderr:
      "Input 'train': its tokenizer, ByteTokenizer, has 256 ids, and task.model.lmTpl.vocabSize is 60: the model knows " +
      'ids 0 to 59. Set task.model.lmTpl.vocabSize to 256 or more, or give the input a tokenizer with fewer ids.\n',
  });
  expect(existsSync(join(directory, 'experiment.json'))).toBe(false);
});

longTest("tasks' score and predict metrics are those of their examples", async () => {
  const directory = temporaryDirectory();
  const { code, stderr, stdout } = await run([
    ...['--exp=answers.Answers', `--job_log_dir=${directory}`, '--mode=train_and_decode'],
    ...['--set', 'numTrainSteps=12'],
  ]);
  expect({ code, stderr }, stdout).toEqual({ code: 0, stderr: '' });
  const lines = untimed(directory);
  const of = (program: string) => lines.find((line) => line.program === program)!;
  const both = of('eval_test_both');
  for (const [name, count] of [
    ['animals', 5],
    ['numbers', 3],
  ] as const) {
    // Each task alone, by the mean over its tokens.
    const alone = of(`eval_test_${name}`);
    const total = (alone['Metrics/log_pplx'] as number) * (alone['Metrics/log_pplx-weight'] as number);
    expect(alone['Metrics/mean']).toBeCloseTo(-total / count, 4);
    expect(both[`Metrics/${name}/mean`]).toBeCloseTo(-total / count, 4);
    expect(both[`Metrics/${name}/mean-weight`]).toBe(count);
  }
  const decoded = readFileSync(join(directory, 'decoder_out/both/decoder_out_12_shard_0.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(decoded.map(({ example_id }) => example_id)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  const given = decoded.map(({ prefix, seqio_targets }) => prefix.replace('\0', '') + seqio_targets);
  expect(given.toSorted()).toEqual(Object.values(answers).flat().toSorted());
  const metrics = of('decode_test_both');
  for (const [name, texts] of Object.entries(answers)) {
    const own = decoded.filter((_, i) => (texts as readonly string[]).includes(given[i]!));
    const right = own.filter((example) => example.decoded_substr === example.seqio_targets).length;
    const characters = own.reduce((sum, example) => sum + example.decoded_substr.length, 0);
    expect(metrics[`Metrics/${name}/exact`]).toBe(right / texts.length);
    expect(metrics[`Metrics/${name}/length`]).toBe(characters / texts.length);
  }
  expect(stdout).toContain(`animals/length ${metrics['Metrics/animals/length']}`);
});

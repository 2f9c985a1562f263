/**
 * @file What a run reports: the same throughput everywhere, in the unit of its data; every kind of summary for TensorBoard;
 * metrics of an evaluation on the console, equal and zero ones among them.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { decode, encode } from 'fast-png';
import { beforeAll, expect, test, vi } from 'vitest';
import { NONE_SKIPPED, type Skipped } from '../../src/inputs/index.js';
import { Reporter } from '../../src/programs/reporter.js';
import type { JobOptions } from '../../src/runs/options.js';
import { formatCount } from '../../src/system/text/index.js';
import { oneProcess, temporaryDirectory } from '../command.js';
import { writePictures } from '../fixtures/project/experiments/pictures.js';
import { fieldsOf, type ReadSummary, readEvents } from '../summaries/readEvents.js';
import { metricLines } from './runs.js';

const run = oneProcess('src/main.ts');
const directory = temporaryDirectory();
const summaries = (program: string) => readEvents(join(directory, 'summaries', program));
const tagged = (program: string, tag: string) => summaries(program).filter((summary) => summary.tag === tag);

let stdout: string;

beforeAll(async () => {
  const data = temporaryDirectory();
  writePictures(data, 60);
  const flags = ['--exp=pictures.Pictures', `--job_log_dir=${directory}`, '--mode=train_and_eval'];
  const ended = await run([...flags, '--set', `directory=${data}`]);
  expect({ ...ended, stdout: '' }).toEqual({ code: 0, stderr: '', stdout: '' });
  ({ stdout } = ended);
});

test('a program may keep files in the directory of the job', () => {
  const text = readFileSync(join(directory, 'weights.txt'), 'utf8');
  expect(text).toBe('32 weights at step 12');
});

test('trackers get what metrics.jsonl gets', () => {
  const newest = (program: string) => metricLines(directory).findLast((line) => line.program === program)!;
  const text = readFileSync(join(directory, 'metrics.prom'), 'utf8');
  for (const program of ['train', 'eval_train', 'eval_test_held_out', 'weights']) {
    const { program: _, ...line } = newest(program);
    const found = [...text.matchAll(/^luthier_\w+\{.*program="(\w+)",tag="([^"]+)"\} (\S+)$/gm)]
      .filter(([, each]) => each === program)
      .map(([, , tag, value]) => [tag, Number(value)]);
    expect(Object.fromEntries(found)).toEqual(line);
  }
});

test('throughput: one figure in metrics.jsonl, in TensorBoard and on the console, in training and evaluation', () => {
  const lines = metricLines(directory);
  const speeds = (program: string) =>
    lines
      .filter((line) => line.program === program)
      .map(({ step, images_per_sec }) => [step, images_per_sec] as const);
  expect(speeds('train').map(([step]) => step)).toEqual([4, 8, 12]);
  for (const program of ['train', 'eval_train', 'eval_test_held_out']) {
    const found = speeds(program);
    expect(found.length).toBeGreaterThan(0);
    expect(tagged(program, 'images_per_sec').map(({ step, scalar }) => [step, scalar])).toEqual(
      found.map(([step, speed]) => [step, Math.fround(speed as number)]),
    );
    const line = stdout
      .split('\n')
      .findLast((text) =>
        program === 'train' ? /^step +12\/12 /.test(text) : text.startsWith(`${program} at step 12: `),
      );
    expect(line).toContain(
      `  ${formatCount(found.at(-1)![1] as number)} images/s`.slice(program === 'train' ? 0 : 1),
    );
  }
  expect(stdout).toMatch(/^eval_train at step 12: .*, 1 batch in \d\.\d s, [\d.]+[kM]? images\/s$/m);
  expect(stdout).toMatch(
    /^eval_test_held_out at step 12: .*, 2 batches in \d\.\d s, [\d.]+[kM]? images\/s$/m,
  );
  expect(stdout).toMatch(
    /^Trained pictures\.Pictures to step 12 at [\d.]+[kM]? images\/s; everything is in /m,
  );
  expect(lines.some((line) => Object.keys(line).some((name) => /tokens|examples/.test(name)))).toBe(false);
});

/** The images of a summary, as bytes. */
function pixelsOf({ plugin, strings }: ReadSummary) {
  const [width, height, ...images] = strings;
  return { plugin, size: `${height}x${width}`, images: images.map((png) => [...decode(png).data]) };
}

test('images of layers: those of the step of a summary, and of the first batch of an evaluation', () => {
  const training = tagged('train', 'inputs_image');
  expect(training.map(({ step }) => step)).toEqual([4, 8, 12]);
  const [held] = tagged('eval_test_held_out', 'inputs_image');
  for (const summary of [...training, held!]) {
    const { plugin, size, images } = pixelsOf(summary);
    expect([plugin, size, images.length]).toEqual(['images', '4x4', 2]);
    for (const image of images) {
      expect(new Set(image).size).toBe(1);
      expect(image[0]! % 204).toBeLessThan(10);
    }
  }
  expect(new Set(training.map(({ strings }) => strings[2]!.toString('hex'))).size).toBeGreaterThan(1);
});

test('sounds, texts and histograms of layers, as TensorBoard has them', () => {
  for (const program of ['train', 'eval_test_held_out']) {
    const [image] = tagged(program, 'inputs_image');
    const [sound] = tagged(program, 'inputs_audio8000');
    expect([sound!.plugin, sound!.strings.length, String(sound!.strings[1])]).toEqual(['audio', 2, '']);
    // AudioPluginData: version 0, encoding WAV.
    expect([...fieldsOf(sound!.pluginContent!)]).toEqual([
      [1, [0]],
      [2, [11]],
    ]);
    const wav = sound!.strings[0]!;
    expect([wav.length, wav.readUInt32LE(24)]).toEqual([44 + 2 * 16, 8000]);
    const pixels = pixelsOf(image!).images[0]!;
    for (const [i, pixel] of pixels.entries())
      expect(wav.readInt16LE(44 + 2 * i) / 32767).toBeCloseTo(pixel / 255, 2);
    const [text] = tagged(program, 'labels_text');
    expect([text!.plugin, text!.strings.length]).toEqual(['text', program === 'train' ? 4 : 3]);
    expect(text!.strings.every((row) => ['0', '1'].includes(String(row)))).toBe(true);
    const [values] = tagged(program, 'inputs_histogram');
    expect(values!.plugin).toBe('histograms');
  }
});

test('histograms of parameters and gradients at their interval', () => {
  const histograms = summaries('train').filter(
    ({ plugin, tag }) => plugin === 'histograms' && tag !== 'inputs_histogram',
  );
  const paths = ['logits/linear/w', 'logits/bias/b'];
  const tags = ['params', 'gradients'].flatMap((prefix) => paths.map((path) => `${prefix}/${path}`));
  expect(histograms.map(({ step, tag }) => `${step} ${tag}`).sort()).toEqual(
    [6, 12].flatMap((step) => tags.map((tag) => `${step} ${tag}`)).sort(),
  );
  for (const { tag, content } of histograms) {
    const counts = Array.from({ length: content!.length / 24 }, (_, i) => content!.readDoubleLE(24 * i + 16));
    expect(counts.reduce((a, b) => a + b, 0)).toBe(tag.endsWith('/b') ? 2 : 32);
  }
});

test('the configs as a text, and as hyperparameters', () => {
  const [config] = tagged('train', 'config');
  expect(config!.plugin).toBe('text');
  const lines = config!.strings[0]!.toString().split('\n');
  expect(lines).toContain('    task.train.learner.optimizer : Sgd');
  expect(lines).toContain('    datasets[1].batchSize : 3');
  const text = (tag: string) => tagged('train', tag)[0]!.strings[0]!.toString();
  expect(text('Model')).toContain('    logits/linear/w : float32 [16, 2] ');
  expect(text('Model vars provenance')).toBe(
    '    logits/linear/w : random_init\n    logits/bias/b : random_init',
  );
  expect(tagged('train', 'Opt states provenance')).toHaveLength(1);
  const [session] = readEvents(join(directory, 'summaries'));
  expect([session!.tag, session!.plugin]).toEqual(['_hparams_/session_start_info', 'hparams']);
  const start = fieldsOf(fieldsOf(session!.pluginContent!).get(3)![0] as Buffer);
  const hparams = start.get(1)!.map((entry) => {
    const [name, value] = [...fieldsOf(entry as Buffer).values()].map(([first]) => first);
    const plain = fieldsOf(value as Buffer);
    return [String(name), plain.get(2)?.[0] ?? String(plain.get(3)![0])];
  });
  expect(Object.fromEntries(hparams)).toMatchObject({
    'task.train.learner.optimizer': 'Sgd',
    'task.train.learner.optimizer.learningRate': 0.25,
    'datasets[0].isTraining': 'true',
    'datasets[1].batchSize': 3,
  });
  expect(start.get(5)![0]).toBeGreaterThan(1.7e9);
});

test('programs of users write scalars, texts, histograms and images', () => {
  expect(summaries('weights').map(({ step, tag, plugin }) => [step, tag, plugin])).toEqual([
    [12, 'count', 'scalars'],
    [12, 'note', 'text'],
    [12, 'weights', 'histograms'],
    [12, 'image', 'images'],
  ]);
  expect(String(tagged('weights', 'note')[0]!.strings[0])).toBe('32 weights');
  expect(pixelsOf(tagged('weights', 'image')[0]!)).toMatchObject({ size: '16x2', images: [{ length: 32 }] });
  const lines = metricLines(directory).filter(({ program }) => program === 'weights');
  expect(lines).toEqual([{ program: 'weights', step: 12, count: 32 }]);
});

/** What one evaluation at step 3 prints, and its line of metrics.jsonl. */
async function reported(metrics: Readonly<Record<string, number>>, skipped: Skipped = NONE_SKIPPED) {
  const jobLogDir = temporaryDirectory();
  const printed = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  const options = { jobLogDir, mode: 'eval', name: 'lm.Small' } as JobOptions;
  const reporter = new Reporter(options, { firstStep: 3, numTrainSteps: 3 });
  reporter.evaluated('eval_test', 3, {
    metrics: Object.fromEntries(Object.entries(metrics).map(([name, value]) => [name, { value, weight: 1 }])),
    media: {},
    tables: {},
    evaluatedExamples: [],
    batches: 2,
    end: null,
    skipped,
    seconds: 0.5,
    throughput: { unit: 'examples', perSec: 40 },
  });
  await reporter.close();
  const text = printed.mock.calls.map(([chunk]) => String(chunk)).join('');
  printed.mockRestore();
  const line = readFileSync(join(jobLogDir, 'metrics.jsonl'), 'utf8').trim().split('\n').at(-1)!;
  return { text, written: JSON.parse(line) as Record<string, number> };
}

test('metrics that are equal or zero are all shown', async () => {
  const { text } = await reported({ total_loss: 0.5, accuracy: 0, f1: 0.25, auc: 0.25 });
  expect(text).toBe(
    'eval_test at step 3: total_loss 0.5, accuracy 0, f1 0.25, auc 0.25, 2 batches in 0.5 s, 40 examples/s\n',
  );
});

test('a loss of zero is shown', async () => {
  const { text } = await reported({ total_loss: 0, accuracy: 0 });
  expect(text).toContain('step 3: total_loss 0, accuracy 0, 2 batches');
});

test('what repeats total_loss, an aux_loss of zero and counts stay off the console, and are written', async () => {
  const metrics = { total_loss: 2, avg_xent: 2, log_pplx: 2, aux_loss: 0, num_predictions: 8 };
  const { text, written } = await reported(metrics);
  expect(text).toContain('step 3: total_loss 2, 2 batches');
  const values = Object.keys(metrics).map((name) => [name, written[`Metrics/${name}`]]);
  expect(Object.fromEntries(values)).toEqual(metrics);
  const auxiliary = await reported({ total_loss: 2.5, avg_xent: 2, aux_loss: 0.5 });
  expect(auxiliary.text).toContain('step 3: total_loss 2.5, avg_xent 2, aux_loss 0.5, 2 batches');
});

test('broken examples that an evaluation left out are counted, the first with their places', async () => {
  const { text, written } = await reported({ total_loss: 2 }, { count: 3, first: ['a.jsonl:2: not JSON'] });
  expect(text).toBe(
    'eval_test: 3 broken examples left out: a.jsonl:2: not JSON; …\n' +
      'eval_test at step 3: total_loss 2, 2 batches in 0.5 s, 40 examples/s\n',
  );
  expect(written.skipped).toBe(3);
  expect((await reported({ total_loss: 2 })).written).not.toHaveProperty('skipped');
});

test('a run that leaves broken examples out: metrics.jsonl, the console, and what they are at its end', async () => {
  const [folder, jobLogDir] = [temporaryDirectory(), temporaryDirectory()];
  for (const [c, name] of ['dark', 'bright'].entries()) {
    mkdirSync(join(folder, name));
    const data = new Uint8Array(16).fill(200 * c);
    const png = encode({ height: 4, width: 4, channels: 1, data });
    for (let i = 0; i < 8; i++)
      writeFileSync(join(folder, name, `${i}.png`), i === 5 ? png.slice(0, 30) : png);
  }
  const sets = ['0', '1'].flatMap((i) => [
    `datasets[${i}].source=ImageFolder(directory="${folder}")`,
    `datasets[${i}].onError=skip`,
    `datasets[${i}].split=all`,
  ]);
  const ended = await run([
    ...['--exp=pictures.Pictures', `--job_log_dir=${jobLogDir}`, '--mode=train_and_eval'],
    ...[`directory=${folder}`, ...sets].flatMap((set) => ['--set', set]),
  ]);
  expect({ ...ended, stdout: '' }).toEqual({ code: 0, stderr: '', stdout: '' });
  const skipped = metricLines(jobLogDir).map(({ program, step, skipped }) => [program, step, skipped]);
  const epochs = (12 * 8) / 16;
  expect(skipped).toContainEqual(['train', 12, 2 * epochs]);
  expect(skipped).toContainEqual(['eval_test_held_out', 12, 2]);
  expect(ended.stdout).toMatch(new RegExp(`^step 12/12 .*  skipped ${2 * epochs}$`, 'm'));
  const told = (program: string, count: number) =>
    ended.stdout
      .split('\n')
      .filter((line) => line.startsWith(`${program}: ${count} broken examples left out: ${folder}/`));
  expect([told('train', 2 * epochs).length, told('eval_test_held_out', 2).length]).toEqual([1, 1]);
});

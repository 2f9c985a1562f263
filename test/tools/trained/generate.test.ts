/** @file `luthier generate`, `luthier export` and `luthier quantize` on a trained run: what they print, write and refuse. */
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { stripVTControlCharacters } from 'node:util';
import * as ort from 'onnxruntime-node';
import { beforeAll, expect, test } from 'vitest';
import { converse } from '../../../src/tools/trained/prompts.js';
import { type GenerateOptions, loadRun, type TrainedRun } from '../../../src/trained/index.js';
import { oneProcess, project, temporaryDirectory } from '../../command.js';
import { commandEnvironment } from '../../loader.js';
import { tinyRun } from '../../trained/tinyRun.js';

const luthier = oneProcess('src/tools/commandLine.ts');
const script = join(import.meta.dirname, '../../../src/tools/commandLine.ts');
let directory: string;
let run: TrainedRun;

beforeAll(async () => {
  ({ directory } = await tinyRun());
  run = await loadRun(directory, { checkpoint: 200 });
  return () => run.dispose();
});

/** The command with lines in its standard input. */
function piped(flags: readonly string[], input: string): Promise<{ stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [script, 'generate', directory, ...flags],
      { cwd: project, env: commandEnvironment() },
      (_, stdout, stderr) => resolve({ stdout, stderr }),
    );
    child.stdin!.end(input);
  });
}

test('a prompt is continued as flags say, and as task.decode says without them', async () => {
  expect(await luthier(['generate', directory, '--prompt=182 a'])).toEqual({
    ...{ code: 0, stderr: '' },
    stdout: `${await run.generate('182 a')}\n`,
  });
  const flags = ['--temperature=2', '--top_k=20', '--top_p=0.9', '--max_tokens=12', '--seed=7', '--stop=9'];
  const drawn = await luthier(['generate', directory, '--prompt=one two ', ...flags]);
  const asked = { temperature: 2, topK: 20, topP: 0.9, maxTokens: 12, seed: 7, stop: ['9'] };
  expect(drawn.stdout).toBe(`${await run.generate('one two ', asked)}\n`);
  const changes: readonly [flag: string, options: GenerateOptions][] = [
    ['--min_p=1', { minP: 1 }],
    ['--repetition_penalty=1.5', { repetitionPenalty: 1.5 }],
    ['--presence_penalty=2', { presencePenalty: 2 }],
    ['--frequency_penalty=2', { frequencyPenalty: 2 }],
    ['--logit_bias={1: 9}', { logitBias: { 1: 9 } }],
  ];
  const hot = { temperature: 2, seed: 3 };
  const others = ['--prompt=one two ', '--temperature=2', '--seed=3'];
  for (const [flag, options] of changes) {
    const text = await run.generate('one two ', { ...hot, ...options });
    expect((await luthier(['generate', directory, ...others, flag])).stdout, flag).toBe(`${text}\n`);
    expect(text, flag).not.toBe(await run.generate('one two ', hot));
  }
  expect(drawn.stdout).not.toBe(`${await run.generate('one two ')}\n`);
  const constrained = await luthier([
    'generate',
    directory,
    '--prompt=182 a',
    '--constraint={"regex":"n(d|t) [3-7]{2}"}',
  ]);
  expect(constrained.stdout).toMatch(/^n[dt] [3-7]{2}\n$/);
  const whole = await run.generate('182 a');
  const stop = whole.slice(3, 5);
  const stopped = await luthier([
    'generate',
    directory,
    '--prompt=182 a',
    `--stop=${stop}`,
    '--format=json',
    '--checkpoint=200',
  ]);
  const before = whole.slice(0, whole.indexOf(stop));
  expect(JSON.parse(stopped.stdout)).toEqual({
    ...{ experiment: 'tiny.Tiny', step: 200 },
    completions: [{ prompt: '182 a', text: before, tokens: before.length + 2, finishReason: 'stop' }],
  });
});

test.each([
  [['--prompt='], "--prompt: expected a value; got ''."],
  [['--prompt=a', '--temperature=-1'], "--temperature: expected a non-negative number, got '-1'"],
  [['--prompt=a', '--topk=1'], "Unknown flag --topk. Did you mean '--top_k'?"],
  [
    ['--prompt=123456789012345678901234'],
    'The prompt has 24 tokens; prompt and continuation together have 24 at most, so expected 23 or fewer.',
  ],
])('%s is refused in one message', async (flags, message) => {
  const { code, stderr } = await luthier(['generate', directory, ...flags]);
  expect([code, stderr.split('\n')[0]!.slice(0, message.length)]).toEqual([2, message]);
});

test('each line of a pipe is a prompt', async () => {
  const { stdout, stderr } = await piped([], '182 a\n\n83 an');
  const texts = [await run.generate('182 a'), await run.generate('83 an')];
  expect({ stdout, stderr }).toEqual({ stdout: `${texts.join('\n')}\n`, stderr: '' });
});

/** A conversation on a terminal: what is typed, and what has been shown when it ends. */
function terminal(): { type(text: string): void; shown(): string; ended: Promise<void> } {
  const [input, output] = [new PassThrough(), new PassThrough()];
  let shown = '';
  output.on('data', (data) => {
    shown += data;
  });
  const ended = converse(run, { temperature: 0 }, { input, output });
  return { type: (text) => input.write(text), shown: () => shown, ended };
}

test('what is typed is continued line by line, until Ctrl-D', async () => {
  const { type, shown, ended } = terminal();
  type('182 a\r');
  while (!shown().includes(await run.generate('182 a'))) await sleep(5);
  type(`${'x'.repeat(30)}\r`);
  while (!shown().includes('The prompt has 30 tokens')) await sleep(5);
  type('\x04');
  await ended;
  const plain = stripVTControlCharacters(shown()).replaceAll('\r', '');
  expect(plain).toContain(`\n${await run.generate('182 a')}\n`);
});

test('Ctrl-C ends a conversation, also while a text is written', async () => {
  const idle = terminal();
  idle.type('\x03');
  await idle.ended;
  const { type, shown, ended } = terminal();
  type('182 a\r\x03');
  await ended;
  expect(shown()).not.toContain(await run.generate('182 a'));
});

/** Predictions of a file for some rows of ids. */
async function inRuntime(
  file: string,
  feeds: Record<string, ort.Tensor>,
): Promise<ort.InferenceSession.OnnxValueMapType> {
  const session = await ort.InferenceSession.create(file, { logSeverityLevel: 4 });
  return session.run(feeds);
}

test('an exported file predicts what the run does, for batches of any size', async () => {
  const file = join(temporaryDirectory(), 'deep/tiny.onnx');
  const { code, stdout, stderr } = await luthier(['export', directory, '--format=onnx', `--out=${file}`]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout.split('\n')).toEqual([
    // The size follows the commit that the file names, which a work tree without git lacks.
    expect.stringMatching(/^Wrote .*\/deep\/tiny\.onnx: 9\d\.\d kB, tiny\.Tiny at step 200\.$/),
    'inputs: ids',
    'outputs: logits, perExampleArgmax',
    ...[
      'perExampleXent, of ids, labels',
      'totalXent, of ids, labels, weights',
      'avgXent, of ids, labels, weights',
    ].map((text) => `left out: ${text}`),
    ...['perSequenceXent', 'totalLoss'].map((name) => `left out: ${name}, of ids, labels, weights`),
    expect.stringMatching(/^ONNX Runtime computes the same, to \de[-+]\d+ of the largest value\.$/),
    '',
  ]);
  expect(readdirSync(join(file, '..'))).toEqual(['tiny.onnx']);
  for (const rows of [1, 5]) {
    const data = Int32Array.from({ length: rows * 16 }, (_, i) => (i * 37) % 256);
    const expected = await run.predict({ ids: { shape: [rows, 16], dtype: 'int32', data } });
    const found = await inRuntime(file, { ids: new ort.Tensor('int32', data, [rows, 16]) });
    expect(found.logits!.dims).toEqual([rows, 16, 256]);
    for (const [i, value] of expected.logits!.data.entries())
      expect(Math.abs((found.logits!.data as Float32Array)[i]! - value)).toBeLessThan(1e-4);
    expect(found.perExampleArgmax!.data).toEqual(expected.perExampleArgmax!.data);
  }
});

test('a file names its sizes, its operators and where it comes from', async () => {
  const file = join(temporaryDirectory(), 'tiny.onnx');
  const { stdout } = await luthier([
    'export',
    directory,
    `--out=${file}`,
    '--outputs=avgXent',
    '--format=json',
    '--checkpoint=196',
  ]);
  expect(JSON.parse(stdout)).toMatchObject({
    inputs: ['ids', 'labels', 'weights'],
    outputs: ['avgXent'],
    step: 196,
  });
  const session = await ort.InferenceSession.create(file);
  expect(session.inputMetadata.map((each) => each.isTensor && [each.name, each.type, each.shape])).toEqual([
    ['ids', 'int32', ['batch', 16]],
    ['labels', 'int32', ['batch', 16]],
    ['weights', 'float32', ['batch', 16]],
  ]);
  const text = readFileSync(file, 'latin1');
  const { gitRevision } = run.document;
  const commit = gitRevision === null ? [] : ['commit', gitRevision];
  for (const part of [
    ...commit,
    'luthier',
    'experiment',
    'tiny.Tiny',
    'step',
    '196',
    'lm/softmax/w',
    'batch',
  ])
    expect(text).toContain(part);
  expect(text).not.toContain('com.microsoft');
});

test('a prediction that the model lacks is told, with those that it has', async () => {
  const { code, stderr } = await luthier(['export', directory, '--outputs=logit']);
  expect({ code, stderr }).toEqual({
    code: 2,
    stderr:
      "--outputs: tiny.Tiny predicts no 'logit'. Did you mean 'logits'? It predicts: logits, perExampleArgmax, " +
      'perExampleXent, totalXent, avgXent, perSequenceXent, totalLoss.\n',
  });
  expect((await luthier(['export', directory, '--out=/dev/null/x.onnx'])).code).toBe(2);
});

test('a quantized run is a run: it generates, is compared with the one that it was made of, and damage is named without a stack', async () => {
  const to = temporaryDirectory();
  const flags = ['--bits=4', '--group=32', '--activations=8', '--skip=.*ff_layer.*'];
  const { stdout, stderr, code } = await luthier([
    'quantize',
    directory,
    `--to=${to}`,
    ...flags,
    ...['--batches=2', '--checkpoint=200', '--format=json'],
  ]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const report = JSON.parse(stdout);
  expect(report).toMatchObject({ experiment: 'tiny.Tiny', step: 200 });
  expect(report.quality.perplexity[1] / report.quality.perplexity[0]).toBeLessThan(1.1);
  expect(report.quality.agreement).toBeGreaterThan(0.8);
  expect(report.quality.divergence).toBeGreaterThan(0);
  expect(report.bytes[1]).toBeLessThan(report.bytes[0]);
  const settings = readFileSync(join(to, 'model_params.txt'), 'utf8');
  expect(settings).toContain("task.model.quantization.mode : 'inference'\n");
  expect(settings).toContain('task.model.quantization.weightParams.precision : 4\n');
  expect(settings).toContain('task.model.quantization.actParams.precision : 8\n');
  const quantized = await loadRun(to);
  expect(quantized.step).toBe(0);
  expect((await quantized.generate('182 a', { maxTokens: 8 })).length).toBeGreaterThan(0);
  const storages = quantized.params.layout.entries.map(({ name, storage }) => [
    name.split('/').at(-1),
    storage,
  ]);
  expect(storages).toContainEqual(['w', 'uint8']);
  expect(storages).toContainEqual(['w_quantized_scale', 'bfloat16']);
  const tablesOf = ({ params }: TrainedRun) =>
    params.layout.entries.flatMap(({ name, storage }) => (/softmax.*\/w$/.test(name) ? storage : []));
  expect(new Set(tablesOf(quantized))).toEqual(new Set(['int8']));
  await quantized.dispose();
  const small = temporaryDirectory();
  const four = ['--bits=4', '--table_bits=4', '--batches=0'];
  expect(await luthier(['quantize', directory, `--to=${small}`, ...four])).toMatchObject({ code: 0 });
  const smaller = await loadRun(small);
  expect(new Set(tablesOf(smaller))).toEqual(new Set(['uint8']));
  await smaller.dispose();

  const again = await luthier(['quantize', directory, `--to=${to}`]);
  expect(again.stderr).toBe(
    `--to=${to}: it has checkpoints of a run. Give another directory, or delete it.\n`,
  );
  expect((await luthier(['quantize', directory])).stderr).toContain('--to=DIR is required.');
  const state = join(to, 'checkpoints/checkpoint_00000000/state.safetensors');
  const bytes = readFileSync(state);
  bytes[bytes.length - 9]! ^= 1;
  writeFileSync(state, bytes);
  const damaged = await luthier(['generate', to, '--prompt=182 a']);
  expect(damaged.code).toBe(1);
  expect(damaged.stderr).toContain(state);
  expect(damaged.stderr).not.toContain('    at ');
});

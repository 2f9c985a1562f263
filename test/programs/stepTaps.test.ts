/** @file Taps of a training run: what they print and write, on every engine, and that training does not notice. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { SafetensorsFile } from '../../src/checkpoints/index.js';
import { StepTaps } from '../../src/programs/stepTaps.js';
import { temporaryDirectory } from '../command.js';
import { longTest } from '../longTest.js';
import { tinyTraining } from './tinyTraining.js';

/** A training of one thread, and its taps. */
async function tapped(engine: 'native' | 'onnx', ...patterns: string[]) {
  const training = await tinyTraining(engine, 1);
  const { program, state, task } = training;
  const options = { ...training.options, jobLogDir: temporaryDirectory() };
  const isTapped = (step: number) => step === 2;
  const taps = await StepTaps.create(
    options,
    { patterns, isTapped, values: true },
    task,
    state,
    program.step,
  );
  return { ...training, options, taps };
}

/** Numbers of a line of the table. */
const numbers = (line: string) =>
  line.split(/\s+/).flatMap((cell) => (/^-?[\d.e-]+$/.test(cell) ? [Number(cell)] : []));

longTest('layers by path, before the update, with values; training ends with the same bits', async () => {
  const patterns = ['lm/transformer/x_layers_0/**', 'lm/softmax.*'];
  const reference = await tinyTraining('native', 1);
  await reference.program.runSteps(2);
  const told: number[][][] = [];
  for (const engine of ['native', 'onnx'] as const) {
    const { program, state, taps, options } = await tapped(engine, ...patterns);
    expect([1, 2, 3].map((step) => taps.isAt(step))).toEqual([false, true, false]);
    await program.runSteps(1);
    let lines: string[] = [];
    await program.runSteps(1, async () => {
      lines = await taps.read(program.state.step + 1);
    });
    expect(lines[0]).toBe('Taps of step 2, before its update:');
    expect(lines[1]!.trim().split(/\s+/)).toEqual(['mean', 'std', 'min', 'max', 'nan', 'inf']);
    const layer = lines.findIndex((line) => line.startsWith('lm/transformer/x_layers_0 '));
    expect(lines[layer]).toContain('  float32[9,16,16]  ');
    expect(lines[layer + 1]).toMatch(/^ {2}gradient /);
    expect(lines.some((line) => line.startsWith('lm/softmax.'))).toBe(true);
    expect(lines.some((line) => line.startsWith('lm/final_ln'))).toBe(false);
    told.push(lines.slice(layer, layer + 2).map(numbers));
    const path = join(options.jobLogDir, 'taps/step_00000002.safetensors');
    expect(lines.at(-1)).toBe(`Values are in ${path}`);
    const file = new SafetensorsFile(path);
    const values = file.layout.tensors.find(({ name }) => name === 'lm/transformer/x_layers_0:gradient');
    expect(values).toMatchObject({ dtype: 'F32', shape: [9, 16, 16] });
    file.close();
    if (engine === 'native') expect(state.params).toEqual(reference.state.params);
  }
  const [native, onnx] = told;
  onnx!.flat().forEach((value, i) => void expect(value).toBeCloseTo(native!.flat()[i]!, 3));
});

test('a pattern that names nothing is an error with what there is', async () => {
  await expect(tapped('onnx', 'lm/**', 'lm/softmx')).rejects.toThrow(
    /^--tap=lm\/softmx: no layer or tap of the training step has such a path\. .*There are: lm\/softmax\.embLookup, /,
  );
});

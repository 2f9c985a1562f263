/** @file --debug: the first value that is not finite has a line; layers that run op by op may read values. */
import { afterEach, expect, test, vi } from 'vitest';
import { type Tensor, tf } from '../../src/compiler/index.js';
import { LanguageModel } from '../../src/models/index.js';
import { EvalSteps } from '../../src/programs/evalStep.js';
import { FiniteCheck } from '../../src/programs/finiteCheck.js';
import { Evaluation } from '../../src/tasks/evaluation.js';
import { tinyTraining, tokens } from './tinyTraining.js';

afterEach(() => void vi.restoreAllMocks());

/** Its loss is a square root of a negative number. */
class Breaking extends LanguageModel {
  override computeLoss(...args: Parameters<LanguageModel['computeLoss']>) {
    const [metrics, perExample] = super.computeLoss(...args);
    const [loss, weight] = metrics.total_loss!;
    return [{ ...metrics, total_loss: [tf.sqrt(tf.neg(loss)) as Tensor, weight] }, perExample] as ReturnType<
      LanguageModel['computeLoss']
    >;
  }
}

/** Reads the values that it computes. */
class Reading extends LanguageModel {
  override computePredictions(...args: Parameters<LanguageModel['computePredictions']>) {
    const predictions = super.computePredictions(...args);
    predictions.totalWeight.print();
    console.log(`cross entropy ${predictions.avgXent.dataSync()[0]!.toFixed(3)}`);
    return predictions;
  }
}

const root = 'the result of Sqrt (float32[]), in the model, ';
const place = /at Breaking\.computeLoss \(test\/programs\/debug\.test\.ts:\d+:\d+\)\.$/;

test('nan: a step with a value that is not finite ends with its operation and line, a sound one goes on', async () => {
  const sound = await tinyTraining('onnx', 1, { debug: 'nan' });
  const check = new FiniteCheck(sound.program);
  check.begin();
  await check.end(await sound.program.run());
  check.begin();
  const report = await sound.program.run();
  sound.state.params[3] = Number.POSITIVE_INFINITY;
  await expect(check.end(report)).rejects.toThrow(
    /^--debug=nan: step 2 is not finite: the new values of [\w/]+\. Loss and gradients are finite: the update made them so\.$/,
  );

  const { program } = await tinyTraining('onnx', 1, { debug: 'nan', Model: Breaking });
  const broken = new FiniteCheck(program);
  broken.begin();
  const error = await broken.end(await program.run()).then(
    () => undefined,
    ({ message }) => message,
  );
  expect(error).toContain('--debug=nan: step 1 is not finite: loss NaN, total_loss NaN, the gradients of ');
  expect(error).toContain(`The first value that is not finite is NaN in ${root}`);
  expect(error).toMatch(place);
});

test('nan: an evaluation', async () => {
  const { options, task, state } = await tinyTraining('onnx', 1, { debug: 'nan', Model: Breaking });
  const batch = await tokens().getNext();
  const error = await new EvalSteps(options, task, state).run('validation', batch, new Evaluation({})).then(
    () => undefined,
    ({ message }) => message,
  );
  expect(error).toContain(
    "--debug=nan: the evaluation of a batch of input 'validation' is not finite: total_loss NaN. The first value",
  );
  expect(error).toMatch(place);
});

test('eager: layers read the values of the batch and weights that a compiled step has', async () => {
  const compiled = await tinyTraining('onnx', 1);
  const reports = await Promise.all([compiled.program.run()]);
  const shown = vi.spyOn(console, 'log').mockImplementation(() => {});
  const eager = await tinyTraining('onnx', 1, { debug: 'eager', Model: Reading });
  expect(shown).not.toHaveBeenCalled();
  const { loss, update } = await eager.program.run();
  expect(loss).toBeCloseTo(reports[0]!.loss, 4);
  expect(update.rawGradNorm).toBeCloseTo(reports[0]!.update.rawGradNorm, 3);
  const lines = shown.mock.calls.map(([line]) => String(line));
  expect(lines).toEqual([expect.stringMatching(/^Tensor\n {4}\d+$/), `cross entropy ${loss.toFixed(3)}`]);
  // The update is the compiled one.
  const { params } = eager.state;
  compiled.state.params.forEach((value, i) => void expect(Math.abs(params[i]! - value)).toBeLessThan(1e-3));
  const { options, task, state } = eager;
  const evaluation = new Evaluation({});
  await new EvalSteps(options, task, state).run('validation', await tokens().getNext(), evaluation);
  expect(evaluation.result().metrics.total_loss!.value).toBeLessThan(loss);
  expect(shown).toHaveBeenCalledTimes(4);
});

/** @file Variables that the forward pass replaces: through steps, checkpoints, averages and evaluation, on every engine. */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Checkpointer } from '../../src/checkpoints/index.js';
import { type Tensor, tf } from '../../src/compiler/index.js';
import { build } from '../../src/hparams/index.js';
import type { Batch, InputSource } from '../../src/inputs/index.js';
import { BatchNorm, Constant, WeightCollection } from '../../src/layers/index.js';
import { LanguageModel, type TensorBatch } from '../../src/models/index.js';
import { EvalSteps } from '../../src/programs/evalStep.js';
import type { FlatParams } from '../../src/programs/taskState.js';
import { averaged } from '../../src/programs/taskState.js';
import { Evaluation } from '../../src/tasks/index.js';
import { engines } from '../compiler/engines.js';
import { tinyTraining, tokens } from './tinyTraining.js';

/** Sums the ids that it has seen in training, and holds numbers that nothing changes. */
class Summing extends LanguageModel {
  protected override setup(): void {
    super.setup();
    const collections = [WeightCollection.NON_TRAINABLE];
    const init = (scale: number) => build(Constant.config({ scale }));
    this.createVariable('seen', { shape: [], init: init(0), collections });
    this.createVariable('held', { shape: [3], init: init(4), collections });
  }
  override fprop(batch: TensorBatch): ReturnType<LanguageModel['fprop']> {
    const ids = tf.sum(tf.cast(batch.ids as Tensor, 'float32')) as Tensor;
    this.updateVar('seen', tf.add(this.getVar('seen'), ids));
    return super.fprop(batch);
  }
}

/** Divides by the weights: its gradients are finite where all weights are 0, and what it keeps is not. */
class Dividing extends LanguageModel {
  protected override setup(): void {
    super.setup();
    const init = build(Constant.config({ scale: 0 }));
    this.createVariable('share', { shape: [], init, collections: [WeightCollection.NON_TRAINABLE] });
  }
  override fprop(batch: TensorBatch): ReturnType<LanguageModel['fprop']> {
    this.updateVar('share', tf.div(1, tf.sum(batch.weights as Tensor)));
    return super.fprop(batch);
  }
}

interface Fed {
  readonly input: InputSource;
  /** Sums of the ids of each batch. */
  readonly sums: number[];
}

/** Batch number `bad`, from 0, has a NaN among its weights, or other weights. */
function fed(bad = -1, spoil = (weights: Float32Array) => void (weights[3] = Number.NaN)): Fed {
  const input = tokens();
  const sums: number[] = [];
  const getNext = input.getNext.bind(input);
  input.getNext = async (): Promise<Batch> => {
    const batch = await getNext();
    const { ids, weights } = batch as unknown as Record<'ids' | 'weights', { data: Float32Array }>;
    if (sums.length === bad) spoil(weights.data);
    sums.push(ids.data.reduce((sum, id) => sum + id, 0));
    return batch;
  };
  return { input, sums };
}

const open = (engine: (typeof engines)[number][1]['engine'], { input }: Fed, emaDecay = 0) =>
  tinyTraining(engine, 2, {
    ...{ input, emaDecay, Model: Summing },
    finalLnTpl: BatchNorm.config({ decay: 0.9 }),
  });

const NORM = 'lm/final_ln';
const valuesOf =
  ({ views }: FlatParams) =>
  (name: string) => [...views[name]!];

const oracle = (async () => {
  const { program, state } = await open('eager', fed(2));
  for (let step = 0; step < 5; step++) await program.run();
  return valuesOf(state);
})();

for (const [title, { engine, available }] of engines) {
  test.skipIf(!available)(`${title}: a step leaves what its forward pass left, if it was taken`, async () => {
    const source = fed(2);
    const { program, state } = await open(engine, source);
    const reports = [];
    for (let step = 0; step < 5; step++) reports.push(await program.run());
    expect(reports.map(({ update }) => update.isValidStep)).toEqual([1, 1, 0, 1, 1]);
    const values = valuesOf(state);
    const [first, second, , fourth, fifth] = source.sums;
    expect(values('seen')).toEqual([first! + second! + fourth! + fifth!]);
    expect(values('held')).toEqual([4, 4, 4]);
    for (const name of ['moving_mean', 'moving_variance']) {
      const expected = (await oracle)(`${NORM}/${name}`);
      values(`${NORM}/${name}`).forEach((value, i) => {
        expect(Math.abs(value - expected[i]!), `${name}[${i}]`).toBeLessThan(
          1e-3 * (1 + Math.abs(expected[i]!)),
        );
      });
    }
    // Neither gradients nor norms know of them.
    expect(Object.keys(program.updater.gradNorms())).not.toContain('seen');
    expect(program.updater.varNorm()).toBeLessThan(100);
  });

  test.skipIf(!available)(
    `${title}: a step whose replaced variables are not finite is left out`,
    async () => {
      const { input } = fed(1, (weights) => void weights.fill(0));
      const { program, state } = await tinyTraining(engine, 2, { input, Model: Dividing });
      const first = await program.run();
      const before = state.params.slice();
      const { loss, update } = await program.run();
      expect({ ...update, loss }).toMatchObject({ loss: 0, rawGradNorm: 0, isValidStep: 0 });
      expect(state.params).toEqual(before);
      expect(await program.firstNonFinite()).toMatchObject({ op: 'RealDiv', value: 'infinity', layer: '' });
      expect((await program.run()).update.isValidStep).toBe(1);
      expect(first.update.isValidStep).toBe(1);
    },
  );

  test.skipIf(!available)(`${title}: stopped and resumed from a checkpoint, the same bits`, async () => {
    const whole = await open(engine, fed(), 0.9);
    // Several steps a call, where it takes several.
    while (whole.state.step < 6) await whole.program.runSteps(Math.min(6, whole.program.mostSteps));
    const stopped = await open(engine, fed(), 0.9);
    for (let step = 0; step < 3; step++) await stopped.program.run();
    const directory = mkdtempSync(join(tmpdir(), 'luthier-updated-'));
    const checkpointer = new Checkpointer({ directory, experiment: 'tiny' });
    await checkpointer.save(stopped.state, { inputState: stopped.program.inputState });
    await checkpointer.waitUntilFinished();
    const source = fed();
    const resumed = await open(engine, source, 0.9);
    const { inputState } = await checkpointer.restore(resumed.state);
    await checkpointer.close();
    source.input.setState(inputState as ReturnType<InputSource['getState']>);
    for (let step = 0; step < 3; step++) await resumed.program.run();
    expect(resumed.state.params).toEqual(whole.state.params);
    expect(resumed.state.slots).toEqual(whole.state.slots);
    // The average of the parameters has their last value.
    const average = valuesOf(averaged(whole.state));
    const values = valuesOf(whole.state);
    for (const name of ['seen', 'held', `${NORM}/moving_mean`, `${NORM}/moving_variance`])
      expect(average(name)).toEqual(values(name));
    expect(average(`${NORM}/gamma`)).not.toEqual(values(`${NORM}/gamma`));
  });

  test.skipIf(!available)(`${title}: evaluation reads the moving averages, and changes nothing`, async () => {
    const { program, state, task, options } = await open(engine, fed());
    for (let step = 0; step < 3; step++) await program.run();
    const before = state.params.slice();
    const batch = await tokens().getNext();
    const evaluate = async (on: typeof engine) => {
      const steps = new EvalSteps({ ...options, engine: on }, task, state);
      const evaluation = new Evaluation({});
      await steps.run('tiny', batch, evaluation);
      return evaluation.result().metrics.total_loss!.value;
    };
    const loss = await evaluate(engine);
    expect(loss).toBeCloseTo(await evaluate('eager'), 4);
    expect(state.params).toEqual(before);
    state.views[`${NORM}/moving_variance`]!.fill(50);
    expect(await evaluate(engine)).not.toBeCloseTo(loss, 2);
  });
}

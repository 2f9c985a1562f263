/** @file The training step of --debug=eager: the gradients by tfjs, operation by operation, then the compiled update. */
import { compile, flatViews, type HostTensor, runEagerly, type Tree } from '../compiler/index.js';
import type { Batch } from '../inputs/index.js';
import { compileOptions, type JobOptions } from '../runs/index.js';
import { type SingleTask, trainStep } from '../tasks/index.js';
import { BatchBuffers } from './batchBuffers.js';
import type { BoundStep, StepOutputs } from './stepCalls.js';
import { hostParams, type TrainMemory } from './taskState.js';

/** Results of eager gradients. */
type EagerOutputs = StepOutputs & Readonly<Record<'grads' | 'updatedVars', Record<string, HostTensor>>>;

/** A step like that of `compileStep`, one per call, whose layers may read all values. */
export async function eagerStep(
  options: JobOptions,
  task: SingleTask,
  state: TrainMemory,
  inputName: string,
  batch: Batch,
): Promise<BoundStep> {
  const { layout, changing, params, slots, grads } = state;
  const updater = task.hp.train.hp.learner.createUpdater(layout, { params, grads, slots }, 1);
  const { name, f, inputs } = updater.following;
  const executable = await compile(f, inputs, compileOptions(options, name));
  const update = executable.bind({
    inputs: updater.inputs as unknown as Tree<Float32Array>,
    outputs: updater.outputs,
  });
  const buffers = new BatchBuffers(inputName, batch);
  const [keys, steps] = [new Int32Array(2), new Int32Array(1)];
  const gradViews = flatViews(changing, grads);
  const outputs: Tree<HostTensor>[] = [];
  const run = async (): Promise<Tree<HostTensor>> => {
    const prngKey: HostTensor = { shape: [2], dtype: 'int32', data: keys };
    await state.memory?.toHost();
    const step: HostTensor = { shape: [], dtype: 'int32', data: steps };
    const given = { params: hostParams(state), batch: buffers.batchAt(0), prngKey, step };
    const results = (await runEagerly(trainStep(task), given)) as unknown as EagerOutputs;
    for (const [path, { data }] of Object.entries({ ...results.grads, ...results.updatedVars }))
      gradViews[path]!.set(data);
    state.memory?.wrote();
    outputs[0] = results as unknown as Tree<HostTensor>;
    await update.run();
    return outputs;
  };
  const call = { outputs, problemOf: () => undefined, run };
  return { executable, call, updater, buffers, keys, steps, mostSteps: 1 };
}

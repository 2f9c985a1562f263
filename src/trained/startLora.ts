/** @file Fine-tuning of a run's weights by LoRA alone. */
import type { Config } from '../hparams/index.js';
import { addLora, LORA_VARIABLES } from '../layers/index.js';
import type { SingleTask } from '../tasks/index.js';

/** Puts LoRA onto the model of a task, which trains it alone and takes all else from the checkpoints that it starts from. */
export function startLora(task: Config<SingleTask>, options: Parameters<typeof addLora>[1]): void {
  addLora(task.model, options);
  const { train } = task;
  train.learner.bpropVariableExclusion = [];
  train.learner.bpropVariableInclusion = [LORA_VARIABLES];
  for (const rules of train.initFromCheckpoint) rules.ignoreRules = [...rules.ignoreRules, LORA_VARIABLES];
}

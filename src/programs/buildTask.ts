/** @file Builds the task of a job, which is about to be compiled and run. */
import { build } from '../hparams/index.js';
import { listLayers } from '../layers/index.js';
import type { SingleTask } from '../tasks/index.js';
import type { JobOptions } from './options.js';

/**
 * The task of a job.
 *
 * @throws LayerError where a layer asks for what no engine runs; nothing was allocated by then.
 */
export function buildTask(options: JobOptions): SingleTask {
  const task = build(options.task);
  for (const layer of listLayers(task.model)) layer.checkRunnable();
  return task;
}

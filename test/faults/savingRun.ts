/** @file A run that saves and reports as training does, without a model: what it says it saved must be there afterwards. */
import { join } from 'node:path';
import { Checkpointer } from '../../src/checkpoints/index.js';
import { explain, writeWhole } from '../../src/files/index.js';
import { EventFile, MetricsFile } from '../../src/summaries/index.js';
import { isStateOf, SAVE_EVERY, stateAt, stateOf } from './savedState.js';

/** Goes on from the newest checkpoint. Says `from N`, `saved N` once step N is on the disk, and what it is told. */
export async function savingRun(
  jobLogDir: string,
  lastStep: number,
  say: (line: string) => void,
  allowPrevious = false,
): Promise<void> {
  const checkpointer = new Checkpointer({
    directory: join(jobLogDir, 'checkpoints'),
    experiment: 'faults',
    saveIntervalSteps: SAVE_EVERY,
    saveMaxToKeep: 2,
    saveKeepIntervalDuration: null,
    notify: ({ message }) => say(`told: ${message}`),
  });
  const state = stateOf();
  const first =
    checkpointer.latestStep() === undefined ? 0 : (await checkpointer.restore(state, { allowPrevious })).step;
  say(`from ${first}`);
  // What was saved is what is there: a wrong value would go on silently.
  if (first > 0 && !isStateOf(first, state)) throw new Error(`step ${first} has other values`);
  const notify = (line: string) => say(`told: ${line}`);
  const metrics = new MetricsFile(join(jobLogDir, 'metrics.jsonl'), { resumeStep: first, notify });
  const events = new EventFile(join(jobLogDir, 'summaries', 'train'), { resumeStep: first, notify });
  const description = join(jobLogDir, 'experiment.json');
  try {
    writeWhole(description, JSON.stringify({ from: first }));
  } catch (error) {
    // The system names no file where writing or syncing fails.
    throw new Error(`${description} cannot be written: ${explain(error)}.`, { cause: error });
  }
  for (let step = first; ; step++) {
    if (checkpointer.shouldSave(step) || step === lastStep) {
      await checkpointer.save(stateAt(step), { inputState: { batches: step } });
      // Training would go on; here each save is waited for, so that what is said can be checked.
      await checkpointer.waitUntilFinished().then(
        () => say(`saved ${step}`),
        (error) => {
          if (step === lastStep) throw error;
        },
      );
    }
    if (step === lastStep) break;
    metrics.write({ program: 'train', step: step + 1, loss: 1 / (step + 1) });
    events.summaries(step + 1, { loss: 1 / (step + 1) });
  }
  await checkpointer.close();
  events.close();
  metrics.close();
}

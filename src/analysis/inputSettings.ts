/** @file Agreement of an input's settings with those of the model. */
import { type BaseInput, InputError } from '../inputs/index.js';
import { checkAgreement, checkVocabulary } from '../programs/index.js';
import type { SingleTask } from '../tasks/index.js';

/**
 * Compares settings of an input with those of the model. A vocabulary that can't be read here is compared by a run.
 *
 * @throws ConfigError where a setting of one is not that of the other
 */
export function checkInputSettings(task: SingleTask, input: BaseInput): void {
  checkAgreement(task, input);
  let known: ReturnType<BaseInput['knownIdentity']>;
  try {
    known = input.knownIdentity();
  } catch (error) {
    if (error instanceof InputError) return;
    throw error;
  }
  if (known !== null) checkVocabulary(task, input, known);
}

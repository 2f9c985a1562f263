/** @file Checks of several fields together, such as a start after its end. */
import { ConfigError } from '../hparams/index.js';

/**
 * @param owner the instance whose hyperparameters are checked; its class opens the message.
 * @throws ConfigError with `problem` unless `condition` holds.
 */
export function check(owner: object, condition: boolean, problem: string): void {
  if (!condition) throw new ConfigError(`${owner.constructor.name}: ${problem}`);
}

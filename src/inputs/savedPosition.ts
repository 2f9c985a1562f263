/** @file The position of a saved state, for inputs that count the rows that were read. */
import { InputError } from './inputErrors.js';
import type { InputState } from './inputSource.js';
import type { JsonValue } from './jsonValue.js';

/**
 * The position of a state that was saved of the same data.
 *
 * @param identity values that the meaning of a position depends on, by their names in messages.
 * @throws InputError for a state without a position, or of other data.
 */
export function savedPosition(
  inputName: string,
  { position, ...saved }: InputState,
  identity: { readonly [name: string]: JsonValue },
): number {
  if (typeof position !== 'number' || !Number.isSafeInteger(position) || position < 0) {
    throw new InputError(
      `Input '${inputName}': expected a state with a position, 0 or a positive integer, got ${JSON.stringify({ position, ...saved })}.`,
    );
  }
  const changed = Object.entries(identity)
    .filter(([name, now]) => now !== saved[name])
    .map(([name, now]) => `${name} is ${now}, was ${saved[name] ?? 'not recorded'}`);
  if (changed.length === 0) return position;
  throw new InputError(
    `Input '${inputName}' cannot resume from the saved state, as its data has changed since: ${changed.join('; ')}. Restore the data, or start a new run in another directory.`,
  );
}

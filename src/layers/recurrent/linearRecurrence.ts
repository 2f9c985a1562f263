/** @file Recurrences whose state is multiplied element by element. */
import { type Tensor, tf } from '../../compiler/index.js';
import { type State, type Steps, scanTime } from './recurrence.js';

/**
 * `h_t = a_t h_(t-1) + b_t`, element by element.
 *
 * @param a [B, T, …]. @param b [B, T, …]. @param first [B, …].
 * @returns all h [B, T, …], and the last one, which padding leaves as it is.
 */
export function linearRecurrence(
  a: Tensor,
  b: Tensor,
  first: Tensor,
  steps: Pick<Steps, 'starts' | 'tokens'>,
): readonly [states: Tensor, last: Tensor] {
  const step = ({ h }: State, at: State): [State, Tensor] => {
    const next = tf.add(tf.mul(at.a!, h!), at.b!) as Tensor;
    return [{ h: next }, next];
  };
  const { outputs, state } = scanTime(step, { h: first }, { a, b }, steps);
  return [outputs, state.h!];
}

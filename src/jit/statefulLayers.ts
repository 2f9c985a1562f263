/** @file States of stateful recurrent layers of tfjs, as variables, so that programs read and write them. */
import { type Tensor, tf } from '../compiler/index.js';
import { listOf } from './batches.js';

/** Members of tfjs-layers' layers in use here. */
interface TfjsLayer {
  readonly name: string;
  readonly stateful?: boolean;
  /** Of a model. */
  readonly layers?: readonly TfjsLayer[];
  /** Of wrappers: TimeDistributed, Bidirectional. */
  readonly layer?: TfjsLayer;
  readonly forwardLayer?: TfjsLayer;
  readonly backwardLayer?: TfjsLayer;
  /** Of recurrent layers: the tensors that a call begins with; null before the layer is built. */
  states_?: Tensor[] | null;
  resetStates?(states?: Tensor | Tensor[] | null, training?: boolean): void;
}

const held = new WeakSet<TfjsLayer>();

/**
 * Makes the states of a model's stateful recurrent layers variables: their calls and `resetStates` assign them, compiled and on
 * tfjs's backends alike.
 */
export function holdStates(layer: TfjsLayer): void {
  const inner = [layer.layer, layer.forwardLayer, layer.backwardLayer, ...(layer.layers ?? [])];
  for (const each of inner) if (each) holdStates(each);
  if (!layer.stateful || !layer.states_ || held.has(layer)) return;
  held.add(layer);
  const variables = layer.states_.map((state) => tf.variable(state, false));
  tf.dispose(layer.states_);
  const assign = (states: readonly Tensor[]): void => {
    if (states.length !== variables.length)
      throw new Error(
        `Layer ${layer.name} expects ${variables.length} state(s), but it received ${states.length}.`,
      );
    variables.forEach((variable, i) => void variable.assign(states[i]!));
  };
  Object.defineProperty(layer, 'states_', { get: () => variables, set: assign });
  layer.resetStates = (states) =>
    tf.tidy(() => assign(states ? listOf(states) : variables.map((variable) => tf.zerosLike(variable))));
}

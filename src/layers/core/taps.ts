/** @file Taps: activations and their gradients within a pass, by name, and their statistics. */
import { keepAuxiliary, observeGradient, type Tensor, type TensorSpec, tf } from '../../compiler/index.js';

/** Order of the statistics of a tensor; all but the counts are those of its finite elements. */
export const TAP_STATISTICS = ['mean', 'std', 'min', 'max', 'nan', 'inf'] as const;

/** An activation read by a tap, and its gradient where the loss depends on it. */
interface Reading {
  readonly value: Tensor;
  gradient?: Tensor;
}

/** What a pass reports of a tensor. */
type Told = {
  /** `TAP_STATISTICS`, float32 [6]. */
  statistics: Tensor;
  /** The tensor itself, where values are wanted. */
  values?: Tensor;
};

/** Results of a tap: those of the activation, and of its gradient where the loss depends on it. */
export type TapOutputs = { activation: Told; gradient?: Told };

/** `TAP_STATISTICS` of a tensor, float32 [6]. */
function statistics(tensor: Tensor): Tensor {
  const x = tf.cast(tf.reshape(tensor, [-1]), 'float32');
  const finite = tf.isFinite(x);
  const count = tf.sum(tf.cast(finite, 'float32'));
  const orElse = (value: Tensor, other: number) => tf.where(finite, value, tf.fill(x.shape, other));
  const mean = tf.div(tf.sum(orElse(x, 0)), count);
  const deviation = tf.sqrt(tf.div(tf.sum(tf.square(orElse(tf.sub(x, mean), 0))), count));
  const min = tf.min(orElse(x, Number.POSITIVE_INFINITY));
  const max = tf.max(orElse(x, Number.NEGATIVE_INFINITY));
  const [nans, infinities] = [tf.isNaN(x), tf.isInf(x)].map((flags) => tf.sum(tf.cast(flags, 'float32')));
  return tf.stack([mean, deviation, min, max, nans!, infinities!]);
}

/** The taps of one differentiated pass. */
export class Taps {
  readonly #readings = new Map<string, Reading>();
  readonly #names = new Set<string>();

  /**
   * @param isWanted whether to read a tap, by its name.
   * @param reportsValues whether to report values too.
   */
  constructor(
    private readonly isWanted: (name: string) => boolean,
    private readonly reportsValues = false,
  ) {}

  /** Names of all taps of the pass, wanted or not. */
  get names(): readonly string[] {
    return [...this.#names];
  }

  /** Dtype and shape of each activation that was read, by name. */
  get specs(): Readonly<Record<string, TensorSpec>> {
    const specs = [...this.#readings].map(([name, { value }]) => [
      name,
      { shape: value.shape, dtype: value.dtype },
    ]);
    return Object.fromEntries(specs) as Record<string, TensorSpec>;
  }

  /** `x`, to be used in its place. Of several under one name, later ones are `name#2`, `name#3` and so on. */
  read(base: string, x: Tensor): Tensor {
    let name = base;
    for (let i = 2; this.#names.has(name); i++) name = `${base}#${i}`;
    this.#names.add(name);
    if (!this.isWanted(name)) return x;
    const reading: Reading = { value: keepAuxiliary(x) };
    this.#readings.set(name, reading);
    return observeGradient(x, (gradient) => {
      reading.gradient = keepAuxiliary(gradient);
    });
  }

  /** Results by name, once gradients are computed. */
  outputs(): Record<string, TapOutputs> {
    const tell = (tensor: Tensor): Told => {
      const told = { statistics: statistics(tensor) };
      if (this.reportsValues) return { ...told, values: tensor };
      tensor.dispose();
      return told;
    };
    return Object.fromEntries(
      [...this.#readings].map(([name, { value, gradient }]) => [
        name,
        { activation: tell(value), ...(gradient && { gradient: tell(gradient) }) },
      ]),
    );
  }
}

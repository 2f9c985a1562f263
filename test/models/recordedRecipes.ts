/** @file Losses of DPO, GRPO and distillation as PyTorch computes them; scripts/record_recipes.py made them. */
import { readFileSync } from 'node:fs';
import { expect } from 'vitest';
import { type Tensor, tf } from '../../src/compiler/index.js';
import type { WeightedScalars } from '../../src/models/index.js';
import { expectClose, run } from '../layers/helpers.js';

type Arrays = Readonly<Record<string, { readonly shape: number[]; readonly data: number[] }>>;

/** Inputs, the loss and its gradients. */
interface Recorded {
  readonly inputs: Arrays;
  readonly loss: number;
  readonly gradients: Arrays;
}

const recorded: {
  readonly dpo: Recorded & { readonly beta: number; readonly accuracy: number; readonly margin: number };
  readonly grpo: Recorded & { readonly beta: number; readonly epsilon: number; readonly kl: number };
  readonly distillation: Recorded & {
    readonly temperature: number;
    readonly alpha: number;
    readonly distillation: number;
  };
} = JSON.parse(readFileSync(new URL('../fixtures/recipes.json', import.meta.url), 'utf8'));

export { recorded };

/** The recorded inputs as tensors. */
const inputsOf = ({ inputs }: Recorded): Record<string, Tensor> =>
  Object.fromEntries(
    Object.entries(inputs).map(([name, { data, shape }]) => [
      name,
      tf.tensor(data, shape, name === 'labels' ? 'int32' : 'float32'),
    ]),
  );

/** Expects the recorded loss, other `values` by metric, and the gradient by each input that has one. */
export function expectRecorded(
  record: Recorded,
  metricsOf: (inputs: Record<string, Tensor>) => WeightedScalars,
  values: Readonly<Record<string, number>>,
): void {
  const inputs = inputsOf(record);
  const metrics = run({}, () => metricsOf(inputs));
  for (const [name, value] of Object.entries({ total_loss: record.loss, ...values }))
    expect(metrics[name]![0].dataSync()[0], name).toBeCloseTo(value, 5);
  const names = Object.keys(record.gradients);
  const loss = (...moved: Tensor[]) =>
    run({}, () => metricsOf({ ...inputs, ...Object.fromEntries(names.map((name, i) => [name, moved[i]!])) }))
      .total_loss![0] as tf.Scalar;
  const grads = tf.grads(loss)(names.map((name) => inputs[name]!));
  for (const [i, name] of names.entries()) expectClose(grads[i]!, record.gradients[name]!.data, 2e-6);
}

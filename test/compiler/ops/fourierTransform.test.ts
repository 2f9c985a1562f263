/** @file The discrete Fourier transform, of lengths of each kind, against its sums in doubles. */
import { describe, expect, it } from 'vitest';
import { compile, type HostTensor, type Tensor, tf } from '../../../src/compiler/index.js';
import { engines } from '../engines.js';
import { repeatedly } from '../repeatedRuns.js';
import { floats } from '../values.js';

/** One product, factors of 2, factors of 3 and 5, and a prime, which is a convolution with a chirp. */
const LENGTHS = [24, 1024, 900, 1009];

const inputs = Object.fromEntries(LENGTHS.map((n) => [`x${n}`, floats([n], -1, 1, n)]));

/** The real and imaginary parts, alternating. */
function transformed({ data }: HostTensor): Float64Array {
  const n = data.length;
  const result = new Float64Array(2 * n);
  for (let k = 0; k < n; k++)
    for (let j = 0; j < n; j++) {
      const angle = (-2 * Math.PI * ((j * k) % n)) / n;
      result[2 * k]! += data[j]! * Math.cos(angle);
      result[2 * k + 1]! += data[j]! * Math.sin(angle);
    }
  return result;
}

const f = (given: Record<string, Tensor>): Record<string, Tensor> =>
  Object.fromEntries(
    Object.entries(given).map(([name, x]) => {
      const y = tf.fft(tf.complex(x, tf.zerosLike(x)));
      return [name, tf.stack([tf.real(y), tf.imag(y)], 1)];
    }),
  );

describe.each(engines)('%s', (_, { engine, available }) => {
  it.skipIf(!available)('errs by at most 2e-6 of the mean size of its results', async () => {
    const executable = await compile(f, inputs, { engine });
    const results = await repeatedly(executable, inputs);
    await executable.dispose();
    for (const [name, input] of Object.entries(inputs)) {
      const known = transformed(input);
      const size = Math.sqrt(known.reduce((sum, x) => sum + x * x, 0) / (known.length / 2));
      const { data } = (results as Record<string, HostTensor>)[name]!;
      const largest = known.reduce((most, x, i) => Math.max(most, Math.abs(x - data[i]!)), 0);
      expect(largest / size, name).toBeLessThan(2e-6);
      expect(largest, name).toBeGreaterThan(0);
    }
  });
});

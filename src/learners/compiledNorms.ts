/** @file Norms of many gradients at memory speed, where programs are machine code. */
import {
  type CompileOptions,
  compile,
  type FlatEntry,
  mayBeNative,
  type Tensor,
  tf,
} from '../compiler/index.js';
import { entrySumsOfSquares } from './norms.js';

/** Gives the sums of squares of all entries of one buffer, in their order. */
export type EntrySums = () => Promise<Float64Array>;

/** Fewer elements than this are summed before another program would have started. */
const MIN_ELEMENTS = 1 << 22;

/** Elements that are summed by themselves: sums of sums lose no more than a few units in the last place. */
const ROW = 1024;

function sumOfSquares(flat: Tensor, { offset, size }: FlatEntry): Tensor {
  const whole = Math.floor(size / ROW) * ROW;
  const part = (from: number, count: number): Tensor => tf.slice(flat, [offset + from], [count]);
  const sum = (x: Tensor): Tensor => tf.sum(tf.square(x));
  const tail = (): Tensor => sum(part(whole, size - whole));
  if (whole === 0) return tail();
  const rows = sum(tf.reshape(part(0, whole), [whole / ROW, ROW]));
  return whole === size ? rows : tf.add(rows, tail());
}

/**
 * The sums of squares of entries of `buffer`, as it is at each call. In float32, rows at a time, by the native engine where
 * there are many elements; else in double precision on the host.
 */
export async function compileEntrySums(
  entries: readonly FlatEntry[],
  buffer: Float32Array,
  options: CompileOptions,
): Promise<EntrySums> {
  const onHost = async (): Promise<Float64Array> => entrySumsOfSquares(entries, buffer);
  const elements = entries.reduce((sum, { size }) => sum + size, 0);
  if (!mayBeNative(options) || elements < MIN_ELEMENTS) return onHost;
  const program = await compile(
    ({ flat }: { flat: Tensor }) => entries.map((entry) => sumOfSquares(flat, entry)),
    { flat: { shape: [buffer.length], dtype: 'float32' } },
    { ...options, name: 'gradient_norms' },
  );
  if (program.runner !== 'native') {
    await program.dispose();
    return onHost;
  }
  const sums = entries.map(() => new Float32Array(1));
  const call = program.bind({ inputs: { flat: buffer }, outputs: sums });
  return async () => {
    await call.run();
    return Float64Array.from(sums, (sum) => sum[0]!);
  };
}

/** @file Storage of slots: what programs read and write of flat buffers, and the float32 values that rules see. */
import {
  type FlatArray,
  type FlatDtype,
  type FlatEntry,
  paddedSize,
  type Tensor,
  type TensorSpec,
  tf,
} from '../compiler/index.js';

/** Bytes of a word, in which programs read and write int8. */
const WORD = 4;

type Place = Pick<FlatEntry, 'offset' | 'size'>;

/** The spec of so many elements as a program reads them; of int8, with the padding behind them. */
export function storedSpec(dtype: FlatDtype, size: number): TensorSpec {
  return dtype === 'int8'
    ? { shape: [paddedSize(size) / WORD], dtype: 'int32' }
    : { shape: [size], dtype: 'float32' };
}

/** The part of a buffer that has `storedSpec`. */
export function storedPart(buffer: FlatArray, { offset, size }: Place): Float32Array | Int32Array {
  if (buffer instanceof Float32Array) return buffer.subarray(offset, offset + size);
  return new Int32Array(buffer.buffer, buffer.byteOffset + offset, paddedSize(size) / WORD);
}

/** Stored elements as float32, [elements, padding included]. */
export function asFloats(stored: Tensor, dtype: FlatDtype): Tensor {
  return dtype === 'int8' ? tf.cast(bytesOf(stored), 'float32') : stored;
}

/** float32 [elements] as they are stored. */
export function asStored(floats: Tensor, dtype: FlatDtype): Tensor {
  if (dtype !== 'int8') return floats;
  const padding = paddedSize(floats.size) - floats.size;
  const padded = padding > 0 ? tf.pad(floats, [[0, padding]]) : floats;
  return wordsOf(tf.cast(tf.round(tf.clipByValue(padded, -127, 127)), 'int32'));
}

const int = (value: number): Tensor => tf.scalar(value, 'int32');

/** The four signed bytes of each word, the lowest first, as they lie in memory: int32 [4 words]. */
function bytesOf(words: Tensor): Tensor {
  const bytes: Tensor[] = [];
  let rest = words;
  for (let i = 1; i < WORD; i++) {
    const byte = tf.mod(rest, int(256));
    bytes.push(tf.where(tf.less(byte, int(128)), byte, tf.sub(byte, int(256))));
    rest = tf.floorDiv(rest, int(256));
  }
  return tf.reshape(tf.stack([...bytes, rest], 1), [WORD * words.size]);
}

/** The words of signed bytes, int32 [4 words]. */
function wordsOf(bytes: Tensor): Tensor {
  const columns = tf.unstack(tf.reshape(bytes, [bytes.size / WORD, WORD]), 1);
  const unsigned = (byte: Tensor): Tensor => tf.where(tf.less(byte, int(0)), tf.add(byte, int(256)), byte);
  return columns
    .map((byte, i) => tf.mul(i < WORD - 1 ? unsigned(byte) : byte, int(256 ** i)))
    .reduce((sum, part) => tf.add(sum, part));
}

/** @file Values of summaries: scalars, and tensors for TensorBoard's plugins (summary.proto, tensor.proto). */
import { ProtobufMessage } from '../files/index.js';
import { encodeWav } from './encodeWav.js';
import { type Channels, encodePng } from './png.js';

/** Images, [n, height, width, channels] from 0 to 1; 1 channel is grey, 3 are RGB, 4 RGBA. */
export interface Images {
  readonly shape: readonly number[];
  readonly data: ArrayLike<number>;
}

/** Sounds, [n, samples, channels] from -1 to 1. */
interface Sounds extends Images {
  /** Samples per second. */
  readonly sampleRate: number;
}

/** A summary by type: a scalar, Markdown texts, values for a histogram, images, sounds. */
export type SummaryValue = number | string | readonly string[] | Float32Array | Images | Sounds;

/** Field numbers of Summary.Value. */
const VALUE = { tag: 1, simpleValue: 2, tensor: 8, metadata: 9 } as const;
const DATA_CLASS = { tensor: 2, blobs: 3 } as const;
const DT_FLOAT = 1;
const DT_DOUBLE = 2;
const DT_STRING = 7;

/** Buckets of a histogram, as TensorBoard's own writers have. */
const BUCKETS = 30;

/** Version 0 of a plugin's own message, with its further fields. */
const pluginContent = (): ProtobufMessage => new ProtobufMessage().int(1, 0);

/** AudioPluginData whose encoding is WAV. */
const wavContent = (): ProtobufMessage => pluginContent().int(2, 11);

/** Metadata that name the plugin of a value. */
function metadata(plugin: string, dataClass: number, content = pluginContent()): ProtobufMessage {
  const data = new ProtobufMessage().string(1, plugin).message(2, content);
  return new ProtobufMessage().message(1, data).int(4, dataClass);
}

/** A tensor of this shape, without its elements. */
function tensorOf(dtype: number, ...shape: number[]): ProtobufMessage {
  const dims = new ProtobufMessage();
  for (const size of shape) dims.message(2, new ProtobufMessage().int(1, size));
  return new ProtobufMessage().int(1, dtype).message(2, dims);
}

const isTexts = (value: SummaryValue): value is readonly string[] => Array.isArray(value);

/** Adds a value of its kind to a Summary.Value. */
function addValue(message: ProtobufMessage, value: SummaryValue): ProtobufMessage {
  if (typeof value === 'number') return message.float(VALUE.simpleValue, value);
  if (typeof value === 'string' || isTexts(value))
    return message
      .message(VALUE.tensor, textsTensor(value))
      .message(VALUE.metadata, metadata('text', DATA_CLASS.tensor));
  if (value instanceof Float32Array)
    return message
      .message(VALUE.tensor, histogramTensor(value))
      .message(VALUE.metadata, metadata('histograms', DATA_CLASS.tensor));
  if ('sampleRate' in value)
    return message
      .message(VALUE.tensor, soundsTensor(value))
      .message(VALUE.metadata, metadata('audio', DATA_CLASS.blobs, wavContent()));
  return message
    .message(VALUE.tensor, imagesTensor(value))
    .message(VALUE.metadata, metadata('images', DATA_CLASS.blobs));
}

/** A Summary.Value. */
export function summaryValue(tag: string, value: SummaryValue): ProtobufMessage {
  return addValue(new ProtobufMessage().string(VALUE.tag, tag), value);
}

/** Buckets [left, right, count] of equal width over the finite values; none without finite values. */
export function histogramBuckets(values: Float32Array): Float64Array {
  const finite = values.filter(Number.isFinite);
  if (finite.length === 0) return new Float64Array(0);
  let [least, most] = [finite[0]!, finite[0]!];
  for (const value of finite) [least, most] = [Math.min(least, value), Math.max(most, value)];
  // Equal values make one bucket around them.
  if (least === most) return Float64Array.of(least - 0.5, most + 0.5, finite.length);
  const width = (most - least) / BUCKETS;
  const buckets = new Float64Array(3 * BUCKETS);
  for (let i = 0; i < BUCKETS; i++) buckets.set([least + i * width, least + (i + 1) * width], 3 * i);
  for (const value of finite) buckets[3 * Math.min(BUCKETS - 1, Math.floor((value - least) / width)) + 2]!++;
  return buckets;
}

/** [buckets, 3], double. */
function histogramTensor(values: Float32Array): ProtobufMessage {
  const buckets = histogramBuckets(values);
  return tensorOf(DT_DOUBLE, buckets.length / 3, 3).blob(4, new Uint8Array(buckets.buffer));
}

/** A string, or [n] strings, which TensorBoard shows as a table. */
function textsTensor(texts: string | readonly string[]): ProtobufMessage {
  if (typeof texts === 'string') return tensorOf(DT_STRING).string(8, texts);
  return texts.reduce((tensor, text) => tensor.string(8, text), tensorOf(DT_STRING, texts.length));
}

/** [n, 2], strings: a WAV file of each sound, and its label, which is empty. */
function soundsTensor({ shape, data, sampleRate }: Sounds): ProtobufMessage {
  const [count = 0, samples = 0, channels = 1] = shape;
  const [size, values] = [samples * channels, Float32Array.from(data)];
  const tensor = tensorOf(DT_STRING, count, 2);
  for (let i = 0; i < count; i++)
    tensor.blob(8, encodeWav(values.subarray(i * size, (i + 1) * size), channels, sampleRate)).string(8, '');
  return tensor;
}

/** [2 + n], strings: width, height, a PNG of each image. */
function imagesTensor({ shape, data }: Images): ProtobufMessage {
  const [count = 0, height = 0, width = 0, channels] = shape;
  const size = height * width * channels!;
  const pixels = Float32Array.from(data);
  const tensor = tensorOf(DT_STRING, 2 + count)
    .string(8, String(width))
    .string(8, String(height));
  for (let i = 0; i < count; i++) {
    const image = pixels.subarray(i * size, (i + 1) * size);
    tensor.blob(8, encodePng(image, height, width, channels as Channels));
  }
  return tensor;
}

/** A google.protobuf.Value. */
const plainValue = (value: number | string): ProtobufMessage =>
  typeof value === 'number' ? new ProtobufMessage().double(2, value) : new ProtobufMessage().string(3, value);

/**
 * The hyperparameters of a run as the start of a session (plugins/hparams/plugin_data.proto). TensorBoard finds the
 * columns of its table, and the metrics, by itself.
 *
 * @param startSeconds the start of the run, in seconds since 1970.
 */
export function hparamsValue(
  hparams: Readonly<Record<string, number | string>>,
  startSeconds: number,
): ProtobufMessage {
  const session = new ProtobufMessage();
  for (const [name, value] of Object.entries(hparams))
    session.message(1, new ProtobufMessage().string(1, name).message(2, plainValue(value)));
  session.double(5, startSeconds);
  const content = pluginContent().message(3, session);
  return (
    new ProtobufMessage()
      .string(VALUE.tag, '_hparams_/session_start_info')
      // Empty: the metadata say it all, and TensorBoard lists only tags with a tensor.
      .message(VALUE.tensor, tensorOf(DT_FLOAT, 0))
      .message(VALUE.metadata, metadata('hparams', DATA_CLASS.tensor, content))
  );
}

/** @file Summaries that TensorBoard's plugins read: text and histograms (summary.proto, tensor.proto). */
import { ProtobufMessage } from '../files/index.js';

/** Field numbers of Summary.Value. */
const VALUE = { tag: 1, tensor: 8, metadata: 9 } as const;
const DATA_CLASS_TENSOR = 2;
const DT_DOUBLE = 2;
const DT_STRING = 7;

/** Buckets of a histogram, as TensorBoard's own writers have. */
const BUCKETS = 30;

/** A value of a plugin. @param content the plugin's own message */
function pluginValue(
  tag: string,
  plugin: string,
  tensor: ProtobufMessage,
  content?: ProtobufMessage,
): ProtobufMessage {
  const data = new ProtobufMessage().string(1, plugin);
  if (content !== undefined) data.message(2, content);
  const metadata = new ProtobufMessage().message(1, data).int(4, DATA_CLASS_TENSOR);
  return new ProtobufMessage()
    .string(VALUE.tag, tag)
    .message(VALUE.tensor, tensor)
    .message(VALUE.metadata, metadata);
}

/** A text, which TensorBoard shows as Markdown. */
export function textValue(tag: string, text: string): ProtobufMessage {
  const tensor = new ProtobufMessage().int(1, DT_STRING).message(2, new ProtobufMessage()).string(8, text);
  return pluginValue(tag, 'text', tensor);
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

/** A histogram of an array's finite values. */
export function histogramValue(tag: string, values: Float32Array): ProtobufMessage {
  const buckets = histogramBuckets(values);
  const size = (length: number) => new ProtobufMessage().int(1, length);
  const shape = new ProtobufMessage().message(2, size(buckets.length / 3)).message(2, size(3));
  const tensor = new ProtobufMessage().int(1, DT_DOUBLE).message(2, shape);
  tensor.blob(4, new Uint8Array(buckets.buffer));
  return pluginValue(tag, 'histograms', tensor, new ProtobufMessage().int(1, 0));
}

/** @file Event files read back: the summaries of a folder by plugin and tag. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Fields of a protobuf message by number, in the order of writing. */
export function fieldsOf(bytes: Buffer): Map<number, (number | Buffer)[]> {
  const fields = new Map<number, (number | Buffer)[]>();
  let at = 0;
  const varint = (): number => {
    let [value, scale] = [0, 1];
    for (; ; scale *= 128) {
      const byte = bytes[at++]!;
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  };
  const take = (length: number): Buffer => bytes.subarray(at, (at += length));
  while (at < bytes.length) {
    const tag = varint();
    const read = {
      0: varint,
      1: () => take(8).readDoubleLE(),
      2: () => take(varint()),
      5: () => take(4).readFloatLE(),
    };
    const value = read[(tag & 7) as keyof typeof read]();
    fields.set(tag >> 3, [...(fields.get(tag >> 3) ?? []), value]);
  }
  return fields;
}

/** A summary of an event file. */
export interface ReadSummary {
  readonly step: number;
  readonly tag: string;
  /** `scalars`, or the plugin that shows it. */
  readonly plugin: string;
  readonly scalar: number | undefined;
  /** Strings of a tensor. */
  readonly strings: readonly Buffer[];
  /** Raw elements of a tensor. */
  readonly content: Buffer | undefined;
  /** The plugin's own message. */
  readonly pluginContent: Buffer | undefined;
}

function summaryOf(step: number, bytes: Buffer): ReadSummary {
  const value = fieldsOf(bytes);
  const inner = (field: number, from = value) =>
    fieldsOf((from.get(field)?.[0] as Buffer) ?? Buffer.alloc(0));
  const [tensor, plugin] = [inner(8), inner(1, inner(9))];
  return {
    step,
    tag: String(value.get(1)![0]),
    plugin: String(plugin.get(1)?.[0] ?? 'scalars'),
    scalar: value.get(2)?.[0] as number | undefined,
    strings: (tensor.get(8) ?? []) as Buffer[],
    content: tensor.get(4)?.[0] as Buffer | undefined,
    pluginContent: plugin.get(2)?.[0] as Buffer | undefined,
  };
}

/** The summaries of the event files in a folder. */
export function readEvents(folder: string): ReadSummary[] {
  const files = readdirSync(folder).filter((name) => name.startsWith('events.'));
  return files.flatMap((name) => {
    const bytes = readFileSync(join(folder, name));
    const found: ReadSummary[] = [];
    for (let at = 0; at < bytes.length; ) {
      const length = Number(bytes.readBigUInt64LE(at));
      const event = fieldsOf(bytes.subarray(at + 12, at + 12 + length));
      const step = (event.get(2)?.[0] ?? 0) as number;
      for (const summary of event.get(5) ?? [])
        for (const value of fieldsOf(summary as Buffer).get(1) ?? [])
          found.push(summaryOf(step, value as Buffer));
      at += 16 + length;
    }
    return found;
  });
}

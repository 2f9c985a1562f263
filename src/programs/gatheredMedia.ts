/** @file Summaries of layers that are no scalars, gathered over steps: images, sounds, texts, histograms. */
import type { HostTensor } from '../compiler/index.js';
import type { InputSource } from '../inputs/index.js';
import { MOST_ENTRIES, mediaType } from '../layers/index.js';
import type { SummaryValue } from '../summaries/index.js';

/** Texts of rows of ids [n, length]. */
export type TextsOf = (ids: { readonly shape: readonly number[]; readonly data: Int32Array }) => string[];

/** Texts by an input's vocabulary; the numbers themselves of rows that have others than its own. */
export function textsOf(input: Pick<InputSource, 'vocabularyFor'>): TextsOf {
  const vocabulary = input.vocabularyFor('ids');
  return ({ shape: [n = 0, length = 0], data }) =>
    Array.from({ length: n }, (_, row) => {
      const ids = data.subarray(row * length, (row + 1) * length);
      return vocabulary && ids.every((id) => vocabulary.hasText(id)) ? vocabulary.decode(ids) : ids.join(' ');
    });
}

/** Tensors of one summary, the newest first: of histograms all, of others at most 64 entries. */
class Gathered {
  readonly #parts: HostTensor[] = [];

  add(name: string, { shape, dtype, data }: HostTensor): void {
    const { kind } = mediaType(name);
    // The next step overwrites it.
    this.#parts.unshift({ shape, dtype, data: data.slice() } as HostTensor);
    if (kind === 'histogram') return;
    let count = 0;
    const kept = this.#parts.findIndex((part) => (count += part.shape[0] ?? 0) >= MOST_ENTRIES);
    if (kept >= 0) this.#parts.length = kept + 1;
  }

  /** All of them along the first axis, the newest entries first. */
  joined(name: string): { readonly shape: readonly number[]; readonly data: Float32Array | Int32Array } {
    const [, ...rest] = this.#parts[0]!.shape;
    const all = this.#parts.reduce((sum, { shape }) => sum + (shape[0] ?? 0), 0);
    const count = mediaType(name).kind === 'histogram' ? all : Math.min(all, MOST_ENTRIES);
    const size = rest.reduce((product, length) => product * length, 1);
    const data =
      this.#parts[0]!.dtype === 'int32' ? new Int32Array(count * size) : new Float32Array(count * size);
    let at = 0;
    for (const part of this.#parts) {
      const taken = part.data.subarray(0, data.length - at);
      data.set(taken, at);
      at += taken.length;
    }
    return { shape: [count, ...rest], data };
  }
}

/** Summaries by name since they were last taken (SummaryHandler in paxml/summary_utils.py). */
export class GatheredMedia {
  readonly #byName = new Map<string, Gathered>();

  constructor(private readonly texts: TextsOf) {}

  /** Adds those of a step. */
  add(media: Readonly<Record<string, HostTensor>>): this {
    for (const [name, tensor] of Object.entries(media)) {
      const gathered = this.#byName.get(name) ?? new Gathered();
      gathered.add(name, tensor);
      this.#byName.set(name, gathered);
    }
    return this;
  }

  /** The summaries, with which it is empty again. */
  take(): Record<string, SummaryValue> {
    const values = [...this.#byName].map(([name, gathered]) => [name, this.#value(name, gathered)] as const);
    this.#byName.clear();
    return Object.fromEntries(values);
  }

  #value(name: string, gathered: Gathered): SummaryValue {
    const { kind, sampleRate } = mediaType(name);
    const { shape, data } = gathered.joined(name);
    switch (kind) {
      case 'text':
        return this.texts({ shape, data: data as Int32Array });
      case 'histogram':
        return data as Float32Array;
      case 'audio':
        return { shape, data, sampleRate };
      case 'image':
        return { shape, data };
    }
  }
}

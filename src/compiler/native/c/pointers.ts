/** @file Numbered pointers of steps, so that equal layers share code over different memory. */
import type { Buffer, Loop } from '../plan/views.js';
import { storageBytes } from '../plan/views.js';

/** Target of a pointer; offsets are bytes. */
export interface Place {
  readonly space: 'arena' | 'input' | 'output' | 'constant' | 'packed' | 'workspace';
  readonly index: number;
  readonly offset: number;
  /** Offsets that the turns of loops add. */
  readonly terms?: readonly Term[];
}

/** Bytes that a turn of a loop adds to a pointer, as in `Turn`. */
interface Term {
  readonly loop: Loop;
  readonly step: number;
  readonly shift: number;
  readonly period: number;
}

/** The place of an element of a buffer with memory of its own. */
export function placeOf(buffer: Buffer, element: number): Place {
  const { home } = buffer;
  const bytes = element * storageBytes(buffer.storage);
  switch (home.kind) {
    case 'arena':
      return { space: 'arena', index: 0, offset: home.offset + bytes };
    case 'input':
    case 'output':
    case 'constant':
      return { space: home.kind, index: home.index, offset: bytes };
    case 'slice': {
      const place = placeOf(home.of, home.offset + element);
      if (home.turn === null) return place;
      const { loop, step, shift, period } = home.turn;
      const term = { loop, step: step * storageBytes(buffer.storage), shift, period };
      return { ...place, terms: [...(place.terms ?? []), term] };
    }
    default:
      throw new Error(`buffer %${buffer.id} has no place: it is in a ${home.kind}`);
  }
}

/** Pointers of one step, numbered by first use. */
export class Pointers {
  /** @param loops of the program. */
  constructor(private readonly loops: readonly Loop[]) {}

  readonly places: Place[] = [];
  private readonly numbers = new Map<string, number>();

  /** `p[3]`, for a place. */
  use(place: Place): string {
    const terms = (place.terms ?? []).map(
      ({ loop, step, shift, period }) => ` ${this.loops.indexOf(loop)} ${step} ${shift} ${period}`,
    );
    const key = `${place.space} ${place.index} ${place.offset}${terms.join('')}`;
    let number = this.numbers.get(key);
    if (number === undefined) {
      number = this.places.length;
      this.places.push(place);
      this.numbers.set(key, number);
    }
    return `p[${number}]`;
  }

  /** A number of its own per use: equal places here may differ in another layer. */
  useAlone(place: Place): string {
    this.places.push(place);
    return `p[${this.places.length - 1}]`;
  }
}

/** @file Pointers of steps, named by number, so that equal layers are equal code over other memory. */
import type { Buffer } from '../views.js';
import { storageBytes } from '../views.js';

/** What a pointer points to; offsets are bytes. */
export interface Place {
  readonly space: 'arena' | 'input' | 'output' | 'constant' | 'packed' | 'workspace' | 'offset';
  readonly index: number;
  readonly offset: number;
}

/** The place of an element of a buffer that has memory of its own. */
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
    default:
      throw new Error(`buffer %${buffer.id} has no place: it is in a ${home.kind}`);
  }
}

/** The pointers of one step, numbered in the order of their first use. */
export class Pointers {
  readonly places: Place[] = [];
  private readonly numbers = new Map<string, number>();

  /** `p[3]`, for a place. */
  use(place: Place): string {
    const key = `${place.space} ${place.index} ${place.offset}`;
    let number = this.numbers.get(key);
    if (number === undefined) {
      number = this.places.length;
      this.places.push(place);
      this.numbers.set(key, number);
    }
    return `p[${number}]`;
  }

  /** Equal numbers need not be the same pointer in another layer: a number of its own for each use. */
  useAlone(place: Place): string {
    this.places.push(place);
    return `p[${this.places.length - 1}]`;
  }
}

/** @file Pages of prompts: the state of blocks of tokens, from which prompts that begin alike are continued. */
import type { BoundArray } from '../compiler/index.js';
import type { DecodeState } from './decodeState.js';

/** The state of a block of tokens behind certain others. */
interface Page {
  readonly key: string;
  /** Names it in the keys of the pages behind it. */
  readonly id: number;
  readonly arrays: Readonly<Record<string, BoundArray>>;
}

/**
 * Pages of blocks of one size, by their tokens and all before them, as vLLM's prefix cache keeps them (Kwon et al., 2023). Rows
 * get copies: an attention reads a row's keys in memory order, and copying a page takes a hundredth of the time of computing it.
 */
export class PrefixPages {
  /** Oldest use first. */
  readonly #pages = new Map<string, Page>();
  #nextId = 1;

  /** @param most pages that are kept. @param size tokens of each. */
  constructor(
    private readonly most: number,
    readonly size: number,
  ) {}

  /** Pages that are kept. */
  get count(): number {
    return this.#pages.size;
  }

  /** Forgets all, since the parameters have changed. */
  clear(): void {
    this.#pages.clear();
  }

  /** The pages of a prompt, from its first token on. */
  begin(prompt: Int32Array): PagedPrompt {
    let parent = 0;
    // Behind a block that is not kept, others would be found by tokens alone.
    let isWhole = true;
    const used: Page[] = [];
    const keyOf = (begin: number) => `${parent}:${prompt.subarray(begin, begin + this.size).join()}`;
    const add = (page: Page): void => {
      used.push(page);
      parent = page.id;
    };
    return {
      take: (state, begin) => {
        const page = isWhole ? this.#pages.get(keyOf(begin)) : undefined;
        if (page === undefined) return false;
        state.putPlaces(begin, this.size, page.arrays);
        add(page);
        return true;
      },
      keep: (state, begin) => {
        isWhole &&= used.length < this.most;
        if (!isWhole) return;
        const page = { key: keyOf(begin), id: this.#nextId++, arrays: state.takePlaces(begin, this.size) };
        this.#pages.set(page.key, page);
        add(page);
        this.#touch(used);
      },
      end: () => this.#touch(used),
    };
  }

  /** Makes pages the newest, the first of a prompt last: none outlives those before it. */
  #touch(used: readonly Page[]): void {
    for (const page of [...used].reverse()) {
      this.#pages.delete(page.key);
      this.#pages.set(page.key, page);
    }
    for (const key of this.#pages.keys()) {
      if (this.#pages.size <= this.most) return;
      this.#pages.delete(key);
    }
  }
}

/** The pages of a prompt, which are taken or kept in order. */
interface PagedPrompt {
  /** Writes the page that begins at a position to a state of one row. @returns whether there is one */
  take(state: DecodeState, begin: number): boolean;
  /** Keeps what a state of one row has from a position on. */
  keep(state: DecodeState, begin: number): void;
  /** Must be called behind the last page. */
  end(): void;
}

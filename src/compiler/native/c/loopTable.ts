/** @file C tables of a program's loops, and of the pointers that move with their turns. */
import type { StepLoop } from '../plan/threadSteps.js';
import { type Place, placeOf } from './pointers.js';

/** Rows of the tables `lt_loop` and `lt_term` of program.h. */
export class LoopTable {
  /** Numbers of the first place of each loop, and of the place behind its last. */
  private readonly ranges: { first: number; end: number; predicate: number }[] = [];

  /** @param places of all steps that were written so far. */
  constructor(
    private readonly loops: readonly StepLoop[],
    private readonly places: Place[],
  ) {}

  /** Notes which loops begin and end before a step. */
  reach(step: number): void {
    this.loops.forEach(({ loop, first, end }, i) => {
      if (end === step) this.ranges[i]!.end = this.places.length;
      if (first !== step) return;
      const { predicate } = loop;
      const at = this.places.length;
      // The predicate belongs to the loops around this one.
      if (predicate !== undefined) this.places.push(placeOf(predicate.view.buffer, predicate.view.offset));
      this.ranges[i] = { first: this.places.length, end: -1, predicate: predicate === undefined ? -1 : at };
    });
  }

  /** The tables' rows, once all steps are written. */
  rows(): { readonly loops: readonly string[]; readonly terms: readonly string[] } {
    const terms: string[] = [];
    const before: number[] = [];
    this.places.forEach((place, i) => {
      before.push(terms.length);
      for (const { loop, step, shift, period } of place.terms ?? []) {
        const number = this.loops.findIndex((each) => each.loop === loop);
        terms.push(`{${i}, ${number}, ${shift}, ${period}, ${step}}`);
      }
    });
    before.push(terms.length);
    const loops = this.loops.map(({ loop, first, end }, i) => {
      const range = this.ranges[i]!;
      const lastPlace = range.end < 0 ? this.places.length : range.end;
      const holds = loop.predicate?.holds === true ? 1 : 0;
      return `{${first}, ${end}, ${loop.length}, ${range.predicate}, ${holds}, ${before[range.first]}, ${before[lastPlace]}}`;
    });
    return { loops, terms };
  }
}

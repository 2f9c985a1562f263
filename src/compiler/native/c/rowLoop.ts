/** @file C loop over rows, nested where rows are those of several axes, so that no row's address takes a division. */
import type { Run } from '../plan/views.js';
import { rowOffset } from './cNames.js';

/** Rows that each run, and those within it, go through before it starts anew; the innermost first. */
function turnsOf(runs: readonly Run[]): number[] {
  let inner = 1;
  return runs
    .slice(1)
    .reverse()
    .map(({ size }) => (inner *= size));
}

/** Loop over the rows of a unit. */
export class RowLoop {
  /** Rows from one value of each counter to the next: of `i0` 1, of `i1` all values of `i0`, and so on. */
  private readonly steps: readonly number[];

  /** @param rows runs of all accesses of the unit. */
  constructor(rows: readonly (readonly Run[])[]) {
    const turns = new Set(rows.flatMap(turnsOf));
    const steps = [1];
    // Axes of different reshapes may have no common refinement; what is left out is divided.
    for (const turn of [...turns].sort((a, b) => a - b))
      if (turn > steps.at(-1)! && turn % steps.at(-1)! === 0) steps.push(turn);
    this.steps = steps;
  }

  /** Element offset of the present row. */
  offset(runs: readonly Run[]): string {
    const { steps } = this;
    if (steps.length === 1 || turnsOf(runs).some((turn) => !steps.includes(turn))) return rowOffset(runs);
    const terms: string[] = [];
    let inner = 1;
    for (const [at, { size, stride }] of [...runs.entries()].reverse()) {
      steps.forEach((step, level) => {
        const isWithin = step >= inner && (at === 0 || step < inner * size);
        if (isWithin && stride !== 0) terms.unshift(`i${level} * ${stride * (step / inner)}`);
      });
      inner *= size;
    }
    return terms.length === 0 ? '0' : terms.join(' + ');
  }

  /** The loop, from row `r0` to before `r1`, with these lines for each row. */
  write(body: string): string {
    const { steps } = this;
    if (steps.length === 1) return `  for (int64_t r = r0; r < r1; r++) {\n${body}  }\n`;
    const size = (level: number): number => steps[level + 1]! / steps[level]!;
    const last = steps.length - 1;
    const starts = steps.map((step, level) => {
      const count = step === 1 ? 'r0' : `r0 / ${step}`;
      return `i${level} = ${count}${level === last ? '' : ` % ${size(level)}`}`;
    });
    const carries = steps
      .slice(1, -1)
      .map((_, at) => `    if (i${at + 1} == ${size(at + 1)}) i${at + 1} = 0, i${at + 2}++;\n`);
    return (
      `  int64_t ${starts.join(', ')};\n` +
      `  for (int64_t r = r0; r < r1;) {\n` +
      `    const int64_t end = r + ${size(0)} - i0 < r1 ? r + ${size(0)} - i0 : r1;\n` +
      `    for (; r < end; r++, i0++) {\n${body}    }\n` +
      `    i0 = 0, i1++;\n${carries.join('')}  }\n`
    );
  }
}

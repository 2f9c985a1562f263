/** @file Outputs that may share memory with inputs, since each element is last read before it is overwritten. */

import { partitionOf } from './blocks.js';
import { touchedReads, touchedWrites } from './chainRows.js';
import { formOf } from './forms.js';
import { sameAccess } from './iteration.js';
import { LoopValues } from './loopValues.js';
import {
  type Plan,
  readsOfStep,
  type Step,
  type StepLoop,
  unitsOfStep,
  writesOfStep,
} from './threadSteps.js';
import type { CallUnit, LoopUnit } from './units.js';
import { type Buffer, rootOf, type View } from './views.js';

/** Numbers of an output and of an input. */
export type Overwrite = readonly [output: number, input: number];

/**
 * Whether a loop reads each element of `input` no later than it writes that of `output`: by earlier operations of the same
 * pass over the row, or the same one, or in an earlier pass, on the same thread.
 */
function loopAllows(unit: LoopUnit, byColumns: boolean, output: Buffer, input: Buffer): boolean {
  const { nodes } = unit;
  const values = new LoopValues(unit);
  const first = nodes.findIndex(({ write }) => write.buffer === output);
  const pass = first < 0 ? 0 : values.of(nodes[first]!).phase;
  return nodes.every((node, i) => {
    // A row's reduction is written behind a pass, and what has one value a row is read before the first.
    if (node.write.buffer === output && node.role !== 'map' && node.role !== 'row') return false;
    return node.reads.every((read) => {
      if (typeof read === 'number' || read.buffer !== input) return true;
      const isOneForOne = nodes.every(
        ({ write }) => write.buffer !== output || sameAccess({ ...write, buffer: input }, read),
      );
      // A value that is one for all columns is read by every thread.
      const isOwn = !byColumns || (node.wide && read.column !== 0);
      const last = values.lastPassOf(values.of(node));
      const isEarlier = last < pass || (last === pass && values.of(node).phase === pass && i <= first);
      return formOf(node.op)?.kind !== 'gather' && isEarlier && isOneForOne && isOwn;
    });
  });
}

const sameView = (x: View, y: View): boolean =>
  x.offset === y.offset && x.strides.every((stride, i) => stride === y.strides[i]);

const callAllows = ({ form, inputs, outputs }: CallUnit, input: Buffer): boolean =>
  form.isInPlace === true &&
  sameView(inputs[0]!, outputs[0]!) &&
  inputs.slice(1).every(({ buffer }) => buffer !== input);

/** Whether the units of a chain that read `input` access only rows that are written later. */
function chainAllows(step: Extract<Step, { kind: 'chain' }>, output: Buffer, input: Buffer): boolean {
  const { units, rows } = step.chain;
  const written = units.flatMap((unit, i) =>
    touchedWrites(unit, rows).flatMap(({ buffer, stride }) => (buffer === output ? [{ i, stride }] : [])),
  );
  return units.every((unit, i) =>
    touchedReads(unit, rows).every(({ buffer, stride }) => {
      if (buffer !== input) return true;
      return written.every((write) =>
        write.i === i
          ? unit.kind === 'loop' && loopAllows(unit, false, output, input)
          : write.i > i && stride !== null && stride === write.stride,
      );
    }),
  );
}

/** Whether a step that reads `input` may write `output` to the same memory. */
function stepAllows(step: Step, output: Buffer, input: Buffer): boolean {
  if (step.kind === 'chain') return chainAllows(step, output, input);
  const [unit] = unitsOfStep(step);
  if (unit?.kind === 'loop') return loopAllows(unit, partitionOf(unit) === 'columns', output, input);
  return step.kind === 'call' && callAllows(unit as CallUnit, input);
}

/** Steps that access each input buffer, or each output buffer. */
function touching(steps: readonly Step[], kind: 'input' | 'output'): Map<Buffer, Step[]> {
  const found = new Map<Buffer, Step[]>();
  for (const step of steps) {
    const touched = (kind === 'input' ? readsOfStep(step) : writesOfStep(step)).map(rootOf);
    for (const buffer of new Set(touched.filter(({ home }) => home.kind === kind)))
      found.set(buffer, [...(found.get(buffer) ?? []), step]);
  }
  return found;
}

/**
 * Outputs that the schedule lets share memory with inputs of as many elements: a barrier separates every read from
 * every later write, or both are in the same step and place.
 */
export function overwritesOf({ steps, loops }: Plan): Overwrite[] {
  /** The outermost loop that a step is in. */
  const loopOf = (step: Step): StepLoop | undefined => {
    const at = steps.indexOf(step);
    return loops.find(({ first, end }) => at >= first && at < end);
  };
  const isBefore = (reading: Step, writing: Step): boolean =>
    reading.epoch < writing.epoch && (loopOf(reading) === undefined || loopOf(reading) !== loopOf(writing));
  const [read, written] = [touching(steps, 'input'), touching(steps, 'output')];
  const allowed: Overwrite[] = [];
  for (const [output, writes] of written) {
    for (const [input, reads] of read) {
      if (input.size !== output.size || input.storage !== output.storage) continue;
      const isAllowed = reads.every((reading) =>
        writes.every((writing) =>
          reading === writing && loopOf(reading) === undefined
            ? stepAllows(reading, output, input)
            : isBefore(reading, writing),
        ),
      );
      if (isAllowed)
        allowed.push([(output.home as { index: number }).index, (input.home as { index: number }).index]);
    }
  }
  return allowed;
}

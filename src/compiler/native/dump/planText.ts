/** @file Text form of a plan: steps with their barriers, and the memory layout. */

import { operandBytes } from '../../program/precision.js';
import { blocksOf } from '../plan/blocks.js';
import { bufferBytes, lifetimesIn, lifetimesOf } from '../plan/memory.js';
import { bytesOfPlaces } from '../plan/packedPlaces.js';
import type { NativePlan } from '../plan/planGraphs.js';
import type { Packing } from '../plan/stages.js';
import { rowLength } from '../plan/storage.js';
import type { Accumulator, Step } from '../plan/threadSteps.js';
import type { Unit } from '../plan/units.js';
import type { Buffer, Loop } from '../plan/views.js';
import { bufferName, unitLines } from './unitText.js';

const packingText = ({ unit: { b, k, n }, precision }: Packing): string =>
  `${bufferName(b.buffer)}${b.offset === 0 ? '' : `+${b.offset}`}[${k},${n}] in ${precision}`;

const sumText = ({ node }: Accumulator): string => `${bufferName(node.write.buffer)} = ${node.op}`;

/** A step on one line, then the units that it runs. */
function stepLines(step: Step, { units }: NativePlan): string[] {
  const all = (run: readonly Unit[]): string[] =>
    run.flatMap((unit) =>
      unitLines(unit).map((line, row) =>
        row === 0 ? `  unit ${units.indexOf(unit)}: ${line}` : `    ${line}`,
      ),
    );
  switch (step.kind) {
    case 'chain': {
      const { rows } = step.chain;
      return [`chain of ${rows} rows, in blocks of ${blocksOf(step.chain).size}`, ...all(step.chain.units)];
    }
    case 'pack':
      return [`pack ${step.packings.map(packingText).join('; ')}`];
    case 'products':
      return ['pack and multiply, a slab at a time', ...all(step.products)];
    case 'finish':
      return [`add the blocks' partial sums of ${step.accumulators.map(sumText).join('; ')}`];
    default: {
      const shares = { loop: 'rows or columns', narrow: 'columns', batch: 'items', call: 'work' };
      return [`threads share the ${shares[step.kind]} of`, ...all(step.stage.units)];
    }
  }
}

/** The loop or branch that steps run under. */
function loopText({ length, predicate }: Loop): string {
  if (predicate === undefined) return `${length} turns of`;
  return `only if ${bufferName(predicate.view.buffer)} is ${predicate.holds}:`;
}

/** Prints the steps in order, those of loops and branches indented; every thread runs its share of each. */
export function stepsText(plan: NativePlan): string {
  const { steps, loops, onceSteps } = plan.plan;
  const lines = steps.flatMap((step, i) => {
    const around = loops.filter(({ first, end }) => i >= first && i < end);
    const indented = (depth: number, texts: readonly string[]): string[] =>
      texts.map((text) => '  '.repeat(depth) + text);
    const begun = around.flatMap(({ loop, first }, depth) =>
      first === i ? indented(depth, [loopText(loop)]) : [],
    );
    const barrier = i > 0 && steps[i - 1]!.epoch !== step.epoch ? ['-- barrier --'] : [];
    const [head, ...rest] = stepLines(step, plan);
    const when = i < onceSteps ? ' (only once its inputs have changed)' : '';
    return [...barrier, ...begun, ...indented(around.length, [`step ${i}${when}: ${head}`, ...rest])];
  });
  return `${lines.join('\n')}\n`;
}

/** Aligns columns: the leading ones left, numbers right. */
function table(header: readonly string[], rows: readonly (readonly (string | number)[])[]): string[] {
  const texts = [header, ...rows.map((row) => row.map((cell) => cell.toLocaleString('en-US')))];
  const widths = header.map((_, i) => Math.max(...texts.map((row) => row[i]!.length)));
  const isNumber = header.map((_, i) => rows.every((row) => typeof row[i] === 'number'));
  return texts.map((row) =>
    row
      .map((cell, i) => (isNumber[i] ? cell.padStart(widths[i]!) : cell.padEnd(widths[i]!)))
      .join('  ')
      .trimEnd(),
  );
}

const grouped = (value: number): string => value.toLocaleString('en-US');

const HEADER = ['buffer', 'stored as', 'elements', 'bytes', 'from', 'to', 'offset'];

type Spans = ReadonlyMap<Buffer, { readonly from: number; readonly to: number }>;

function placed(
  spans: Spans,
  kind: 'arena' | 'scratch',
  elements: (buffer: Buffer) => number,
): (string | number)[][] {
  return [...spans].flatMap(([buffer, { from, to }]) => {
    const { home, storage } = buffer;
    if (home.kind !== kind) return [];
    const count = elements(buffer);
    return [[bufferName(buffer), storage, count, bufferBytes(buffer, count), from, to, home.offset]];
  });
}

const bytesOf = (rows: readonly (readonly (string | number)[])[]): number =>
  rows.reduce((sum, row) => sum + (row[3] as number), 0);

function arenaLines({ plan, arenaBytes }: NativePlan): string[] {
  const rows = placed(lifetimesOf(plan).spans, 'arena', ({ size }) => size);
  return [
    `arena: ${grouped(arenaBytes)} bytes, for ${grouped(bytesOf(rows))} bytes of buffers; from and to count barriers`,
    ...table(HEADER, rows),
  ];
}

function scratchLines({ plan, scratchBytes }: NativePlan): string[] {
  const lines = [
    `scratch: ${grouped(scratchBytes)} bytes a thread, shared by the chains; from and to count units`,
  ];
  plan.steps.forEach((step, i) => {
    if (step.kind !== 'chain') return;
    const { chain } = step;
    const length = (buffer: Buffer): number => rowLength(buffer, chain)! * blocksOf(chain).size;
    const rows = placed(lifetimesIn(chain).spans, 'scratch', length);
    if (rows.length > 0) lines.push(`step ${i}:`, ...table(HEADER, rows).map((line) => `  ${line}`));
  });
  return lines;
}

/** Lists the buffers that loops keep in registers. */
function registerLines({ units }: NativePlan): string[] {
  const names = units.flatMap((unit) =>
    unit.kind !== 'loop'
      ? []
      : unit.nodes.flatMap(({ write: { buffer } }) =>
          buffer.home.kind === 'register' ? [bufferName(buffer)] : [],
        ),
  );
  return [`registers: ${names.length === 0 ? 'none' : names.join(' ')}`];
}

function packedLines({ schedule: { packings }, packedPlaces }: NativePlan): string[] {
  const rows = packings.map(({ unit: { b, k, n }, precision }, i) => [
    i,
    `${bufferName(b.buffer)}[${k},${n}]`,
    precision,
    k * n * operandBytes(precision),
  ]);
  const bytes = bytesOfPlaces(
    packedPlaces,
    rows.map((row) => row.at(-1) as number),
  );
  return [
    `packed operands: ${grouped(bytes)} bytes, without panel padding`,
    ...(rows.length === 0 ? [] : table(['number', 'operand', 'precision', 'bytes'], rows)),
  ];
}

/** Lists sums with the buffers that have the partial sums of their blocks. */
function accumulatorLines({ plan: { accumulators } }: NativePlan): string[] {
  const rows = accumulators.map(({ node, size, items, blocks, buffer }) => [
    `${node.op} to ${bufferName(node.write.buffer)}`,
    items * size,
    blocks ?? 1,
    bufferName(buffer),
  ]);
  return ['partial sums', ...(rows.length === 0 ? [] : table(['sum', 'elements', 'blocks', 'buffer'], rows))];
}

/** Prints the offset and lifetime of every buffer. */
export function memoryText(plan: NativePlan): string {
  const parts = [arenaLines, scratchLines, registerLines, packedLines, accumulatorLines];
  return `${parts.map((part) => part(plan).join('\n')).join('\n\n')}\n`;
}

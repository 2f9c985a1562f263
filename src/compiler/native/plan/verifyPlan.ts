/** @file Verification that steps write to no memory whose contents others take to persist. A failure is a bug in the compiler. */
import { CompilerError } from '../../program/tensors.js';
import { collectiveOf } from './collectives.js';
import type { LoopNode } from './iteration.js';
import type { ProductUnit } from './products.js';
import { type Share, sameShare, sharesOf } from './shares.js';
import { type Packing, samePacking } from './stages.js';
import {
  type Plan,
  readsOfStep,
  type Step,
  sharesWorkspace,
  unitsOfStep,
  writesOfStep,
} from './threadSteps.js';
import type { LoopUnit, Unit } from './units.js';
import { type Buffer, rootOf, turnsOf } from './views.js';

/** The buffers that a step writes, and those that these are slices of. */
type Writes = ReadonlySet<Buffer>;

function fault(step: Step, problem: string): never {
  const scopes = unitsOfStep(step).map((unit) => (unit.kind === 'loop' ? unit.nodes[0]!.scope : unit.scope));
  const of = scopes.find((scope) => scope !== '');
  throw new CompilerError(
    `The native engine planned a ${step.kind} step${of === undefined ? '' : ` of '${of}'`} wrong: ${problem}.`,
  );
}

/** The last step that reads what step `at` packs of an operand, before that is packed again. */
function lastReader(steps: readonly Step[], at: number, { unit }: Packing): number {
  const isSame = (other: Unit): boolean => other.kind === 'product' && samePacking(other, unit);
  let last = at;
  for (let i = at + 1; i < steps.length; i++) {
    const step = steps[i]!;
    if (step.kind === 'pack' && step.packings.some((other) => isSame(other.unit))) break;
    // Others pack for themselves.
    if ((step.kind === 'chain' || step.kind === 'narrow') && unitsOfStep(step).some(isSame)) last = i;
  }
  return last;
}

/** The first and the last element of a buffer that an access reaches. */
type Span = readonly [first: number, last: number];

const spanOf = (offset: number, axes: readonly (readonly [size: number, stride: number])[]): Span =>
  axes.reduce<Span>(
    ([first, last], [size, stride]) => {
      const reach = (size - 1) * stride;
      return reach < 0 ? [first + reach, last] : [first, last + reach];
    },
    [offset, offset],
  );

const spanOfNode = ({ columns }: LoopUnit, { write }: LoopNode): Span =>
  spanOf(write.offset, [
    ...write.rows.map(({ size, stride }) => [size, stride] as const),
    [columns, write.column],
  ]);

/** Of what a unit writes: the buffers, and the spans of them. */
function spansOf(unit: Unit): [Buffer, Span][] {
  if (unit.kind === 'loop') return unit.nodes.map((node) => [node.write.buffer, spanOfNode(unit, node)]);
  if (unit.kind === 'call')
    return unit.outputs.map(({ buffer, offset, shape, strides }) => [
      buffer,
      spanOf(
        offset,
        shape.map((size, axis) => [size, strides[axis]!]),
      ),
    ]);
  const { m, n, c, batch, batchStrides } = unit;
  const items = batch.map((size, axis) => [size, batchStrides[2][axis]!] as const);
  return [[c.buffer, spanOf(c.offset, [[m, c.rs], [n, c.cs], ...items])]];
}

/** Whether a step writes elements of the right operand of a product; slices of the operand's buffer count as all of it. */
function writesOperand(step: Step, { b, k, n }: ProductUnit): boolean {
  const [first, last] = spanOf(b.offset, [
    [k, b.rs],
    [n, b.cs],
  ]);
  const spans: [Buffer, Span][] =
    step.kind === 'finish'
      ? step.accumulators.map(({ unit, node }) => [node.write.buffer, spanOfNode(unit, node)])
      : unitsOfStep(step).flatMap(spansOf);
  return spans.some(([buffer, [from, to]]) =>
    buffer === b.buffer ? from <= last && to >= first : rootOf(buffer) === b.buffer,
  );
}

/** Checks that between the packing of an operand and the last read of that, in whatever turn, no step writes the operand. */
function verifyPacking({ steps, loops }: Plan, at: number, packing: Packing): void {
  const { buffer } = packing.unit.b;
  const last = lastReader(steps, at, packing);
  const within = loops.filter(({ first, end }) => first > at && first <= last && last < end);
  const end = Math.max(last + 1, ...within.map((loop) => loop.end));
  for (let i = at + 1; i < end; i++)
    if (writesOperand(steps[i]!, packing.unit)) fault(steps[i]!, 'it writes what was packed before');
  if (within.some(({ loop }) => turnsOf(buffer).includes(loop)))
    fault(steps[at]!, 'it packs before a loop what is another slice in each turn');
}

/** The first hazard between a step and those before it since the last barrier; undefined where there is none. */
function hazardOf(step: Step, before: readonly Step[]): string | undefined {
  if (sharesWorkspace(step) && before.some(sharesWorkspace)) return 'it fills the workspace that others read';
  const sharesIn = (of: Step, way: 'read' | 'written'): Share[] =>
    of.kind === 'call' ? unitsOfStep(of).flatMap((unit) => sharesOf(unit, way)) : [];
  const own = sharesIn(step, 'read');
  for (const earlier of before) {
    const written = sharesIn(earlier, 'written');
    // A thread that reads only what it has written itself need not wait.
    const isOwn = (buffer: Buffer): boolean =>
      written.some((share) => share.buffer === buffer && own.some((other) => sameShare(share, other)));
    const shared = writesOfStep(earlier).filter((buffer) => !isOwn(buffer));
    if (readsOfStep(step).some((buffer) => shared.includes(buffer))) return 'it reads what others write';
    if (writesOfStep(step).some((buffer) => shared.includes(buffer))) return 'it writes what others write';
    const packs = (unit: Unit): boolean =>
      earlier.kind === 'pack' &&
      unit.kind === 'product' &&
      earlier.packings.some((packing) => samePacking(packing.unit, unit));
    if ((step.kind === 'chain' || step.kind === 'narrow') && unitsOfStep(step).some(packs))
      return 'it multiplies what others pack';
  }
  return undefined;
}

/** Checks that steps have a barrier between them where threads divide their memory otherwise. */
function verifyBarriers({ steps }: Plan): void {
  let first = 0;
  steps.forEach((step, at) => {
    if (steps[first]!.epoch !== step.epoch) first = at;
    const hazard = hazardOf(step, steps.slice(first, at));
    if (hazard !== undefined) fault(step, `${hazard}, without a barrier between`);
  });
}

/**
 * Checks that no step writes where an input or a constant lies, that steps which run once read only what persists, and
 * that what they read or make is written by no other step; that operands are complete when they are packed; and that
 * threads meet before they read, pack or write what others have part in.
 *
 * @param frozen numbers of the inputs whose contents persist.
 * @throws CompilerError that names the first step that does not keep to this.
 */
export function verifyPlan(plan: Plan, frozen: ReadonlySet<number>): void {
  const { steps, onceSteps } = plan;
  // A turn reads and writes different slices of a carry: these are buffers of their own.
  const writes = steps.map((step): Writes => {
    const buffers = writesOfStep(step);
    return new Set([...buffers, ...buffers.map(rootOf)]);
  });
  const kept = new Set<Buffer>();
  const made = new Set<Buffer>();
  steps.forEach((step, at) => {
    for (const buffer of writes[at]!) {
      const { kind } = buffer.home;
      if (kind === 'input' || kind === 'constant')
        fault(step, `it writes to ${kind === 'input' ? 'an input' : 'a constant'}`);
      if (at >= onceSteps && kept.has(buffer)) fault(step, 'it writes over what is kept between runs');
      made.add(buffer);
    }
    if (at >= onceSteps) return;
    if (unitsOfStep(step).some((unit) => unit.kind === 'call' && collectiveOf(unit)))
      fault(step, 'it runs once, and asks other ranks');
    const read = readsOfStep(step).map(rootOf);
    for (const buffer of read) {
      const { home } = buffer;
      const persists =
        home.kind === 'constant' || (home.kind === 'input' && frozen.has(home.index)) || made.has(buffer);
      if (!persists) fault(step, 'it runs once, and reads what changes between runs');
    }
    for (const buffer of [...read, ...writes[at]!]) kept.add(buffer);
  });
  verifyBarriers(plan);
  steps.forEach((step, at) => {
    if (step.kind === 'pack') for (const packing of step.packings) verifyPacking(plan, at, packing);
  });
}

/** @file What the tests of the native lowering share: functions as prepared graphs, layouts and plans, in words. */
import { type Tensor, type TensorSpec, tf } from '../../../src/compiler/index.js';
import { type Layout, layOut } from '../../../src/compiler/native/plan/layout.js';
import type { Operand, PlacedOp } from '../../../src/compiler/native/plan/placedOps.js';
import { type NativePlan, planNative } from '../../../src/compiler/native/plan/planGraphs.js';
import { prepareForNative } from '../../../src/compiler/native/plan/prepare.js';
import type { Unit } from '../../../src/compiler/native/plan/units.js';
import { type Buffer, isContiguous, type View } from '../../../src/compiler/native/plan/views.js';
import { optimize } from '../../../src/compiler/passes/index.js';
import { traceProgram } from '../../../src/compiler/trace/tracedProgram.js';

export const f32 = (...shape: number[]): TensorSpec => ({ shape, dtype: 'float32' });
export const i32 = (...shape: number[]): TensorSpec => ({ shape, dtype: 'int32' });

export type Traced = (...inputs: any[]) => Tensor | Tensor[];

/** `float32 %12+256 [8,64]:(192,1)`. */
function formatView({ buffer, offset, shape, strides }: View): string {
  const plain = isContiguous({ buffer, offset, shape, strides }) ? '' : `:(${strides.join(',')})`;
  return `${buffer.storage} %${buffer.id}${offset ? `+${offset}` : ''}[${shape.join(',')}]${plain}`;
}

/** The prepared graph of a function. */
const prepared = (f: Traced, ...specs: TensorSpec[]) =>
  prepareForNative(optimize(traceProgram((inputs: any[]) => [f(...inputs)].flat(), specs).graph));

export const layoutOf = (f: Traced, ...specs: TensorSpec[]): Layout => layOut(prepared(f, ...specs));

export const planOf = (f: Traced, ...specs: TensorSpec[]): NativePlan => planNative(layoutOf(f, ...specs));

/** `in0`, `out1`, `const0`, `scratch7`, `register7`, or `b7` for a buffer of the arena. */
export function nameOf({ home, id }: Buffer): string {
  if (home.kind === 'input') return `in${home.index}`;
  if (home.kind === 'output') return `out${home.index}`;
  if (home.kind === 'constant') return `const${home.index}`;
  return home.kind === 'arena' ? `b${id}` : `${home.kind}${id}`;
}

const operandText = (x: Operand): string =>
  typeof x === 'number' ? String(x) : formatView(x).replace(`%${x.buffer.id}`, nameOf(x.buffer));

/** `Add(float32 in0[2,3], 1) -> float32 out0[2,3]`. */
export const opText = ({ op, inputs, outputs }: PlacedOp): string =>
  `${op}(${inputs.map(operandText).join(', ')}) -> ${outputs.map(operandText).join(', ')}`;

/** Kind of a unit, or name of a call. */
export const kindOf = (unit: Unit): string => (unit.kind === 'call' ? unit.form.name : unit.kind);

/** `loop 8x4 Add Sum:row`, `product 8x4x16`, or the kind of a call. */
export function unitText(unit: Unit): string {
  if (unit.kind === 'product') return `product ${[...unit.batch, unit.m].join('x')}x${unit.n}x${unit.k}`;
  if (unit.kind !== 'loop') return kindOf(unit);
  const nodes = unit.nodes.map(({ op, role }) => (role === 'map' ? op : `${op}:${role}`));
  return `loop ${unit.rows}x${unit.columns} ${nodes.join(' ')}`;
}

/** The stages of a plan: the kind, the rows of a chain, and the units. */
export const stageTexts = ({ schedule }: NativePlan): string[] =>
  schedule.stages.map((stage) => {
    const what = stage.kind === 'pack' ? `${stage.packings.length}` : stage.units.map(unitText).join('; ');
    return `${stage.kind}${stage.kind === 'chain' ? ` ${stage.rows}` : ''}: ${what}`;
  });

export { tf };

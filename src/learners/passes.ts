/** @file An optimizer's rule, compiled once for a group of variables and bound to each chunk of the flat buffers. */
import {
  type BoundCall,
  type CompileOptions,
  compile,
  type Executable,
  type FlatGroup,
  type Tensor,
  type TensorSpec,
} from '../compiler/index.js';
import {
  type BaseOptimizer,
  EMA,
  type NamedTensors,
  type StepContext,
  type UpdateGroup,
} from './optimizer.js';

/** The flat buffers of a training state; all have the layout's size. */
export interface UpdaterBuffers {
  params: Float32Array;
  /** Gradients of the loss; clipping single variables changes them. */
  grads: Float32Array;
  slots: Readonly<Record<string, Float32Array>>;
}

/** How chunks are computed. */
export type UpdaterOptions = Omit<CompileOptions, 'name'>;

/** A compiled function over all chunks of one group. */
export interface GroupPass {
  group: UpdateGroup;
  /** Where the scalars of a step are put, one element each. */
  scalars: Record<string, Float32Array>;
  calls: BoundCall[];
}

type Buffers = Record<string, Float32Array>;

interface PassPlan {
  name: string;
  group: FlatGroup;
  scalarNames: readonly string[];
  /** Buffers that the rule reads, by the names it knows them by. */
  reads: Buffers;
  /** Buffers that its results go to. A buffer may be in both: rules are elementwise. */
  writes: Buffers;
  rule: (chunk: NamedTensors, scalars: NamedTensors) => NamedTensors;
  options: UpdaterOptions;
}

/** Any step will do to learn which scalars there are. */
export const ANY_STEP: StepContext = { step: 0, learningRate: 0, gradScale: 1 };

/** The whole step in one pass. */
export function updatePass(
  optimizer: BaseOptimizer,
  group: FlatGroup,
  buffers: UpdaterBuffers,
  options: UpdaterOptions,
): Promise<GroupPass> {
  const kind = group.name as UpdateGroup;
  const slots = slotBuffers(optimizer.stateNames, buffers);
  return compilePass({
    name: `${optimizer.constructor.name}_${kind}`,
    group,
    scalarNames: Object.keys(optimizer.hostScalars(ANY_STEP, kind)),
    reads: { param: buffers.params, grad: buffers.grads, ...slots },
    writes: { param: buffers.params, ...slots },
    rule: ({ param, grad, ...before }, scalars) => {
      const after = optimizer.update(param!, grad!, before, scalars, kind);
      return { param: after.param, ...after.slots };
    },
    options,
  });
}

/** The first of two passes: new slots, and the direction into a buffer of its own. */
export function directionPass(
  optimizer: BaseOptimizer,
  group: FlatGroup,
  buffers: UpdaterBuffers,
  directions: Float32Array,
  options: UpdaterOptions,
): Promise<GroupPass> {
  const kind = group.name as UpdateGroup;
  const slots = slotBuffers(optimizer.slotNames, buffers);
  return compilePass({
    name: `${optimizer.constructor.name}_${kind}_direction`,
    group,
    scalarNames: Object.keys(optimizer.directionInputs(ANY_STEP, kind)),
    reads: {
      ...(optimizer.regularizes(kind) ? { param: buffers.params } : {}),
      grad: buffers.grads,
      ...slots,
    },
    writes: { direction: directions, ...slots },
    rule: ({ param = null, grad, ...before }: Record<string, Tensor | null>, scalars) => {
      const after = optimizer.directionOf(param, grad!, before as NamedTensors, scalars, kind);
      return { direction: after.direction, ...after.slots };
    },
    options,
  });
}

/** The second of two passes: moves the parameters along the directions. */
export function applyPass(
  optimizer: BaseOptimizer,
  group: FlatGroup,
  buffers: UpdaterBuffers,
  directions: Float32Array,
  options: UpdaterOptions,
): Promise<GroupPass> {
  const kind = group.name as UpdateGroup;
  const averages = slotBuffers(optimizer.averages ? [EMA] : [], buffers);
  return compilePass({
    name: `${optimizer.constructor.name}_${kind}_apply`,
    group,
    scalarNames: Object.keys(optimizer.applyInputs(ANY_STEP, kind)),
    reads: { param: buffers.params, direction: directions, ...averages },
    writes: { param: buffers.params, ...averages },
    rule: ({ param, direction, ...before }, scalars) => {
      const after = optimizer.apply(param!, direction!, before, scalars);
      return { param: after.param, ...after.slots };
    },
    options,
  });
}

/** Runs every chunk; the scalars are the same for all chunks of a group. */
export async function runPasses(
  passes: readonly GroupPass[],
  scalarsOf: (group: UpdateGroup) => Record<string, number>,
): Promise<void> {
  for (const { group, scalars, calls } of passes) {
    for (const [name, value] of Object.entries(scalarsOf(group))) scalars[name]![0] = value;
    for (const call of calls) await call.run();
  }
}

/** Those of the flat buffers of an optimizer's state that have one of `names`, by name. */
export function slotBuffers(names: readonly string[], { slots }: UpdaterBuffers): Buffers {
  return Object.fromEntries(names.map((name) => [name, slots[name]!]));
}

/** The rule over one chunk: a piece that stays in the cache. */
function compileRule(
  { reads, scalarNames, rule, options, name }: PassPlan,
  { chunk }: FlatGroup,
): Promise<Executable> {
  const chunkSpec: TensorSpec = { shape: [chunk], dtype: 'float32' };
  const scalarSpec: TensorSpec = { shape: [], dtype: 'float32' };
  return compile(
    (inputs: { chunk: NamedTensors; scalars: NamedTensors }) => rule(inputs.chunk, inputs.scalars),
    {
      chunk: Object.fromEntries(Object.keys(reads).map((read) => [read, chunkSpec])),
      scalars: Object.fromEntries(scalarNames.map((scalar) => [scalar, scalarSpec])),
    },
    { name, ...options },
  );
}

async function compilePass(plan: PassPlan): Promise<GroupPass> {
  const { group, reads, writes, scalarNames } = plan;
  const executable = await compileRule(plan, group);
  const scalars = Object.fromEntries(scalarNames.map((name) => [name, new Float32Array(1)]));
  const calls = Array.from({ length: group.chunks }, (_, i) => {
    const from = group.offset + i * group.chunk;
    const piece = (buffers: Buffers) =>
      Object.fromEntries(
        Object.entries(buffers).map(([name, b]) => [name, b.subarray(from, from + group.chunk)]),
      );
    return executable.bind({ inputs: { chunk: piece(reads), scalars }, outputs: piece(writes) });
  });
  return { group: group.name as UpdateGroup, scalars, calls };
}

/** @file Updates of whole variables that ranks hold in parts: each gathers the variable and its gradient, and keeps its part of the result. */
import {
  type FlatEntry,
  type Group,
  ops,
  type Tensor,
  tf,
  type WholeVariable,
} from '../../compiler/index.js';
import type { GroupState } from './optimizer.js';
import type { VariableGroup } from './variableGroup.js';

/** A step of a group. @param before and the gradient: flat tensors */
type Step = (before: GroupState<Tensor>, grad: Tensor, variables: VariableGroup) => GroupState<Tensor>;

/** A step of a group by its parts, or, where its rule sees variables as wholes, of these: slots are then whole, too. */
export function onWhole(
  before: GroupState<Tensor>,
  grad: Tensor,
  variables: VariableGroup,
  step: Step,
): GroupState<Tensor> {
  const { whole } = variables;
  if (whole === undefined) return step(before, grad, variables);
  const [entry] = variables.entries as [FlatEntry];
  const after = step(
    { param: gathered(before.param, entry), slots: before.slots },
    gathered(grad, entry),
    whole,
  );
  return { param: ownPart(after.param, entry), slots: after.slots };
}

const flat = (tensor: Tensor): Tensor => tf.reshape(tensor, [tensor.size]);

/** Of each dimension, the ranks that share it. */
const groupsOf = ({ ranks, whole }: FlatEntry): Group[] =>
  (whole as WholeVariable).axes.map((axes) => ({ mesh: ranks!.mesh, axes }));

const gathered = (part: Tensor, entry: FlatEntry): Tensor =>
  flat(
    groupsOf(entry).reduce(
      (all, group, dim) => ops.allGather(all, group, dim),
      tf.reshape(part, [...entry.shape]) as Tensor,
    ),
  );

const ownPart = (all: Tensor, entry: FlatEntry): Tensor =>
  flat(
    groupsOf(entry).reduce(
      (part, group, dim) => ops.ownPart(part, group, dim),
      tf.reshape(all, [...entry.whole!.shape]) as Tensor,
    ),
  );

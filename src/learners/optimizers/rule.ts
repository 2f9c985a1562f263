/** @file A rule on the tensors of a group: elementwise, on all variables at once, or on each in its own shape. */
import { ops, sizeOf, type Tensor, tf } from '../../compiler/index.js';
import { ConfigError } from '../../hparams/index.js';
import { asFloats, asWritten } from './slotStorage.js';
import { oneOf, type SlotOwner, type SlotSpec, specsOf } from './slots.js';
import type { VariableGroup } from './variableGroup.js';

/** Tensors by name: slots, or scalars, each []. */
export type NamedTensors = Readonly<Record<string, Tensor>>;

/**
 * What a rule sees. An elementwise one sees flat tensors, [size], in which all variables of a group lie side by side; one
 * that is `isPerVariable`, those of a single variable in its shape, and of stacked variables one after the other.
 */
export interface RuleInputs {
  /** Gradient, clipped and regularised, in the shape of the parameters. */
  readonly grad: Tensor;
  /** Parameters before the step. */
  readonly param: Tensor;
  /** State before the step, each in the shape that `slotSpecs` gives. */
  readonly slots: NamedTensors;
  /** Those of `scalarsAt`, and `learningRate`, each []. */
  readonly scalars: NamedTensors;
  /** Which elements are one variable's. */
  readonly variables: VariableGroup;
  /** Of a lazy rule, which elements move, bool like the gradient: the others keep parameters and state whatever it gives. */
  readonly touched?: Tensor | undefined;
}

/** The result of a rule. */
export interface Direction {
  /** The update before the learning rate, in the shape of the parameters: they move by -learningRate times it. */
  readonly direction: Tensor;
  /** State after the step, each in the shape of the state before. */
  readonly slots: NamedTensors;
}

/** One rule. */
type RuleFunction = (inputs: RuleInputs) => Direction;

/**
 * Applies a rule to a group's tensors as programs read and write them: all flat.
 *
 * @throws ConfigError for a result that has not the shapes of `slotSpecs`.
 */
export function applyRule(owner: SlotOwner, rule: RuleFunction, inputs: RuleInputs): Direction {
  return owner.isPerVariable ? onVariable(owner, rule, inputs) : onGroup(owner, rule, inputs);
}

function onGroup(owner: SlotOwner, rule: RuleFunction, inputs: RuleInputs): Direction {
  const specs = specsOf(owner, oneOf(inputs.variables.entries[0]!));
  const size = [inputs.param.size];
  const flat = Object.fromEntries(
    Object.entries(specs).map(([name, spec]) => [name, { ...spec, shape: size }]),
  );
  const slots = mapTensors(inputs.slots, (slot, name) => asFloats(slot, dtypeOf(specs[name])));
  const next = checked(owner, { path: inputs.variables.name, shape: size }, flat, rule({ ...inputs, slots }));
  return { ...next, slots: mapTensors(next.slots, (slot, name) => asWritten(slot, dtypeOf(specs[name]))) };
}

function onVariable(owner: SlotOwner, rule: RuleFunction, inputs: RuleInputs): Direction {
  const { variables, scalars } = inputs;
  const [entry] = variables.entries;
  const variable = oneOf(entry!);
  const specs = specsOf(owner, variable);
  const { repeatPrefix } = entry!;
  const stack = repeatPrefix === undefined ? [] : [sizeOf(repeatPrefix)];
  const shaped = (flat: Tensor, shape: readonly number[]): Tensor => {
    const whole = [...stack, ...shape];
    const size = sizeOf(whole);
    return tf.reshape(flat.size === size ? flat : tf.slice(flat, [0], [size]), whole);
  };
  const given = {
    grad: shaped(inputs.grad, variable.shape),
    param: shaped(inputs.param, variable.shape),
    slots: mapTensors(inputs.slots, (slot, name) =>
      shaped(asFloats(slot, dtypeOf(specs[name])), specs[name]!.shape),
    ),
  };
  const one = (tensors: typeof given) =>
    checked(owner, variable, specs, rule({ ...tensors, scalars, variables }));
  const next =
    repeatPrefix === undefined
      ? one(given)
      : ops.scan(
          (carry: Record<string, never>, each: typeof given) => [carry, { ...one(each) }],
          {},
          given,
        )[1];
  const flat = (tensor: Tensor): Tensor => tf.reshape(tensor, [tensor.size]);
  return {
    direction: flat(next.direction),
    slots: mapTensors(next.slots, (slot, name) => asWritten(flat(slot), dtypeOf(specs[name]))),
  };
}

const dtypeOf = (spec: SlotSpec | undefined) => spec?.dtype ?? 'float32';

const mapTensors = (
  tensors: NamedTensors,
  f: (tensor: Tensor, name: string) => Tensor,
): Record<string, Tensor> =>
  Object.fromEntries(Object.entries(tensors).map(([name, tensor]) => [name, f(tensor, name)]));

/** A rule's result with the slots of `specs`, in their order. */
function checked(
  owner: SlotOwner,
  { path, shape }: { readonly path: string; readonly shape: readonly number[] },
  specs: Readonly<Record<string, SlotSpec>>,
  { direction, slots }: Direction,
): { direction: Tensor; slots: Record<string, Tensor> } {
  const expect = (what: string, wanted: readonly number[], found: Tensor | undefined): void => {
    if (found !== undefined && `${found.shape}` === `${wanted}`) return;
    const told = found === undefined ? 'nothing' : `[${found.shape.join(', ')}]`;
    throw new ConfigError(
      `${owner.constructor.name}: the rule gives ${told} as ${what} of '${path}', and expected is [${wanted.join(', ')}].`,
    );
  };
  expect('direction', shape, direction);
  for (const [name, spec] of Object.entries(specs)) expect(`slot '${name}'`, spec.shape, slots[name]);
  const unknown = Object.keys(slots).find((name) => specs[name] === undefined);
  if (unknown !== undefined)
    throw new ConfigError(
      `${owner.constructor.name}: the rule gives a slot '${unknown}' of '${path}', which slotSpecs does not name.`,
    );
  return { direction, slots: Object.fromEntries(Object.keys(specs).map((name) => [name, slots[name]!])) };
}

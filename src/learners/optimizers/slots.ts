/** @file Slots of optimizers: what a rule keeps of each variable, and the places of all of it in flat buffers. */
import {
  type FlatArray,
  type FlatDtype,
  type FlatEntry,
  type FlatLayout,
  flatArrayType,
  flatLayout,
} from '../../compiler/index.js';
import { ConfigError } from '../../hparams/index.js';
import { elementOf } from './slotStorage.js';
import { changingPart, groupParts, updatedAs } from './variableGroup.js';

/** A slot of a variable. */
export interface SlotSpec {
  readonly shape: readonly number[];
  /** Value of its elements before the first step: 0 by default, above it for what a rule divides by; or the parameters. */
  readonly fill?: number | 'parameters';
  /**
   * Storage: float32 by default. The rule sees and gives float32 in any case; a bfloat16 or float16 is the nearest of what
   * it gives, an int8 the nearest integer from -127 to 127, a uint8 from 0 to 255.
   */
  readonly dtype?: FlatDtype;
  /**
   * Of a slot with a number for each element of the variable, which `slotDtype` may store in fewer bits: whether these have
   * a sign, or are means or sums of squares. Absent: it is stored as it is.
   */
  readonly values?: SlotValues;
}

type SlotValues = 'signed' | 'squares';

/** The slots of a variable by name. */
export type SlotSpecs = Readonly<Record<string, SlotSpec>>;

/** A variable, as far as rules need it. */
export interface SlotVariable {
  readonly path: string;
  /** Of stacked variables, the shape of one. */
  readonly shape: readonly number[];
}

/** A slot with the variable's shape. */
export const slotLike = (
  { shape }: SlotVariable,
  fill = 0,
  dtype: FlatDtype = 'float32',
  values: SlotValues = 'signed',
): SlotSpec => ({
  shape,
  fill,
  values,
  ...(dtype !== 'float32' && { dtype }),
});

/** A slot with the variable's shape, of means or sums of squares. */
export const squaresLike = (variable: SlotVariable, fill = 0): SlotSpec =>
  slotLike(variable, fill, 'float32', 'squares');

/** Source of slots: an optimizer. */
export interface SlotOwner {
  /** Whether its rule sees one variable at a time, in its own shape; slots may then have any shape. */
  readonly isPerVariable: boolean;
  /** Whether its update takes one variable at a time, as it does for such a rule. */
  readonly updatesEach: boolean;
  /** The slots that the rule sees. */
  slotSpecs(variable: SlotVariable): SlotSpecs;
  /** The slots that buffers hold. @throws ConfigError for slots that the rule cannot have */
  storedSpecs(variable: SlotVariable): SlotSpecs;
}

/** Name of the slot that holds the exponential moving average of the parameters. */
export const EMA = 'ema';

/** Name of the slot that holds the parameters of before the first step. */
export const PRETRAINED = 'pretrained';

/** Place of one variable's slot, and the value of its elements before the first step, or the place of the parameters there. */
interface SlotEntry extends FlatEntry {
  readonly fill: number | { readonly params: number };
}

/** Places of a slot in a flat buffer, for the variables that have it. */
export interface SlotLayout extends FlatLayout {
  readonly dtype: FlatDtype;
  readonly entries: SlotEntry[];
}

/** By the slot's name. */
export type SlotLayouts = Readonly<Record<string, SlotLayout>>;

/** One of the variables that an entry stacks. */
export function oneOf({ name, shape, repeatPrefix = [] }: FlatEntry): SlotVariable {
  return { path: name, shape: shape.slice(repeatPrefix.length) };
}

/** The slots of a variable, checked. @throws ConfigError for slots that the optimizer's rule cannot have */
export function specsOf(optimizer: SlotOwner, variable: SlotVariable): SlotSpecs {
  const specs = optimizer.slotSpecs(variable);
  for (const [slot, { shape }] of Object.entries(specs)) {
    const what = `${optimizer.constructor.name}: the slot '${slot}' of '${variable.path}'`;
    if (slot === EMA)
      throw new ConfigError(`${what}: the name is that of the average of parameters, emaDecay.`);
    if (!optimizer.isPerVariable && `${shape}` !== `${variable.shape}`)
      throw new ConfigError(
        `${what} has shape [${shape.join(', ')}], and an elementwise rule needs the variable's, ` +
          `[${variable.shape.join(', ')}]. Let isPerVariable be true for a rule that sees one variable at a time.`,
      );
  }
  return specs;
}

/**
 * Places of all slots of the variables that are trained, and of the average of all that are not frozen. A slot of an
 * elementwise rule has the places of its variables within each group.
 *
 * @param optimizers by name, the learner's own by ''.
 * @param keptFor name of the optimizer whose slots are kept for a variable that does not move; undefined for none.
 * @throws ConfigError where variables have a slot in different dtypes, or a group of an elementwise rule different slots.
 */
export function slotLayouts(
  optimizers: ReadonlyMap<string, SlotOwner>,
  layout: FlatLayout,
  averages: boolean,
  keptFor: (path: string) => string | undefined = () => undefined,
): SlotLayouts {
  const slots = new Map<string, { dtype: FlatDtype; first: string; entries: SlotEntry[] }>();
  const namesOfGroup = new Map<string, string>();
  for (const held of layout.entries) {
    const entry = updatedAs(held);
    const parts = groupParts(entry.group);
    const name = parts?.optimizer ?? keptFor(entry.name);
    if (name === undefined) continue;
    const optimizer = optimizers.get(name)!;
    const specs = optimizer.storedSpecs(oneOf(entry));
    const names = Object.keys(specs).join(', ') || 'none';
    const others = namesOfGroup.get(entry.group) ?? names;
    if (parts !== undefined && !optimizer.updatesEach && names !== others)
      throw new ConfigError(
        `${optimizer.constructor.name}: the slots of '${entry.name}' are ${names}, and those of variables before it ${others}. ` +
          'An elementwise rule has the same slots for all. Let isPerVariable be true for a rule that sees one variable at a time.',
      );
    namesOfGroup.set(entry.group, names);
    for (const [name, { shape, fill = 0, dtype = 'float32' }] of Object.entries(specs)) {
      const slot = slots.get(name) ?? { dtype, first: entry.name, entries: [] };
      if (slot.dtype !== dtype)
        throw new ConfigError(
          `The slot '${name}' is ${slot.dtype} for '${slot.first}' and ${dtype} for '${entry.name}': give it two names, or both optimizers the same slotDtype.`,
        );
      slot.entries.push({
        ...{ ...entry, shape: [...(entry.repeatPrefix ?? []), ...shape] },
        fill: fill === 'parameters' ? { params: entry.offset } : fill,
      });
      slots.set(name, slot);
    }
  }
  if (averages) {
    const { entries } = changingPart(layout);
    const copies = entries.map((each) => ({ ...each, fill: { params: each.offset } }));
    slots.set(EMA, { dtype: 'float32', first: '', entries: copies });
  }
  return Object.fromEntries(
    [...slots].map(([name, slot]) => [name, { dtype: slot.dtype, ...placed(slot.entries) }]),
  );
}

/** Entries at their places in a buffer of their own. */
function placed(entries: readonly SlotEntry[]): FlatLayout & { entries: SlotEntry[] } {
  const fills = new Map(entries.map(({ name, fill }) => [name, fill]));
  const layout = flatLayout(entries);
  return { ...layout, entries: layout.entries.map((entry) => ({ ...entry, fill: fills.get(entry.name)! })) };
}

/** Bytes of all slots, padding included. */
export const slotBytes = (layouts: SlotLayouts): number =>
  Object.values(layouts).reduce(
    (sum, { dtype, size }) => sum + size * flatArrayType(dtype).BYTES_PER_ELEMENT,
    0,
  );

/** Buffers of parameters and slots that a learner fills for the first step. */
export interface SlotBuffers {
  readonly params: Float32Array;
  readonly slots: Readonly<Record<string, FlatArray>>;
  readonly slotLayouts: SlotLayouts;
}

/** Fills slots, which hold zeros, for the first step. @param names those of some slots alone */
export function fillSlots(
  { params, slots, slotLayouts }: SlotBuffers,
  names: readonly string[] = Object.keys(slotLayouts),
): void {
  for (const name of names) {
    const { dtype, entries, size: end } = slotLayouts[name]!;
    for (const [i, { offset, size, fill }] of entries.entries())
      if (typeof fill === 'object')
        slots[name]!.set(params.subarray(fill.params, fill.params + size), offset);
      // Padding too: it would become 0 / 0.
      else if (fill !== 0) slots[name]!.fill(elementOf(fill, dtype), offset, entries[i + 1]?.offset ?? end);
  }
}

/** Fills the slots of some variables as they are before the first step. @param views every variable by path */
export function refillSlots(
  { slots, slotLayouts }: Omit<SlotBuffers, 'params'>,
  views: Readonly<Record<string, FlatArray>>,
  variables: ReadonlySet<string>,
): void {
  for (const [slot, { dtype, entries }] of Object.entries(slotLayouts))
    for (const { name, offset, size, fill } of entries) {
      if (!variables.has(name)) continue;
      const part = slots[slot]!.subarray(offset, offset + size);
      if (typeof fill === 'object') part.set(views[name]!);
      else part.fill(elementOf(fill, dtype));
    }
}

/** @file Groups of variables that lie side by side in one flat tensor and are updated alike. */
import { type FlatEntry, type FlatGroup, type FlatLayout, type Tensor, tf } from '../compiler/index.js';

const UPDATE_GROUPS = ['decay', 'noDecay'] as const;

/** Groups of trained variables: with regularisation and weight decay, and without. */
export type UpdateGroup = (typeof UPDATE_GROUPS)[number];

/** Group of the variables that the forward pass replaces; their new values stand in place of gradients. */
export const NON_TRAINABLE = 'nonTrainable';

/** Group of the variables that no update touches. */
export const FROZEN = 'frozen';

/** Whether variables of this group have gradients. */
export const isUpdateGroup = (group: string): group is UpdateGroup =>
  UPDATE_GROUPS.some((name) => name === group);

/** The front of a learner's layout, without the frozen variables behind it: gradients and slots have these alone. */
export function changingPart({ entries, groups }: FlatLayout): FlatLayout {
  const changing = groups.filter(({ name }) => name !== FROZEN);
  return {
    entries: entries.filter(({ group }) => group !== FROZEN),
    groups: changing,
    size: changing.reduce((end, { offset, size }) => Math.max(end, offset + size), 0),
  };
}

/** A group of variables, and the order in which they lie in its tensors. */
export class VariableGroup {
  private constructor(
    readonly name: UpdateGroup,
    /** Place of the group in the flat buffers. */
    readonly place: Pick<FlatGroup, 'offset' | 'size'>,
    private readonly entries: readonly FlatEntry[],
  ) {}

  /** The groups that have gradients. */
  static listOf({ groups, entries }: FlatLayout): VariableGroup[] {
    return groups
      .filter(({ name, size }) => isUpdateGroup(name) && size > 0)
      .map(({ name, offset, size }) => {
        const members = entries.filter(({ group }) => group === name);
        return new VariableGroup(name as UpdateGroup, { offset, size }, members);
      });
  }

  /**
   * Multiplies each variable of a flat tensor by a factor of its own; of stacked variables, each slice.
   *
   * @param flat [size of the group].
   * @param factorOf the factor, [], of a variable's elements, followed by zeros up to the next one; `size` counts them
   *   without these. Of stacked variables [slices, size], the factors, [slices, 1].
   */
  scaleEach(flat: Tensor, factorOf: (variable: Tensor, size: number) => Tensor): Tensor {
    const { offset: begin, size: length } = this.place;
    const scaled = this.entries.flatMap(({ offset, size, slices }, i) => {
      const end = this.entries[i + 1]?.offset ?? begin + length;
      if (slices !== undefined) {
        const stack = tf.reshape(tf.slice(flat, [offset - begin], [size]), [slices, size / slices]);
        const rest = end - offset - size;
        return [
          tf.reshape(tf.mul(stack, factorOf(stack, size / slices)), [size]),
          ...(rest > 0 ? [tf.slice(flat, [offset - begin + size], [rest])] : []),
        ];
      }
      const variable = tf.slice(flat, [offset - begin], [end - offset]);
      return tf.mul(variable, factorOf(variable, size));
    });
    return scaled.length === 1 ? scaled[0]! : tf.concat(scaled);
  }
}

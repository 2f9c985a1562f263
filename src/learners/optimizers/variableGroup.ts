/** @file Groups of variables that lie side by side in one flat tensor and are updated alike. */
import {
  type FlatEntry,
  type FlatGroup,
  type FlatLayout,
  sizeOf,
  type Tensor,
  tf,
} from '../../compiler/index.js';

/** Group of the variables that the forward pass replaces; their new values stand in place of gradients. */
export const NON_TRAINABLE = 'nonTrainable';

/** Group of the variables that no update touches. */
export const FROZEN = 'frozen';

/** What a group of trained variables has in common. */
interface GroupParts {
  /** Name of the auxiliary optimizer that updates it; '' for the learner's own. */
  readonly optimizer: string;
  /** Whether regularisation and weight decay reach it. */
  readonly decays: boolean;
}

/** Name of a group of trained variables in a layout: `decay`, `noDecay`, or `<optimizer>/decay` … */
export function groupName({ optimizer, decays }: GroupParts): string {
  return `${optimizer === '' ? '' : `${optimizer}/`}${decays ? 'decay' : 'noDecay'}`;
}

/** What a group's name says; undefined for variables without gradients. */
export function groupParts(group: string): GroupParts | undefined {
  const [, optimizer = '', kind] = /^(?:(.*)\/)?(decay|noDecay)$/.exec(group) ?? [];
  return kind === undefined ? undefined : { optimizer, decays: kind === 'decay' };
}

/** The front of a learner's layout, without the frozen variables behind it: gradients and averages have these alone. */
export function changingPart({ entries, groups }: FlatLayout): FlatLayout {
  const changing = groups.filter(({ name }) => name !== FROZEN);
  return {
    entries: entries.filter(({ group }) => group !== FROZEN),
    groups: changing,
    size: changing.reduce((end, { offset, size }) => Math.max(end, offset + size), 0),
  };
}

/** Variables that one call of a rule updates, in the order in which they lie in its tensors. */
export class VariableGroup {
  private constructor(
    /** The layout's group, or `<group>:<path>` for one variable of it. */
    readonly name: string,
    /** The layout's group. */
    readonly group: string,
    private readonly parts: GroupParts,
    /** Place in the flat buffers; for a group, padding included. */
    readonly place: Pick<FlatGroup, 'offset' | 'size'>,
    readonly entries: readonly FlatEntry[],
  ) {}

  /**
   * The variables that have gradients: whole groups, or one by one.
   *
   * @param isPerVariable whether the optimizer of that name sees one variable at a time.
   */
  static listOf(
    { groups, entries }: FlatLayout,
    isPerVariable: (optimizer: string) => boolean,
  ): VariableGroup[] {
    return groups.flatMap(({ name, offset, size }) => {
      const parts = groupParts(name);
      if (parts === undefined || size === 0) return [];
      const members = entries.filter(({ group }) => group === name);
      if (!isPerVariable(parts.optimizer))
        return [new VariableGroup(name, name, parts, { offset, size }, members)];
      return members
        .filter((entry) => entry.size > 0)
        .map((entry) => new VariableGroup(`${name}:${entry.name}`, name, parts, entry, [entry]));
    });
  }

  /** Name of the auxiliary optimizer that updates them; '' for the learner's own. */
  get optimizer(): string {
    return this.parts.optimizer;
  }

  /** Whether regularisation and weight decay reach them. */
  get decays(): boolean {
    return this.parts.decays;
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
    const scaled = this.entries.flatMap(({ offset, size, repeatPrefix }, i) => {
      const end = this.entries[i + 1]?.offset ?? begin + length;
      if (repeatPrefix !== undefined) {
        const slices = sizeOf(repeatPrefix);
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

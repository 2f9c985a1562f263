/** @file Groups of variables that lie side by side in one flat tensor and are updated alike. */
import {
  type FlatEntry,
  type FlatGroup,
  type FlatLayout,
  type Group,
  membersOf,
  ops,
  sizeOf,
  type Tensor,
  tf,
} from '../../compiler/index.js';

/** Group of the variables that the forward pass replaces; their new values stand in place of gradients. */
export const NON_TRAINABLE = 'nonTrainable';

/** Group of the variables that no update touches. */
export const FROZEN = 'frozen';

/** Properties that a group of trained variables shares. */
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

/** Properties by a group's name; undefined for variables without gradients. Names may have a number: `decay#2`. */
export function groupParts(group: string): GroupParts | undefined {
  const [, optimizer = '', kind] = /^(?:(.*)\/)?(decay|noDecay)(?:#\d+)?$/.exec(group) ?? [];
  return kind === undefined ? undefined : { optimizer, decays: kind === 'decay' };
}

/** Name of the group of those variables of a group that are split over the same axes, so that ranks reduce them alike. */
export const groupOfParts = (
  group: string,
  { ranks, sliceRanks }: { readonly ranks: Group; readonly sliceRanks?: Group },
): string => {
  const { mesh } = ranks;
  // Between the two, no axis has the number 0.
  const axes = [...ranks.axes, ...(sliceRanks ? [-1, ...sliceRanks.axes] : [])];
  return `${group}#${axes.reduce((number, axis) => number * (mesh.length + 1) + axis + 1, 0)}`;
};

/** Whether a variable is a matrix whose rows a step may move alone, as those of an embedding. */
export const isTable = ({ shape, repeatPrefix = [] }: Pick<FlatEntry, 'shape' | 'repeatPrefix'>): boolean =>
  shape.length === 2 && repeatPrefix.length === 0;

/** The variable that an entry is updated as: the whole, where ranks hold parts of it and the rule needs it. */
export function updatedAs({ whole, ranks, sliceRanks, ...entry }: FlatEntry): FlatEntry {
  if (whole === undefined) return { ...entry, ...(ranks && { ranks }), ...(sliceRanks && { sliceRanks }) };
  const { shape, offset } = whole;
  const { repeatPrefix } = entry;
  return {
    ...{ ...entry, shape, offset, size: sizeOf(shape) },
    ...(repeatPrefix && { repeatPrefix: shape.slice(0, repeatPrefix.length) }),
  };
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
    /** The layout's group, or `<group>:<path>` for a part of it, by its first variable. */
    readonly name: string,
    /** The layout's group. */
    readonly group: string,
    private readonly parts: GroupParts,
    /** Place in the flat buffers; for several variables, padding included. */
    readonly place: Pick<FlatGroup, 'offset' | 'size'>,
    readonly entries: readonly FlatEntry[],
    /** Of a table whose gradient is rows and indices: how many rows. A rule's tensors have these alone. */
    readonly rows?: number,
  ) {}

  /**
   * The variables that have gradients: whole groups, or one by one; those of a group between tables of its own.
   *
   * @param updatesEach whether the optimizer of that name takes one variable at a time.
   * @param rows how many rows the gradient of a table has, by path, where it is rows and indices.
   */
  static listOf(
    { groups, entries }: FlatLayout,
    updatesEach: (optimizer: string) => boolean,
    rows: ReadonlyMap<string, number> = new Map(),
  ): VariableGroup[] {
    return groups.flatMap(({ name, offset, size }) => {
      const parts = groupParts(name);
      if (parts === undefined || size === 0) return [];
      const members = entries.filter(({ group }) => group === name);
      const hasRows = (entry: FlatEntry | undefined) => entry !== undefined && rows.has(entry.name);
      if (!updatesEach(parts.optimizer)) {
        if (!members.some(hasRows)) return [new VariableGroup(name, name, parts, { offset, size }, members)];
        const begins = members.flatMap((entry, i) =>
          i === 0 || hasRows(entry) || hasRows(members[i - 1]) ? [i] : [],
        );
        return begins.map((begin, i) => {
          const part = members.slice(begin, begins[i + 1]);
          const [first] = part as [FlatEntry];
          const end = members[begins[i + 1] ?? members.length]?.offset ?? offset + size;
          const place = hasRows(first) ? first : { offset: first.offset, size: end - first.offset };
          return new VariableGroup(`${name}:${first.name}`, name, parts, place, part, rows.get(first.name));
        });
      }
      return members
        .filter((entry) => entry.size > 0)
        .map((entry) => new VariableGroup(`${name}:${entry.name}`, name, parts, entry, [entry]));
    });
  }

  /** Name of the auxiliary optimizer that updates them; '' for the learner's own. */
  get optimizer(): string {
    return this.parts.optimizer;
  }

  /** The variable as a whole, where ranks hold parts of it and its rule needs that. */
  get whole(): VariableGroup | undefined {
    const [entry] = this.entries as [FlatEntry];
    if (entry.whole === undefined) return undefined;
    const whole = updatedAs(entry);
    return new VariableGroup(this.name, this.group, this.parts, whole, [whole]);
  }

  /** The ranks that hold the variables together; undefined for variables that are whole here. */
  get ranks(): Group | undefined {
    return this.entries[0]!.ranks;
  }

  /** The ranks that hold each variable of a stack together. */
  private get sliceRanks(): Group | undefined {
    return this.entries[0]!.sliceRanks ?? this.ranks;
  }

  /** The sum over the whole variable by that over its part here, []; or sums of the variables of a stack, [slices, 1]. */
  total(sum: Tensor): Tensor {
    const ranks = sum.rank === 2 ? this.sliceRanks : this.ranks;
    return ranks === undefined ? sum : ops.allReduce(sum, ranks);
  }

  /** Elements of a rule's tensors. */
  private get length(): number {
    return this.rows === undefined ? this.place.size : this.rows * this.entries[0]!.shape[1]!;
  }

  /** Whether regularisation and weight decay reach them. */
  get decays(): boolean {
    return this.parts.decays;
  }

  /**
   * Multiplies each variable of a flat tensor by a factor of its own; of stacked variables, each slice.
   *
   * @param flat [size of the group], or the rows of a table that have a gradient.
   * @param factorOf the factor, [], of a variable's elements, followed by zeros up to the next one; `size` counts those of the
   *   whole variable without these. Of stacked variables [slices, size], the factors, [slices, 1].
   * @param others like `flat`: `factorOf` sees the same elements of them.
   */
  scaleEach(
    flat: Tensor,
    factorOf: (variable: Tensor, size: number, ...others: Tensor[]) => Tensor,
    ...others: readonly Tensor[]
  ): Tensor {
    return this.scaleEntries(flat, others, (_, ...given) => factorOf(...given));
  }

  /** Multiplies each variable of a flat tensor by a number. */
  scaleBy(flat: Tensor, factorOf: (entry: FlatEntry) => number): Tensor {
    const [first = 1, ...rest] = new Set(this.entries.map(factorOf));
    return rest.length === 0
      ? tf.mul(flat, first)
      : this.scaleEntries(flat, [], (entry) => tf.scalar(factorOf(entry)));
  }

  private scaleEntries(
    flat: Tensor,
    others: readonly Tensor[],
    factorOf: (entry: FlatEntry, variable: Tensor, size: number, ...others: Tensor[]) => Tensor,
  ): Tensor {
    const { length } = this;
    const { offset: begin } = this.place;
    const waysOf = (ranks: Group | undefined): number => (ranks === undefined ? 1 : membersOf(ranks));
    const parts = waysOf(this.ranks);
    const sliceParts = waysOf(this.sliceRanks);
    const scaled = this.entries.flatMap((entry, i) => {
      const { offset, size, repeatPrefix } = entry;
      const end = this.entries[i + 1]?.offset ?? begin + length;
      if (repeatPrefix !== undefined) {
        const slices = sizeOf(repeatPrefix);
        const [stack, ...rests] = [flat, ...others].map((each) =>
          tf.reshape(tf.slice(each, [offset - begin], [size]), [slices, size / slices]),
        ) as [Tensor, ...Tensor[]];
        const rest = end - offset - size;
        return [
          tf.reshape(tf.mul(stack, factorOf(entry, stack, (sliceParts * size) / slices, ...rests)), [size]),
          ...(rest > 0 ? [tf.slice(flat, [offset - begin + size], [rest])] : []),
        ];
      }
      const [variable, ...rests] = [flat, ...others].map((each) =>
        tf.slice(each, [offset - begin], [end - offset]),
      ) as [Tensor, ...Tensor[]];
      return tf.mul(variable, factorOf(entry, variable, parts * size, ...rests));
    });
    return scaled.length === 1 ? scaled[0]! : tf.concat(scaled);
  }

  /**
   * Which elements a lazy rule moves: of matrices, those of rows whose gradient is not all 0, and all elements of other variables.
   *
   * @param grad flat, as in `scaleEach`.
   * @returns bool, like `grad`; undefined where all move.
   */
  touched(grad: Tensor): Tensor | undefined {
    if (!this.entries.some(isTable)) return undefined;
    const { length } = this;
    const { offset: begin } = this.place;
    const all = (size: number): Tensor => tf.fill([size], 1, 'bool' as 'float32');
    const masks = this.entries.flatMap((entry, i) => {
      const first = entry.offset - begin;
      const end = (this.entries[i + 1]?.offset ?? begin + length) - begin;
      if (!isTable(entry) || entry.size === 0) return end > first ? [all(end - first)] : [];
      const depth = entry.shape[1]!;
      const size = Math.min(entry.size, length);
      const rows = tf.reshape(tf.slice(grad, [first], [size]), [size / depth, depth]);
      const hasGradient = tf.any(tf.notEqual(rows, 0), 1, true);
      const rest = end - first - size;
      const mask = tf.reshape(tf.broadcastTo(hasGradient, [size / depth, depth]), [size]);
      return rest > 0 ? [mask, all(rest)] : [mask];
    });
    return masks.length === 1 ? masks[0]! : tf.concat(masks);
  }
}

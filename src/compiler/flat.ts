/** @file One flat buffer for many variables: where each one lies, and views of it. */

/** A variable to be placed. Variables of one group lie side by side, so that one rule can update them all. */
export interface FlatVariable {
  name: string;
  shape: readonly number[];
  group: string;
}

/** Where one variable lies; `offset` and `size` count elements. */
export interface FlatEntry {
  name: string;
  shape: readonly number[];
  offset: number;
  size: number;
  group: string;
}

/** A run of the buffer that is worked on in `chunks` equal pieces of `chunk` elements; `size` includes padding. */
export interface FlatGroup {
  name: string;
  offset: number;
  size: number;
  chunk: number;
  chunks: number;
}

/** The plan of a flat buffer of `size` elements. */
export interface FlatLayout {
  entries: FlatEntry[];
  groups: FlatGroup[];
  size: number;
}

/** Elements in a cache line of 64 bytes: every entry and chunk starts on one, which vector loads like best. */
const ALIGNMENT = 16;

const align = (size: number): number => Math.ceil(size / ALIGNMENT) * ALIGNMENT;

/**
 * Places variables in one buffer: groups in the order of their first variable, variables in the given order within
 * their group. A group ends in padding that makes its chunks equal, so that one executable serves them all; padding is
 * zero and every update keeps it zero.
 *
 * @param variables names must be unique; a scalar has shape [].
 * @param maxChunk upper bound of a chunk, in elements, a positive multiple of 16.
 * @throws RangeError for a bad `maxChunk`, a bad shape or a repeated name.
 */
export function flatLayout(variables: readonly FlatVariable[], maxChunk = 1 << 18): FlatLayout {
  if (!Number.isInteger(maxChunk) || maxChunk <= 0 || maxChunk % ALIGNMENT !== 0) {
    throw new RangeError(
      `flatLayout: maxChunk must be a positive multiple of ${ALIGNMENT}, got ${maxChunk}.`,
    );
  }
  const byGroup = new Map<string, FlatVariable[]>();
  const names = new Set<string>();
  for (const variable of variables) {
    if (names.has(variable.name))
      throw new RangeError(`flatLayout: two variables are named '${variable.name}'.`);
    names.add(variable.name);
    const members = byGroup.get(variable.group);
    if (members) members.push(variable);
    else byGroup.set(variable.group, [variable]);
  }
  const layout: FlatLayout = { entries: [], groups: [], size: 0 };
  for (const [name, members] of byGroup) placeGroup(layout, name, members, maxChunk);
  return layout;
}

function placeGroup(
  layout: FlatLayout,
  name: string,
  members: readonly FlatVariable[],
  maxChunk: number,
): void {
  const offset = layout.size;
  let used = 0;
  for (const { name: entry, shape, group } of members) {
    const size = elementCount(entry, shape);
    layout.entries.push({ name: entry, shape: [...shape], offset: offset + used, size, group });
    used += align(size);
  }
  const chunks = Math.max(1, Math.ceil(used / maxChunk));
  const chunk = align(Math.ceil(used / chunks));
  layout.groups.push({ name, offset, size: chunk * chunks, chunk, chunks });
  layout.size = offset + chunk * chunks;
}

function elementCount(name: string, shape: readonly number[]): number {
  let size = 1;
  for (const dim of shape) {
    if (!Number.isInteger(dim) || dim < 0) {
      throw new RangeError(
        `flatLayout: variable '${name}' has shape [${shape.join(', ')}]; dimensions are integers, 0 or more.`,
      );
    }
    size *= dim;
  }
  return size;
}

/**
 * Views of every variable in a buffer, by name, without a copy.
 *
 * @throws RangeError where the buffer's length is not the layout's.
 */
export function flatViews(layout: FlatLayout, buffer: Float32Array): Record<string, Float32Array> {
  if (buffer.length !== layout.size) {
    throw new RangeError(`flatViews: the layout has ${layout.size} elements, the buffer ${buffer.length}.`);
  }
  const views: Record<string, Float32Array> = {};
  for (const { name, offset, size } of layout.entries) views[name] = buffer.subarray(offset, offset + size);
  return views;
}

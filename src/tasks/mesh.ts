/** @file Mesh of devices, and its axes that batches, variables and activations are split over (Pax's sharding annotations). */
import { z } from 'zod';
import { type Group, memberOf, membersOf } from '../compiler/index.js';
import { type Config, ConfigError, Configurable, didYouMean, type Report } from '../hparams/index.js';
import { splitDims, type Variable } from '../layers/index.js';
import { isPattern, wholePath } from '../learners/index.js';
import { type Shard, shardOf } from './shards.js';

const axis = z.string().min(1);
const meshShape = z.array(z.int().positive()).min(1);
const pattern = z.string().refine(isPattern, { error: 'expected a regular expression' });
const splitDimsMapping = z.record(pattern, splitDims).default({});

type SplitDims = readonly (string | readonly string[] | null)[];
const mappings = ['weightSplitDimsMapping', 'activationSplitDimsMapping'] as const;

/** A variable as one device holds it. */
export interface LocalVariable extends Variable {
  /** Whether devices hold more elements together than the variable has. */
  readonly isPadded: boolean;
}

const axesOf = (dims: SplitDims): string[] => dims.flatMap((axes) => axes ?? []);

/**
 * The devices that a task is meant for: those of its ranks, where a launcher has started some, and what `luthier analyze` and
 * `luthier diff` tell the memory of a device from. The fields are those that Pax's Train has, and rules by path, which go
 * before what layers say of themselves.
 */
export class Mesh extends Configurable.with({
  iciMeshShape: meshShape.default([1, 1, 1]).describe('Devices of a slice along each axis.'),
  dcnMeshShape: meshShape
    .nullable()
    .default(null)
    .describe('Slices along each axis, which share no fast network; null: one slice.'),
  meshAxisNames: z.array(axis).default(['replica', 'data', 'mdl']).describe('The axes.'),
  inputsSplitMapping: z
    .array(axis)
    .default(['replica', 'data'])
    .describe('Axes that the rows of a batch are split over.'),
  weightSplitDimsMapping: splitDimsMapping.describe(
    'Axes by dimension, null for none, of the variables whose whole path a regular expression matches; others are ' +
      'split as their layers say, or whole on every device.',
  ),
  activationSplitDimsMapping: splitDimsMapping.describe(
    'Axes by dimension of what a layer writes, by regular expressions of whole paths; rows are split and the rest is ' +
      'whole where none matches.',
  ),
}) {
  static override validate(mesh: Config<Mesh>, report: Report): void {
    const { iciMeshShape, dcnMeshShape, meshAxisNames, inputsSplitMapping } = mesh;
    for (const [field, shape] of Object.entries({ iciMeshShape, dcnMeshShape })) {
      if (shape !== null && shape.length !== meshAxisNames.length)
        report(`expected a size for each of the axes ${meshAxisNames.join(', ')}`, field);
    }
    const check = (dims: SplitDims, field: string, pattern = ''): void => {
      const axes = axesOf(dims);
      const unknown = axes.find((name) => !meshAxisNames.includes(name));
      const twice = axes.find((name, i) => axes.indexOf(name) !== i);
      const where = pattern && `'${pattern}': `;
      if (unknown !== undefined)
        report(`${where}expected axes of ${meshAxisNames.join(', ')}, got '${unknown}'`, field);
      if (twice !== undefined) report(`${where}the axis '${twice}' can split one dimension only`, field);
    };
    check([inputsSplitMapping], 'inputsSplitMapping');
    for (const field of mappings)
      for (const [pattern, dims] of Object.entries(mesh[field])) check(dims, field, pattern);
  }

  /** How many devices there are along axes together: slices times those of a slice. */
  ways(axes: readonly string[] = this.hp.meshAxisNames): number {
    const { iciMeshShape, dcnMeshShape, meshAxisNames } = this.hp;
    const sizeOf = (name: string): number => {
      const i = meshAxisNames.indexOf(name);
      return iciMeshShape[i]! * (dcnMeshShape?.[i] ?? 1);
    };
    return axes.reduce((product, name) => product * sizeOf(name), 1);
  }

  /** Rows of a global batch that a device holds. @throws ConfigError where that is no whole number. */
  localRows(rows: number): number {
    const axes = this.hp.inputsSplitMapping;
    if (rows % this.ways(axes) === 0) return rows / this.ways(axes);
    throw new ConfigError(
      `A batch of ${rows} rows can't be split evenly over ${this.ways(axes)} devices (${this.#named(axes)}): ` +
        'change the batch size or the mesh.',
      { path: 'task.mesh.inputsSplitMapping' },
    );
  }

  /**
   * The variables as one device holds them. A dimension that its axes don't divide is padded, as in Pax.
   *
   * @throws ConfigError where a dimension has fewer elements than devices, an annotation has another rank than its
   *   variable, and a pattern matches none or shares a variable with another.
   */
  localVariables(variables: readonly Variable[]): LocalVariable[] {
    return this.#splits(variables).map(({ variable, dims }) => {
      if (dims === undefined) return { ...variable, isPadded: false };
      const { path, shape } = variable;
      const ways = dims.map((axes, i) => {
        const named = axesOf([axes]);
        if (this.ways(named) <= shape[i]!) return this.ways(named);
        throw this.#unsplit(path, shape, i, `can't be split over ${this.#devices(named)}`);
      });
      const local = shape.map((size, i) => Math.ceil(size / ways[i]!));
      return { ...variable, shape: local, isPadded: shape.some((size, i) => size % ways[i]! > 0) };
    });
  }

  /**
   * Devices along each axis of the mesh as ranks lie in it, in row-major order: slices first, where there are several, so that
   * the ranks of a slice follow one another.
   */
  get sizes(): readonly number[] {
    const { iciMeshShape, dcnMeshShape } = this.hp;
    return this.#hasSlices ? [...dcnMeshShape!, ...iciMeshShape] : iciMeshShape;
  }

  /** Names of the axes of `sizes`. */
  get axisNames(): readonly string[] {
    const { meshAxisNames } = this.hp;
    return this.#hasSlices
      ? [...meshAxisNames.map((name) => `slices of ${name}`), ...meshAxisNames]
      : meshAxisNames;
  }

  /** The ranks along axes, of which some ranks are a group: the first axis is the outermost, in each the slices. */
  groupOf(axes: readonly string[]): Group {
    return { mesh: this.sizes, axes: this.#numbersOf(axes) };
  }

  /** The share of a batch's rows that a rank reads. Ranks that differ along other axes read the same. */
  shareOf(rank: number): { readonly index: number; readonly count: number } {
    const group = this.groupOf(this.hp.inputsSplitMapping);
    return { index: memberOf(group, rank), count: membersOf(group) };
  }

  /**
   * The parts of variables that a rank holds.
   *
   * @param among the axes that split them.
   * @throws ConfigError where devices cannot hold as many elements of a dimension each, and as `localVariables`.
   */
  shards(
    variables: readonly Variable[],
    rank: number,
    among: readonly string[] = this.hp.meshAxisNames,
  ): Shard[] {
    const isOfRows = (axis: string): boolean => this.hp.inputsSplitMapping.includes(axis);
    return this.#splits(variables).map(({ variable, dims = variable.shape.map(() => null) }) => {
      const { path, shape } = variable;
      // A dimension's parts of rows lie side by side in those along other axes: ranks join them by rows first.
      const named = dims.map((axes) => {
        const own = axesOf([axes]).filter((axis) => among.includes(axis));
        return [...own.filter((axis) => !isOfRows(axis)), ...own.filter(isOfRows)];
      });
      const all = named.flat();
      const twice = all.find((axis, i) => all.indexOf(axis) !== i);
      if (twice !== undefined)
        throw this.#error('weightSplitDimsMapping', `the axis '${twice}' splits two dimensions of ${path}`);
      const numbers = named.map((axes) => this.#numbersOf(axes));
      const shard = shardOf(variable, this.sizes, numbers, rank);
      if (typeof shard !== 'number') return shard;
      throw this.#unsplit(path, shape, shard, `can't be split evenly over ${this.#devices(named[shard]!)}`);
    });
  }

  /**
   * Number of parts into which devices split the output of the layer at `path`. @param own the layer's own split
   *
   * @throws ConfigError where that has an axis that the mesh has not.
   */
  parts(path: string, own?: SplitDims): number {
    const { inputsSplitMapping } = this.hp;
    const dims = this.#entryOf('activationSplitDimsMapping', path)?.[1] ?? own ?? [inputsSplitMapping];
    this.#checkAxes(dims, path);
    const axes = axesOf(dims);
    return this.ways(axes) / this.ways(inputsSplitMapping);
  }

  /**
   * Numbers of the axes, in `sizes`, that split the dimensions of a layer's tensor, those of rows and those that don't divide it
   * left out; undefined where neither the mesh nor layers say any.
   *
   * @param own the split that layers say. @param withRows those of rows, too, as for a program of the rows of all ranks. @throws ConfigError where that has an axis that the mesh has not.
   */
  activationAxes(
    path: string,
    own: SplitDims | undefined,
    shape: readonly number[],
    withRows = false,
  ): (readonly number[])[] | undefined {
    const dims = this.#entryOf('activationSplitDimsMapping', path)?.[1] ?? own;
    if (dims?.length !== shape.length) return undefined;
    this.#checkAxes(dims, path);
    return dims.map((axes, i) => {
      const named = axesOf([axes]).filter((name) => withRows || !this.hp.inputsSplitMapping.includes(name));
      return shape[i]! % this.ways(named) === 0 ? this.#numbersOf(named) : [];
    });
  }

  get #hasSlices(): boolean {
    return this.hp.dcnMeshShape?.some((slices) => slices > 1) ?? false;
  }

  /** Numbers of axes in `sizes`. */
  #numbersOf(names: readonly string[]): number[] {
    const { meshAxisNames } = this.hp;
    const numbers = names.map((name) => meshAxisNames.indexOf(name));
    return this.#hasSlices ? numbers.flatMap((number) => [number, meshAxisNames.length + number]) : numbers;
  }

  /** Axes of each dimension of the variables, where the mesh or their layers say them. @throws ConfigError as `localVariables` */
  #splits(
    variables: readonly Variable[],
  ): { readonly variable: Variable; readonly dims: SplitDims | undefined }[] {
    const field = 'weightSplitDimsMapping';
    const found = variables.map((variable) => ({ variable, entry: this.#entryOf(field, variable.path) }));
    for (const pattern of Object.keys(this.hp[field])) {
      if (!found.some(({ entry }) => entry?.[0] === pattern))
        throw this.#error(field, `'${pattern}' matches no variable of the model`);
    }
    return found.map(({ variable, entry }) => {
      const { path, shape, splitDims, repeatPrefix, prefixSplit } = variable;
      if (entry && entry[1].length !== shape.length)
        throw this.#error(
          field,
          `'${entry[0]}' has ${entry[1].length} dimensions, and ${path} is [${shape}]`,
        );
      const whole = shape.map(() => null);
      const prefix = prefixSplit ?? repeatPrefix.map(() => null);
      const own = splitDims ?? (prefixSplit && whole.slice(repeatPrefix.length));
      const dims = entry?.[1] ?? (own && [...prefix, ...own]);
      if (dims !== undefined) this.#checkAxes(dims, path);
      return { variable, dims };
    });
  }

  #entryOf(field: (typeof mappings)[number], path: string): [pattern: string, dims: SplitDims] | undefined {
    const entries = Object.entries(this.hp[field]);
    const found = entries.filter(([source]) => wholePath(source).test(path));
    if (found.length < 2) return found[0];
    throw this.#error(field, `${found.map(([source]) => `'${source}'`).join(' and ')} both match ${path}`);
  }

  /** Those of the mesh's own rules are checked with its config. */
  #checkAxes(dims: SplitDims, path: string): void {
    const { meshAxisNames } = this.hp;
    const unknown = axesOf(dims).find((name) => !meshAxisNames.includes(name));
    if (unknown === undefined) return;
    throw new ConfigError(
      `${path} is split over '${unknown}', which is no axis of task.mesh.${didYouMean(unknown, meshAxisNames)} Its axes ` +
        `are ${meshAxisNames.join(', ')}.`,
      { path: 'task.mesh.meshAxisNames' },
    );
  }

  #unsplit(path: string, shape: readonly number[], dim: number, problem: string): ConfigError {
    return this.#error('weightSplitDimsMapping', `dimension ${dim} of ${path} [${shape}] ${problem}`);
  }

  #devices(axes: readonly string[]): string {
    return `${this.ways(axes)} devices (${this.#named(axes)})`;
  }

  #named(axes: readonly string[]): string {
    return axes.map((name) => `${name} ${this.ways([name])}`).join(', ');
  }

  #error(field: string, problem: string): ConfigError {
    const path = `task.mesh.${field}`;
    return new ConfigError(`${path} does not fit the model: ${problem}.`, { path });
  }
}

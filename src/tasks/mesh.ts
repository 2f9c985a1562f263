/** @file Mesh of devices, and its axes that batches, variables and activations are split over (Pax's sharding annotations). */
import { z } from 'zod';
import { type Config, ConfigError, Configurable, type Report } from '../hparams/index.js';
import type { Variable } from '../layers/index.js';
import { isPattern, wholePath } from '../learners/index.js';

const axis = z.string().min(1);
const meshShape = z.array(z.int().positive()).min(1);
/** For each dimension the axis, or axes, of the mesh that it is split over. */
const splitDims = z.array(z.union([axis, z.array(axis)]).nullable());
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
 * The devices that a task is meant for. Nothing is partitioned yet: it is what `luthier analyze` and `luthier diff` tell
 * the memory of a device from. The fields are those that Pax's BaseLayer and Train have, with annotations by path
 * instead of in each layer.
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
      'whole on every device.',
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
    const field = 'weightSplitDimsMapping';
    const found = variables.map((variable) => ({ variable, entry: this.#entryOf(field, variable.path) }));
    for (const pattern of Object.keys(this.hp[field])) {
      if (!found.some(({ entry }) => entry?.[0] === pattern))
        throw this.#error(field, `'${pattern}' matches no variable of the model`);
    }
    return found.map(({ variable, entry }) => {
      if (entry === undefined) return { ...variable, isPadded: false };
      const { path, shape } = variable;
      const [pattern, dims] = entry;
      if (dims.length !== shape.length)
        throw this.#error(field, `'${pattern}' has ${dims.length} dimensions, and ${path} is [${shape}]`);
      const ways = dims.map((axes, i) => {
        const named = axesOf([axes]);
        if (this.ways(named) <= shape[i]!) return this.ways(named);
        throw this.#error(
          field,
          `dimension ${i} of ${path} [${shape}] can't be split over ${this.ways(named)} devices (${this.#named(named)})`,
        );
      });
      const local = shape.map((size, i) => Math.ceil(size / ways[i]!));
      return { ...variable, shape: local, isPadded: shape.some((size, i) => size % ways[i]! > 0) };
    });
  }

  /** Into how many parts devices split what the layer at `path` writes for their rows. */
  parts(path: string): number {
    const { inputsSplitMapping } = this.hp;
    const axes = axesOf(this.#entryOf('activationSplitDimsMapping', path)?.[1] ?? [inputsSplitMapping]);
    return this.ways(axes) / this.ways(inputsSplitMapping);
  }

  #entryOf(field: (typeof mappings)[number], path: string): [pattern: string, dims: SplitDims] | undefined {
    const entries = Object.entries(this.hp[field]);
    const found = entries.filter(([source]) => wholePath(source).test(path));
    if (found.length < 2) return found[0];
    throw this.#error(field, `${found.map(([source]) => `'${source}'`).join(' and ')} both match ${path}`);
  }

  #named(axes: readonly string[]): string {
    return axes.map((name) => `${name} ${this.ways([name])}`).join(', ');
  }

  #error(field: string, problem: string): ConfigError {
    const path = `task.mesh.${field}`;
    return new ConfigError(`${path} does not fit the model: ${problem}.`, { path });
  }
}

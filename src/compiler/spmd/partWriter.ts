/** @file Writer of a rank's graph: each operation on the rank's parts, and collectives between them. */

import { type Attrs, type Node, newValue, type Value } from '../program/ir.js';
import { CONSTRAINT } from '../rules/collectiveRules.js';
import type { Factors, Reduction } from '../rules/factors.js';
import { GRADIENT, readScope } from '../trace/gradientScopes.js';
import { cheapest, summedAxes } from './assign.js';
import { ON_PARTS, scalar } from './onParts.js';
import { factorsOf, loopCounts } from './relations.js';
import { type Emit, emitTo, reshard } from './reshard.js';
import { scatterRows, without } from './rows.js';
import {
  localShape,
  type MeshShape,
  type Sharding,
  type Shardings,
  sameAxes,
  sameSharding,
  shardingBy,
  waysOf,
  wholeOf,
} from './sharding.js';

/** A value of whole tensors as a rank has it. */
interface Part {
  readonly value: Value;
  readonly sharding: Sharding;
}

/** What lies over axes of rows in a graph. */
export interface Rows {
  readonly axes: readonly number[];
  /** Sums over the ranks along these, which nothing reads but the graph's outputs. */
  readonly scattered: ReadonlyMap<Value, Sharding>;
  /** Whether all of the graph is of a gradient, which then gathers once. */
  readonly isGradient?: boolean;
}

/** Writes the nodes of one graph, the program's or a body's. */
export class PartWriter {
  readonly nodes: Node[] = [];
  readonly #parts = new Map<Value, Part>();
  /** Parts by other shardings than a value's own, by the JSON of these. */
  readonly #others = new Map<Value, Map<string, Value>>();
  /** Values that are gathered where they are read, and how many there were at the last time. */
  readonly #gathered = new Map<Value, number>();

  constructor(
    private readonly shardings: Shardings,
    private readonly mesh: MeshShape,
    private readonly rows: Rows,
    /** Axes of the mesh along which ranks take other turns of a loop: within it, they split nothing. */
    private readonly taken: readonly number[] = [],
  ) {}

  /** The inputs of a graph, as values of parts by their shardings. */
  open(inputs: readonly Value[], shardings: readonly Sharding[]): Value[] {
    return inputs.map((input, i) => {
      const sharding = shardings[i]!;
      const { name } = input;
      const shape = localShape(input.shape, sharding, this.mesh);
      const value = newValue({ ...input, shape }, name === undefined ? {} : { name });
      this.#parts.set(input, { value, sharding });
      return value;
    });
  }

  /** A value's part by a sharding, made of the one that there is. */
  part(value: Value, sharding: Sharding, scope: string): Value {
    const known = this.#parts.get(value) ?? { value, sharding: wholeOf(value.shape) };
    if (sameSharding(known.sharding, sharding)) return known.value;
    const others = this.#others.get(value) ?? new Map<string, Value>();
    this.#others.set(value, others);
    const isGathered = this.#isOfRows(known);
    const own = JSON.stringify(sharding);
    const again = `${own} again`;
    const isAgain =
      isGathered && (others.has(again) || (others.has(own) && this.#isFarInGradient(value, scope)));
    const key = isAgain ? again : own;
    if (isGathered) this.#read(value);
    const found = others.get(key);
    if (found !== undefined) return found;
    const from = isAgain ? this.#later(known.value) : known.value;
    const made = reshard(from, known.sharding, sharding, this.mesh, this.#emit(scope));
    others.set(key, made);
    return made;
  }

  /** Notes that a value is gathered, or read once more. */
  #read(value: Value): void {
    this.#gathered.set(value, 0);
    this.#gathered.set(value, this.#gathered.size);
  }

  /** Whether a gradient reads what lies over axes of rows once others have been gathered: all of them are not kept for it. */
  #isFarInGradient(value: Value, scope: string): boolean {
    if (this.rows.isGradient || !readScope(scope).isGradient) return false;
    return this.#gathered.get(value)! < this.#gathered.size;
  }

  /** Whether a value is gathered where it is read. */
  #isOfRows({ sharding }: Part): boolean {
    return sharding.flat().some((axis) => this.rows.axes.includes(axis));
  }

  /** The value behind all that is written: what is made of it is not what was made of it before. */
  #later(value: Value): Value {
    const arrival = this.nodes.at(-1)!.outputs[0]!;
    const output = newValue(value);
    this.nodes.push({
      op: 'Barrier',
      inputs: [value, arrival],
      outputs: [output],
      attrs: {},
      scope: GRADIENT,
    });
    return output;
  }

  write(node: Node): void {
    if (node.bodies !== undefined) this.#writeBodies(node);
    else if (node.op === CONSTRAINT) {
      const [output] = node.outputs as [Value];
      const sharding = this.#wanted(output);
      this.#parts.set(output, { value: this.part(node.inputs[0]!, sharding, node.scope), sharding });
    } else {
      const factors = factorsOf(node);
      if (factors === undefined) this.#writeWhole(node);
      else this.#writeParts(node, factors);
    }
  }

  #emit(scope: string): Emit {
    return emitTo(this.nodes, scope);
  }

  #wanted(value: Value): Sharding {
    const sharding = this.shardings.get(value) ?? wholeOf(value.shape);
    return this.taken.length === 0 ? sharding : without(sharding, this.taken);
  }

  #push(node: Node, inputs: readonly Value[], outputs: readonly Value[], rest: Partial<Node> = {}): void {
    this.nodes.push({ ...node, ...rest, inputs, outputs });
  }

  /** Every rank computes all of it. */
  #writeWhole(node: Node): void {
    const { inputs, outputs, scope } = node;
    const results = outputs.map((output) => newValue(output));
    this.#push(
      node,
      inputs.map((input) => this.part(input, wholeOf(input.shape), scope)),
      results,
    );
    outputs.forEach((output, i) => {
      this.#settle(output, results[i]!, wholeOf(output.shape), [], scope);
    });
  }

  #writeParts(node: Node, factors: Factors): void {
    const { mesh } = this;
    const { scope } = node;
    const around = {
      // Not as inputs lie: of axes of rows, no operation may make use.
      inputs: node.inputs.map((input) => this.#wanted(input)),
      outputs: node.outputs.map((output) => this.#wanted(output)),
    };
    const assignment = cheapest(node, factors, around, mesh);
    const inputs = node.inputs.map((input, i) =>
      this.part(input, shardingBy(factors.inputs[i]!, assignment, factors, mesh), scope),
    );
    const made = node.outputs.map((_, i) => shardingBy(factors.outputs[i]!, assignment, factors, mesh));
    const shapes = node.outputs.map(({ shape }, i) => localShape(shape, made[i]!, mesh));
    const attrs: Attrs = { ...node.attrs, ...factors.localAttrs?.(shapes[0]!) };
    const { onParts } = factors;
    const axes = onParts === undefined ? [] : assignment[onParts]!;
    let results: readonly Value[];
    if (axes.length > 0) {
      const range = { group: { mesh, axes }, size: factors.sizes[onParts!]! / waysOf(axes, mesh) };
      results = [ON_PARTS[node.op]!(inputs, attrs, range, this.#emit(scope))];
    } else {
      results = node.outputs.map((output, i) => newValue({ ...output, shape: shapes[i]! }));
      this.#push(node, inputs, results, { attrs });
    }
    const sums = [...summedAxes(factors, assignment)].map(([factor, each]) => ({
      axes: each,
      reduction: factors.reductions?.[factor] ?? 'sum',
    }));
    node.outputs.forEach((output, i) => {
      this.#settle(output, results[i]!, made[i]!, sums, scope);
    });
  }

  /** Adds up a result, and has it by the sharding that is wanted. */
  #settle(
    value: Value,
    result: Value,
    made: Sharding,
    sums: readonly { readonly axes: readonly number[]; readonly reduction: Reduction | 'mean' | 'none' }[],
    scope: string,
  ): void {
    const { mesh, rows } = this;
    const emit = this.#emit(scope);
    const scattered = rows.scattered.get(value);
    const wanted = scattered === undefined ? this.#wanted(value) : without(scattered, rows.axes);
    const sharding = made.map((axes) => [...axes]);
    let current = result;
    const reductions = new Map<Reduction, Set<number>>();
    for (const { axes, reduction } of sums) {
      const kind = reduction === 'mean' ? 'sum' : (reduction as Reduction);
      reductions.set(kind, new Set([...(reductions.get(kind) ?? []), ...axes]));
      // Before sums are, so that they do not overflow where the mean does not.
      if (reduction === 'mean')
        current = emit('Multiply', [current, scalar(1 / waysOf(axes, mesh), current.dtype)]);
    }
    for (const [reduction, axes] of reductions) {
      if (reduction === 'sum')
        wanted.forEach((all, dim) => {
          const more = all.slice(sharding[dim]!.length);
          const isScattered =
            more.length > 0 &&
            sameAxes(all.slice(0, sharding[dim]!.length), sharding[dim]!) &&
            more.every((axis) => axes.has(axis));
          if (!isScattered) return;
          current = emit('ReduceScatter', [current], { mesh, axes: more, dim });
          sharding[dim]!.push(...more);
          for (const axis of more) axes.delete(axis);
        });
      if (axes.size > 0)
        current = emit('AllReduce', [current], { mesh, axes: [...axes].sort((a, b) => a - b), reduction });
    }
    const part = reshard(current, sharding, wanted, mesh, emit);
    if (scattered === undefined) this.#parts.set(value, { value: part, sharding: wanted });
    else
      this.#parts.set(value, {
        value: scatterRows(part, wanted, scattered, rows.axes, mesh, emit),
        sharding: scattered,
      });
  }

  /** The axes along which ranks share the turns of a loop without carries. @param values of all turns */
  #sharedTurns(values: readonly Value[]): readonly number[] {
    return values.map((value) => this.#wanted(value)[0]!).find((axes) => axes.length > 0) ?? [];
  }

  /**
   * A loop's carries have one sharding before, in and behind it. Slices of its turns are whole along their axis, unless there are
   * no carries: then ranks may share the turns. What lies over axes of rows comes into its turns as it is, and sums that it
   * stacks are scattered there.
   */
  #writeBodies(node: Node): void {
    const { inputs, outputs, bodies = [], scope } = node;
    const isLoop = node.op === 'Scan';
    const { carries, xs } = isLoop ? loopCounts(node) : { carries: 0, xs: 0 };
    const skipped = isLoop ? 0 : 1;
    const isSliced = (i: number): boolean => isLoop && i >= carries && i < carries + xs;
    const shared = isLoop && carries === 0 ? this.#sharedTurns([...inputs.slice(0, xs), ...outputs]) : [];
    const stacked = (sharding: Sharding): Sharding => [shared, ...sharding];
    const taken = [...this.taken, ...shared];
    const wantedInside = (value: Value): Sharding => without(this.#wanted(value), shared);
    const within = inputs.slice(skipped).map((input, i) => {
      const part = this.#parts.get(input);
      const wanted = wantedInside(bodies[0]!.inputs[i]!);
      // Ranks may take another branch than those with other rows.
      if (!isLoop || i < carries || part === undefined || !this.#isOfRows(part)) return wanted;
      this.#read(input);
      if (!isSliced(i)) return part.sharding;
      const [turns, ...own] = part.sharding;
      return sameAxes(turns!, shared) ? own : wanted;
    });
    const scattered = outputs.map((output, i) => {
      const sharding = this.rows.scattered.get(output);
      if (!isLoop || i < carries || sharding === undefined || !sameAxes(sharding[0]!, shared))
        return undefined;
      const turn = bodies[0]!.outputs[i]!;
      const reads = [...bodies[0]!.nodes.flatMap(({ inputs }) => inputs), ...bodies[0]!.outputs];
      return reads.filter((value) => value === turn).length === 1 ? sharding.slice(1) : undefined;
    });
    const results = outputs.map(
      (_, i) => scattered[i] ?? (i < carries ? within[i]! : wantedInside(bodies[0]!.outputs[i]!)),
    );
    const written = bodies.map((body) => {
      const rows: Rows = {
        axes: this.rows.axes,
        scattered: new Map(
          body.outputs.flatMap((output, i) => (scattered[i] ? [[output, scattered[i]]] : [])),
        ),
        isGradient: this.rows.isGradient === true || readScope(scope).isGradient,
      };
      const writer = new PartWriter(this.shardings, this.mesh, rows, taken);
      const own = writer.open(body.inputs, within);
      for (const each of body.nodes) writer.write(each);
      const given = body.outputs.map((output, i) => writer.part(output, results[i]!, scope));
      return { inputs: own, nodes: writer.nodes, outputs: given };
    });
    const operands = inputs.map((input, i) => {
      if (i < skipped) return this.part(input, wholeOf(input.shape), scope);
      const sharding = within[i - skipped]!;
      return this.part(input, isSliced(i) ? stacked(sharding) : sharding, scope);
    });
    const made = results.map((sharding, i) => (isLoop && i >= carries ? stacked(sharding) : sharding));
    const values = outputs.map((output, i) =>
      newValue({ ...output, shape: localShape(output.shape, made[i]!, this.mesh) }),
    );
    const length = (node.attrs.length as number) / waysOf(shared, this.mesh);
    const attrs = isLoop ? { ...node.attrs, length } : node.attrs;
    this.#push(node, operands, values, { attrs, bodies: written });
    outputs.forEach((output, i) => {
      if (scattered[i] === undefined) this.#settle(output, values[i]!, made[i]!, [], scope);
      else this.#parts.set(output, { value: values[i]!, sharding: made[i]! });
    });
  }
}

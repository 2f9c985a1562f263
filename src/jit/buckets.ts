/** @file Buckets: calls whose arguments differ in their number of rows share a program, for the next size that is compiled. */
import {
  CompilerError,
  dependencesOf,
  type HostArray,
  type HostTensor,
  newHostArray,
  type PrngKey,
  type Program,
  sizeOf,
  type Tensor,
  tf,
} from '../compiler/index.js';
import { type Arguments, readArguments } from './callStructure.js';
import { type ProgramOptions, StatefulProgram } from './statefulProgram.js';
import { discover } from './stateTrace.js';

/** Which arguments are padded, and to which sizes. */
export interface BucketOptions {
  /** Positions of the arguments, counted from 0 without `rows`, whose arrays have the rows as their first dimension. */
  readonly arguments: readonly number[];
  /** Numbers of rows that are compiled; powers of two by default. More rows than the largest are an error. */
  readonly sizes?: readonly number[];
}

/** Which rows of a bucket are the caller's; the others repeat the last one. */
export interface Rows {
  /** How many there are: float32 []. */
  readonly count: Tensor;
  /** 1 for each of them, 0 for padding: float32 [rows of the bucket]. */
  readonly mask: Tensor;
  /** The sum over the first dimension, [rows, ...] to [...], without padding. */
  sum(x: Tensor): Tensor;
  /** The mean over the first dimension, [rows, ...] to [...], without padding; NaN of no rows. */
  mean(x: Tensor): Tensor;
}

/** Arguments in a bucket. The first array is the number of rows, and the first argument of the function `Rows`. */
export interface BucketArguments extends Arguments {
  readonly count: number;
  /** Rows of the bucket. */
  readonly size: number;
  /** Positions of the arrays that have rows. */
  readonly padded: readonly number[];
  /** The same arguments in a bucket of another size. */
  resized(size: number): BucketArguments;
}

function rowsOf(given: Tensor, size: number): Rows {
  const isValid = tf.less(tf.range(0, size, 1, 'int32'), given);
  const count = tf.cast(given, 'float32');
  const sum = (x: Tensor): Tensor => {
    if (x.shape[0] !== size)
      throw new CompilerError(`Expected the ${size} rows of a bucket as first dimension, got [${x.shape}].`);
    const fits = tf.reshape(isValid, [size, ...x.shape.slice(1).map(() => 1)]);
    // Multiplying by the mask would keep NaN and infinities.
    return tf.sum(tf.where(fits, x, tf.zerosLike(x)), 0);
  };
  return { count, mask: tf.cast(isValid, 'float32'), sum, mean: (x) => tf.div(sum(x), count) };
}

/** Fills a bucket by repeating a row: a repeated row is in the function's domain, while zeros may have no logarithm. */
function paddedTo(size: number, { data, shape, dtype }: HostTensor): HostTensor {
  const rest = shape.slice(1);
  const row = sizeOf(rest);
  const filled = newHostArray(dtype, size * row);
  filled.set(data);
  if (data.length > 0)
    for (let at = data.length; at < filled.length; at += row)
      filled.copyWithin(at, data.length - row, data.length);
  return { data: filled, shape: [size, ...rest], dtype };
}

/** Checked options. */
export class Buckets {
  private readonly sizes: readonly number[] | undefined;

  /** @param user names the function in messages. @throws CompilerError for options that mean nothing. */
  constructor(
    private readonly user: string,
    private readonly options: BucketOptions,
  ) {
    const { arguments: positions, sizes } = options;
    if (!(positions.length > 0 && positions.every((each) => Number.isInteger(each) && each >= 0)))
      throw new CompilerError(
        `${user}: expected bucket.arguments to be positions of arguments, such as [0], got [${positions}].`,
      );
    if (
      sizes !== undefined &&
      !(sizes.length > 0 && sizes.every((each) => Number.isInteger(each) && each > 0))
    )
      throw new CompilerError(`${user}: expected bucket.sizes to be positive integers, got [${sizes}].`);
    this.sizes = sizes?.toSorted((a, b) => a - b);
  }

  private sizeFor(count: number): number {
    if (this.sizes === undefined) return 2 ** Math.ceil(Math.log2(Math.max(count, 1)));
    const found = this.sizes.find((size) => size >= count);
    if (found !== undefined) return found;
    throw new CompilerError(
      `${this.user} got ${count} rows, and its largest bucket has ${this.sizes.at(-1)}. Add a size to bucket.sizes, or pass fewer rows at a time.`,
    );
  }

  /** The arguments in their bucket. @throws CompilerError where the rows of the arguments are not as many. */
  async read(args: readonly unknown[]): Promise<BucketArguments> {
    const given = readArguments(args);
    const marked = this.options.arguments.map((position) => `arguments[${position}]`);
    const hasRows = ({ path }: { readonly path: string }): boolean =>
      marked.some((start) => path === start || path.startsWith(`${start}.`) || path.startsWith(`${start}[`));
    const withRows = given.arrays.filter(hasRows);
    const [first] = withRows;
    if (first === undefined)
      throw new CompilerError(`${this.user}: expected arrays as ${marked.join(' or ')}, got none.`);
    for (const { path, spec } of withRows)
      if (spec.shape.length === 0 || spec.shape[0] !== first.spec.shape[0])
        throw new CompilerError(
          `${this.user}: expected as many rows in '${path}' as in '${first.path}', [${first.spec.shape}], got [${spec.shape}].`,
        );
    const count = first.spec.shape[0]!;
    const arrays = await Promise.all(
      given.arrays.map(async (leaf) => ({ ...leaf.spec, data: (await leaf.values) as HostArray })),
    );
    const resized = (size: number): BucketArguments => {
      const fitted = arrays.map((array, i) => (hasRows(given.arrays[i]!) ? paddedTo(size, array) : array));
      const number: HostTensor = { shape: [], dtype: 'int32', data: Int32Array.of(count) };
      const read = readArguments([number, ...given.rebuild(fitted as never)]);
      const rebuild = (tensors: readonly Tensor[]): unknown[] => {
        const [valid, ...others] = read.rebuild(tensors);
        return [rowsOf(valid as Tensor, size), ...others];
      };
      const padded = given.arrays.flatMap((leaf, i) => (hasRows(leaf) ? [i + 1] : []));
      return { ...read, givesTensors: given.givesTensors, rebuild, count, size, padded, resized };
    };
    return resized(this.sizeFor(count));
  }
}

const numbersBelow = (kind: string, paths: Iterable<string>): number[] =>
  [...paths].filter((path) => path.startsWith(`${kind}.`)).map((path) => Number(path.split('.')[1]));

/**
 * The results whose first dimension are the rows: those that grow with the bucket.
 *
 * @throws CompilerError where padding can't be cut, or has been added up.
 */
function resultsOfRows(
  f: (...args: any[]) => unknown,
  given: BucketArguments,
  user: string,
): ReadonlySet<number> {
  const [program, larger] = [given, given.resized(given.size + 1)].map(
    (each) => discover(f, each).traced.program,
  ) as [Program, Program];
  const sources = dependencesOf(program);
  const found = new Set<number>();
  program.graph.outputs.forEach(({ shape }, i) => {
    const path = program.outputPaths[i]!;
    const [kind, number] = path.split('.') as [string, string];
    const grown = larger.graph.outputs[i]!.shape;
    const what = `${kind === 'results' ? `result ${Number(number) + 1}` : 'the new value of a variable'}, [${shape}],`;
    const isCut = kind === 'results' && shape[0] === given.size && grown[0] === given.size + 1;
    if (isCut && `${shape.slice(1)}` === `${grown.slice(1)}`) found.add(Number(number));
    else if (`${shape}` !== `${grown}`)
      throw new CompilerError(
        `${user}: ${what} grows with the ${given.size} rows of its bucket, and its padding can't be removed. Only the first dimension of results may grow.`,
      );
    else {
      const read = numbersBelow('arguments', sources.get(path)!);
      if (given.padded.some((each) => read.includes(each)) && !read.includes(0))
        throw new CompilerError(
          `${user}: ${what} is computed from all rows of a bucket, padding too. Take the function's first argument, rows: rows.mean(x) or rows.sum(x) for tf.mean(x, 0) or tf.sum(x, 0), or rows.mask.`,
        );
    }
  });
  return found;
}

/** A function compiled for a bucket. */
export class BucketProgram {
  private constructor(
    private readonly program: StatefulProgram,
    private readonly rows: ReadonlySet<number>,
  ) {}

  /** As StatefulProgram.compile. */
  static async compile(
    f: (...args: any[]) => unknown,
    given: BucketArguments,
    options: ProgramOptions & { readonly name: string },
    nextKey: () => PrngKey,
  ): Promise<BucketProgram> {
    const program = await StatefulProgram.compile(f, given, options, nextKey);
    try {
      // Variables that the function makes at its first call exist by now.
      return new BucketProgram(program, resultsOfRows(f, given, options.name));
    } catch (error) {
      await program.dispose();
      throw error;
    }
  }

  isCurrent(): boolean {
    return this.program.isCurrent();
  }

  /** As StatefulProgram.run, without the padding of results. */
  run(
    given: BucketArguments,
    wrap: (result: HostTensor) => unknown,
    nextKey: () => PrngKey,
  ): Promise<unknown> {
    let number = 0;
    const cut = (result: HostTensor): unknown => {
      if (!this.rows.has(number++)) return wrap(result);
      const [, ...rest] = result.shape;
      const data = result.data.slice(0, given.count * sizeOf(rest)) as HostArray;
      return wrap({ ...result, data, shape: [given.count, ...rest] });
    };
    return this.program.run(given, cut, nextKey);
  }

  dispose(): Promise<void> {
    return this.program.dispose();
  }
}

/**
 * @file Dimensions of any size. A program is traced for a few sizes of each; what its traces differ by are sums of products
 * of the sizes, each dimension at most once in a product, whose integer factors the traces tell.
 */
import { CompilerError } from '../program/tensors.js';

/** Sizes that models hardly have among their own. The third has another parity, and tells sums from what is rounded. */
const SIZES = [
  [13, 17, 22],
  [19, 23, 34],
  [29, 31, 46],
] as const;

/**
 * Factors of the products of sizes: at i, that of the dimensions whose bits i has. For `batch` and `length`, `[4, 1, 0, 2]`
 * is 4 + batch + 2 * batch * length.
 */
export type Polynomial = readonly number[];

export const isConstant = (polynomial: Polynomial): boolean =>
  polynomial.slice(1).every((factor) => factor === 0);

/** Dimensions of any size, and the sizes that a program is traced for. */
export class OpenDimensions {
  /** Sizes of each trace, in the order of `names`. */
  readonly samples: readonly (readonly number[])[];

  /** @throws CompilerError for more dimensions than three, and names that ONNX does not recommend */
  constructor(readonly names: readonly string[]) {
    const odd = names.find((name) => !/^[A-Za-z_]\w*$/.test(name));
    if (odd !== undefined)
      throw new CompilerError(
        `exportOnnx: expected dimensions to be named by letters, digits and '_', such as 'batch', got '${odd}'.`,
      );
    if (names.length > SIZES.length)
      throw new CompilerError(
        `exportOnnx: a file has at most ${SIZES.length} dimensions of any size, got ${names.join(', ')}.`,
      );
    const corners = Array.from({ length: this.numProducts }, (_, bits) =>
      names.map((_, i) => SIZES[i]![(bits >> i) & 1]!),
    );
    this.samples = names.length === 0 ? corners : [...corners, names.map((_, i) => SIZES[i]![2])];
  }

  get numProducts(): number {
    return 2 ** this.names.length;
  }

  /** The names of a product's dimensions. */
  factorsOf(product: number): string[] {
    return this.names.filter((_, i) => (product >> i) & 1);
  }

  /** A product's value in each trace. */
  productIn(product: number): number[] {
    return this.samples.map((sizes) =>
      sizes.reduce((value, size, i) => ((product >> i) & 1 ? value * size : value), 1),
    );
  }

  /** What has these values in the traces; undefined where that is no sum of products with integer factors. */
  fit(values: readonly number[]): Polynomial | undefined {
    const factors = values.slice(0, this.numProducts);
    this.names.forEach((_, i) => {
      const [low, high] = SIZES[i]!;
      for (let at = 0; at < factors.length; at++) {
        if ((at >> i) & 1) continue;
        const [first, second] = [factors[at]!, factors[at | (1 << i)]!];
        const slope = (second - first) / (high - low);
        factors[at] = first - slope * low;
        factors[at | (1 << i)] = slope;
      }
    });
    if (!factors.every(Number.isInteger)) return undefined;
    const products = factors.map((_, product) => this.productIn(product));
    const isRight = values.every(
      (value, sample) =>
        factors.reduce((sum, factor, product) => sum + factor * products[product]![sample]!, 0) === value,
    );
    return isRight ? factors : undefined;
  }

  /** As ONNX writes a dimension: a number where it has one size, else such as `2*batch + 1`. */
  format(polynomial: Polynomial): number | string {
    if (isConstant(polynomial)) return polynomial[0]!;
    const terms = polynomial.flatMap((factor, product) => {
      if (factor === 0) return [];
      const parts = this.factorsOf(product);
      return [[...(factor === 1 && parts.length > 0 ? [] : [factor]), ...parts].join('*')];
    });
    // The constant stands last.
    return [...terms.slice(polynomial[0] === 0 ? 0 : 1), ...(polynomial[0] === 0 ? [] : [terms[0]!])].join(
      ' + ',
    );
  }

  /** Values beside the sizes that they are for, for messages. */
  told(values: readonly unknown[]): string {
    const [name] = this.names;
    const sizes = this.samples.map((sample) =>
      sample.length === 1 ? `${sample}` : `(${sample.join(', ')})`,
    );
    const names = this.names.length === 1 ? name! : `(${this.names.join(', ')})`;
    return `${values.join(', ')} where ${names} is ${sizes.join(', ')}`;
  }
}

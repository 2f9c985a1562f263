/** @file Plain-loop counterparts of transformer parts in double precision, sharing nothing with the layers. */

export type Matrix = number[][];

/** `values` as rows of `columns`. */
export function matrix(values: ArrayLike<number>, columns: number): Matrix {
  const all = Array.from(values);
  return Array.from({ length: all.length / columns }, (_, i) => all.slice(i * columns, (i + 1) * columns));
}

export function multiply(a: Matrix, b: Matrix): Matrix {
  return a.map((row) => b[0]!.map((_, j) => row.reduce((sum, value, i) => sum + value * b[i]![j]!, 0)));
}

export const transposed = (a: Matrix): Matrix => a[0]!.map((_, j) => a.map((row) => row[j]!));

export const plus = (a: Matrix, b: Matrix): Matrix =>
  a.map((row, i) => row.map((value, j) => value + b[i]![j]!));

export function softmax(logits: number[]): number[] {
  const top = Math.max(...logits);
  const powers = logits.map((logit) => Math.exp(logit - top));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((power) => power / sum);
}

export function layerNorm(
  x: Matrix,
  scale: ArrayLike<number>,
  bias: ArrayLike<number> | null,
  epsilon: number,
): Matrix {
  return x.map((row) => {
    const mean = row.reduce((a, b) => a + b, 0) / row.length;
    const variance = row.reduce((a, b) => a + (b - mean) ** 2, 0) / row.length;
    return row.map(
      (value, i) => ((value - mean) / Math.sqrt(variance + epsilon)) * scale[i]! + (bias ? bias[i]! : 0),
    );
  });
}

/** The error function by its Taylor series. */
function erf(x: number): number {
  let [term, sum] = [x, x];
  for (let n = 1; n < 80; n++) {
    term *= (-x * x) / n;
    sum += term / (2 * n + 1);
  }
  return (2 / Math.sqrt(Math.PI)) * sum;
}

export const gelu = (x: number): number => (x / 2) * (1 + erf(x / Math.SQRT2));

export interface AttentionOptions {
  heads: number;
  scale: number;
  /** Whether query t sees key s. */
  visible: (t: number, s: number) => boolean;
  logitCap?: number;
}

/** Attention over one sequence; q, k and v are [T, heads * depth]. */
export function attention(q: Matrix, k: Matrix, v: Matrix, options: AttentionOptions): Matrix {
  const depth = q[0]!.length / options.heads;
  return q.map((query, t) => {
    const out = new Array<number>(query.length).fill(0);
    for (let n = 0; n < options.heads; n++) {
      const span = [n * depth, (n + 1) * depth] as const;
      const seen = k.map((_, s) => s).filter((s) => options.visible(t, s));
      const logits = seen.map((s) => {
        const key = k[s]!.slice(...span);
        const dot = query.slice(...span).reduce((sum, value, i) => sum + value * key[i]!, 0) * options.scale;
        return options.logitCap ? options.logitCap * Math.tanh(dot / options.logitCap) : dot;
      });
      softmax(logits).forEach((weight, j) => {
        for (let i = span[0]; i < span[1]; i++) out[i]! += weight * v[seen[j]!]![i]!;
      });
    }
    return out;
  });
}

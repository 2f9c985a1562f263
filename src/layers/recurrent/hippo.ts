/** @file Eigenvalues of HiPPO matrices, by which state spaces begin (Gu et al., 2022). */

/** Matrices: scaled Legendre and Laguerre polynomials, and S4D-Lin's equal distances. */
export const HIPPO_TYPES = ['ss4d-1d', 'ss4d-1d-legs', 'ss4d-1d-lagt'] as const;
export type HippoType = (typeof HIPPO_TYPES)[number];

/** Eigenvalues of a symmetric matrix, by Jacobi's rotations. @param a is overwritten. */
function symmetricEigenvalues(a: Float64Array[]): number[] {
  const n = a.length;
  const norm = Math.hypot(...a.flatMap((row) => [...row]));
  for (let sweep = 0; sweep < 60; sweep++) {
    const off = Math.hypot(...a.flatMap((row, i) => [...row].filter((_, j) => i !== j)));
    if (off <= 1e-15 * norm) break;
    for (let p = 0; p < n; p++) for (let q = p + 1; q < n; q++) rotate(a, p, q);
  }
  return a.map((row, i) => row[i]!);
}

/** Makes element (p, q) zero by a rotation of rows and columns p and q. */
function rotate(a: Float64Array[], p: number, q: number): void {
  const [rowP, rowQ] = [a[p]!, a[q]!];
  if (rowP[q] === 0) return;
  const theta = (rowQ[q]! - rowP[p]!) / (2 * rowP[q]!);
  const t = Math.sign(theta || 1) / (Math.abs(theta) + Math.hypot(theta, 1));
  const cos = 1 / Math.hypot(t, 1);
  const sin = t * cos;
  for (const row of a) {
    const [x, y] = [row[p]!, row[q]!];
    [row[p], row[q]] = [cos * x - sin * y, sin * x + cos * y];
  }
  for (let k = 0; k < a.length; k++) {
    const [x, y] = [rowP[k]!, rowQ[k]!];
    [rowP[k], rowQ[k]] = [cos * x - sin * y, sin * x + cos * y];
  }
}

/**
 * Imaginary parts of the eigenvalues, ascending; all real parts are -1/2. The normal part of a HiPPO matrix is -1/2 and a
 * skew-symmetric matrix K with K[i, j] = ±p_i p_j / 2: its eigenvalues ±iω are those of KᵀK, ω², twice each.
 */
export function hippoFrequencies(size: number, type: HippoType): Float64Array {
  if (type === 'ss4d-1d')
    return Float64Array.from(
      { length: size },
      (_, i) => (Math.PI / size) * (size - 1) * i - (Math.PI / 2) * (size - 1),
    );
  const p = (i: number): number => (type === 'ss4d-1d-legs' ? Math.sqrt(1 + 2 * i) : 1);
  const skew = (i: number, j: number): number => (Math.sign(j - i) * p(i) * p(j)) / 2;
  const indices = Array.from({ length: size }, (_, i) => i);
  const squares = indices.map((i) =>
    Float64Array.from(indices, (j) => indices.reduce((sum, k) => sum + skew(k, i) * skew(k, j), 0)),
  );
  const scale = type === 'ss4d-1d-lagt' ? size : 1;
  const sorted = symmetricEigenvalues(squares).sort((a, b) => b - a);
  const pairs = indices.slice(0, Math.floor(size / 2)).flatMap((pair) => {
    const frequency = scale * Math.sqrt((sorted[2 * pair]! + sorted[2 * pair + 1]!) / 2);
    return [-frequency, frequency];
  });
  return Float64Array.from(size % 2 === 1 ? [...pairs, 0] : pairs).sort();
}

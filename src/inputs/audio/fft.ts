/** @file Fast Fourier transform of a power of two, by Cooley and Tukey. */

/** Transforms arrays of `size` complex numbers, a power of two, in place. */
export class Fft {
  readonly #cos: Float64Array;
  readonly #sin: Float64Array;
  readonly #reversed: Uint32Array;

  constructor(readonly size: number) {
    this.#cos = Float64Array.from({ length: size / 2 }, (_, k) => Math.cos((2 * Math.PI * k) / size));
    this.#sin = Float64Array.from({ length: size / 2 }, (_, k) => -Math.sin((2 * Math.PI * k) / size));
    this.#reversed = new Uint32Array(size);
    for (let i = 1; i < size; i++)
      this.#reversed[i] = (this.#reversed[i >> 1]! >> 1) | (i & 1 ? size >> 1 : 0);
  }

  /** X[k] = Σ x[n] · exp(−2πi · k · n / size). */
  transform(real: Float64Array, imaginary: Float64Array): void {
    const { size } = this;
    for (let i = 0; i < size; i++) {
      const j = this.#reversed[i]!;
      if (j <= i) continue;
      [real[i], real[j]] = [real[j]!, real[i]!];
      [imaginary[i], imaginary[j]] = [imaginary[j]!, imaginary[i]!];
    }
    for (let half = 1; half < size; half *= 2) {
      const stride = size / (2 * half);
      for (let start = 0; start < size; start += 2 * half) {
        for (let k = 0; k < half; k++) {
          const [c, s] = [this.#cos[k * stride]!, this.#sin[k * stride]!];
          const [a, b] = [start + k, start + k + half];
          const re = real[b]! * c - imaginary[b]! * s;
          const im = real[b]! * s + imaginary[b]! * c;
          real[b] = real[a]! - re;
          imaginary[b] = imaginary[a]! - im;
          real[a]! += re;
          imaginary[a]! += im;
        }
      }
    }
  }
}

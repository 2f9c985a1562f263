/** @file Fast Fourier transform, by Cooley and Tukey; an odd factor of the size by the sum that defines it. */

/** Transforms arrays of `size` complex numbers in place. */
export class Fft {
  readonly #cos: Float64Array;
  readonly #sin: Float64Array;
  /** The largest odd factor of the size. */
  readonly #odd: number;
  /** Where each element of the blocks of `#odd` elements comes from. */
  readonly #source: Uint32Array;
  readonly #scratch: readonly [Float64Array, Float64Array];

  constructor(readonly size: number) {
    this.#cos = Float64Array.from({ length: size }, (_, k) => Math.cos((2 * Math.PI * k) / size));
    this.#sin = Float64Array.from({ length: size }, (_, k) => -Math.sin((2 * Math.PI * k) / size));
    let blocks = 1;
    while (size % (2 * blocks) === 0) blocks *= 2;
    this.#odd = size / blocks;
    const reversed = new Uint32Array(blocks);
    for (let i = 1; i < blocks; i++) reversed[i] = (reversed[i >> 1]! >> 1) | (i & 1 ? blocks >> 1 : 0);
    this.#source = Uint32Array.from({ length: size }, (_, i) => {
      return reversed[Math.floor(i / this.#odd)]! + blocks * (i % this.#odd);
    });
    this.#scratch = [new Float64Array(size), new Float64Array(size)];
  }

  /** X[k] = Σ x[n] · exp(−2πi · k · n / size). */
  transform(real: Float64Array, imaginary: Float64Array): void {
    const { size } = this;
    this.#transformBlocks(real, imaginary);
    for (let half = this.#odd; half < size; half *= 2) {
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

  /** The transforms of blocks of the odd factor's size, in the order that butterflies need. */
  #transformBlocks(real: Float64Array, imaginary: Float64Array): void {
    const [odd, stride] = [this.#odd, this.size / this.#odd];
    const [re, im] = this.#scratch;
    for (const [i, source] of this.#source.entries()) {
      re[i] = real[source]!;
      im[i] = imaginary[source]!;
    }
    if (odd === 1) {
      real.set(re);
      imaginary.set(im);
      return;
    }
    for (let start = 0; start < this.size; start += odd)
      for (let k = 0; k < odd; k++) {
        let [sumRe, sumIm] = [0, 0];
        for (let n = 0; n < odd; n++) {
          const at = ((k * n) % odd) * stride;
          const [c, s] = [this.#cos[at]!, this.#sin[at]!];
          sumRe += re[start + n]! * c - im[start + n]! * s;
          sumIm += re[start + n]! * s + im[start + n]! * c;
        }
        real[start + k] = sumRe;
        imaginary[start + k] = sumIm;
      }
  }
}

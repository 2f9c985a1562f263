/** @file The meshes of a number of devices. */

/** Divisors of a positive integer, the smallest first. */
export const divisors = (number: number): number[] => {
  const small: number[] = [];
  const large: number[] = [];
  for (let i = 1; i * i <= number; i++) {
    if (number % i !== 0) continue;
    small.push(i);
    if (i * i !== number) large.unshift(number / i);
  }
  return [...small, ...large];
};

/** All shapes with so many axes and this product. */
export function meshShapes(product: number, axes: number): number[][] {
  if (axes === 1) return [[product]];
  return divisors(product).flatMap((size) =>
    meshShapes(product / size, axes - 1).map((rest) => [size, ...rest]),
  );
}

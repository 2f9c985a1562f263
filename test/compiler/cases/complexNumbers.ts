/** @file Cases of complex numbers and of Fourier transforms. */
import { type HostTensor, type Tensor, tf } from '../../../src/compiler/index.js';
import { fourierTransform } from '../../../src/compiler/ops/fourierTransform.js';
import { isTracing } from '../../../src/compiler/trace/tracing.js';
import { floats, host } from '../values.js';
import { type Case, type CaseFunction, type CaseTable, constant, over } from './case.js';

const parts = (x: Tensor): Tensor[] => [tf.real(x), tf.imag(x)];

/** Real and imaginary parts of as many complex tensors. */
const pairs = (...shapes: number[][]): HostTensor[] =>
  shapes.flatMap((shape, i) => [floats(shape, -2, 2, 21 + i), floats(shape, -2, 2, 31 + i)]);

/** A function of complex tensors, as one of their parts. */
const ofComplex =
  (f: (...xs: any[]) => Tensor | Tensor[]): CaseFunction =>
  (...given) => {
    const xs = given.flatMap((x, i) => (i % 2 === 0 ? [tf.complex(x, given[i + 1])] : []));
    return [f(...xs)].flat().flatMap((y) => ((y.dtype as string) === 'complex64' ? parts(y) : [y]));
  };

/** What moves elements, or is linear over real numbers: each part by itself. */
function byParts(f: (...xs: any[]) => Tensor | Tensor[], ...shapes: number[][]): Case[] {
  const oracle: CaseFunction = (...given) => {
    const [real, imag] = [0, 1].map((part) => [f(...given.filter((_, i) => i % 2 === part))].flat());
    return real!.flatMap((x, i) => [x, imag![i]!]);
  };
  return over(ofComplex(f), [pairs(...shapes)], { oracle });
}

const SPECIAL = [0, -0, Infinity, -Infinity, NaN, 3e38, 1e-30, -2];
const specialPair: HostTensor[] = [
  host(
    [SPECIAL.length ** 2],
    SPECIAL.flatMap((x) => SPECIAL.map(() => x)),
  ),
  host(
    [SPECIAL.length ** 2],
    SPECIAL.flatMap(() => SPECIAL),
  ),
];

/** (a + bi) / (c + di), the textbook's way. */
const quotient: CaseFunction = (a, b, c, d) => {
  const square = tf.add(tf.square(c), tf.square(d));
  return [
    tf.div(tf.add(tf.mul(a, c), tf.mul(b, d)), square),
    tf.div(tf.sub(tf.mul(b, c), tf.mul(a, d)), square),
  ];
};

/** Sums of as many terms as the transforms have. */
const tolerance = { relative: 1e-5, absolute: 3e-5 } as const;

/** Whatever the factors of the length: products, factors, chirps. */
const transforms = (f: (x: any) => Tensor): Case[] => [
  ...[[1], [2], [3, 5], [2, 8]].flatMap((shape) => over(ofComplex(f), [pairs(shape)], { tolerance })),
  ...[[2, 3, 12], [64], [2, 67], [120], [2, 128], [263], [1024]].flatMap((shape) =>
    over(ofComplex(f), [pairs(shape)], { ...constant, tolerance }),
  ),
];

export const complexCases: CaseTable = {
  Complex: [
    ...over((a, b) => parts(tf.complex(a, b)), [pairs([]), pairs([2, 3]), pairs([0, 2])]),
    ...over(ofComplex(tf.add), [pairs([2, 3], [2, 3]), pairs([2, 3], [3]), pairs([2, 1], [1, 3])]),
    ...over(ofComplex(tf.sub), [pairs([2, 3], [2, 3]), pairs([3], [2, 3])]),
    ...over(ofComplex(tf.mul), [pairs([2, 3], [2, 3]), pairs([2, 3], [3]), pairs([], [2])]),
    ...over(
      (a, b, c) => parts(tf.add(tf.mul(tf.complex(a, b), c), tf.sub(c, tf.complex(b, a)))),
      [[...pairs([2, 3]), floats([3])]],
    ),
    ...over(ofComplex(tf.div), [[...pairs([2, 3]), floats([3], 0.5, 2), floats([3], 0.5, 2, 5)]], {
      oracle: quotient,
    }),
    ...byParts(tf.neg, [2, 3]),
    ...byParts((x) => tf.reshape(x, [3, 2]), [2, 3]),
    ...byParts((x) => tf.expandDims(tf.squeeze(x), 1), [2, 1, 3]),
    ...byParts((x) => tf.slice(x, [0, 1], [2, 2]), [2, 3]),
    ...byParts((x) => tf.transpose(x, [1, 0]), [2, 3]),
    ...byParts((x, y) => tf.concat([x, y], 1), [2, 3], [2, 1]),
    ...byParts((x, y) => tf.stack([x, y, x]), [2, 3], [2, 3]),
    ...byParts((x) => tf.unstack(x, 1), [2, 3]),
    ...byParts((x) => tf.split(x, [1, 2], 1), [2, 3]),
    ...byParts((x) => tf.tile(x, [2, 1]), [2, 3]),
    ...byParts((x) => tf.reverse(x, 1), [2, 3]),
    ...byParts((x) => tf.gather(x, tf.tensor1d([2, 0, 2], 'int32'), 1), [2, 3]),
    ...byParts(
      (x) =>
        tf.pad(x, [
          [1, 0],
          [0, 2],
        ]),
      [2, 3],
    ),
    ...byParts((x, y) => tf.where(tf.tensor2d([1, 0, 1, 0, 0, 1], [2, 3], 'bool'), x, y), [2, 3], [2, 3]),
    ...byParts((x) => tf.sum(x, 1), [2, 3]),
    ...byParts((x) => tf.mean(x, 0, true), [2, 3]),
    ...byParts((x) => tf.broadcastTo(x, [2, 3]), [2, 1]),
    ...byParts((x) => [tf.clone(x), tf.zerosLike(x)], [2, 3]),
    ...over(
      ofComplex((x) => tf.onesLike(x)),
      [pairs([2, 3])],
      constant,
    ),
  ],
  Real: [
    ...over((a, b) => tf.real(tf.complex(a, b)), [pairs([2, 3])]),
    ...over((a, b) => [tf.cast(tf.complex(a, b), 'float32'), tf.real(tf.cast(a, 'complex64'))], [pairs([4])]),
  ],
  Imag: over((a, b) => tf.imag(tf.complex(a, b)), [pairs([2, 3])]),
  ComplexAbs: [
    ...over(ofComplex(tf.abs), [pairs([]), pairs([2, 3])]),
    ...over(ofComplex(tf.abs), [specialPair, pairs([0])], constant),
  ],
  FFT: [
    ...transforms(tf.fft),
    ...over((x) => parts(tf.spectral.rfft(x)), [[floats([3, 8])], [floats([2, 7])]], { tolerance }),
    ...over((x) => parts(tf.spectral.rfft(x, 6)), [[floats([2, 4])], [floats([2, 9])]], { tolerance }),
    ...over((x) => tf.abs(tf.signal.stft(x, 8, 3)), [[floats([20])]], { tolerance }),
    ...over((x) => parts(tf.spectral.rfft(x)), [[floats([2, 512])]], { ...constant, tolerance }),
  ],
  IFFT: [
    ...transforms(tf.ifft),
    ...over(ofComplex(tf.spectral.irfft), [pairs([2, 5]), pairs([2, 3, 4]), pairs([2, 2])], { tolerance }),
  ],
  FourierTransform: [
    [2, 9],
    [3, 2, 130],
  ].flatMap((shape) =>
    over(
      (a, b) =>
        isTracing() ? [...fourierTransform(a, b, 0.5)] : parts(tf.mul(tf.fft(tf.complex(a, b)), 0.5)),
      [pairs(shape)],
      { ...constant, tolerance },
    ),
  ),
};

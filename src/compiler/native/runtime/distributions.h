/* distributions.h: numbers of random words, with the same bits as src/compiler/distributions.ts on every machine. */
#ifndef LUTHIER_DISTRIBUTIONS_H
#define LUTHIER_DISTRIBUTIONS_H

#include <math.h>

#include "luthier.h"

/* Uses only operations that IEEE 754 defines to the last bit, each rounded separately, in the order of the
   TypeScript code: results do not depend on the vector width that the compiler chooses. Files that include this have
   the flag -ffp-contract=off. */

enum { PAIRS = 512 }; /* pairs of numbers at a time: intermediate results fit the first-level cache */

/* The natural logarithm of x * 2^shift for a positive x that is not subnormal. */
static inline double log_of(double x, int32_t shift) {
  union {
    double number;
    int64_t bits;
  } w = {.number = x};
  int32_t exponent = (int32_t)(w.bits >> 52) - 1023;
  w.bits = (w.bits & 0xfffffffffffff) | (int64_t)1023 << 52;
  const int is_large = w.number > 1.4142135623730951;
  const double mantissa = is_large ? w.number * 0.5 : w.number;
  exponent += is_large;
  const double s = (mantissa - 1) / (mantissa + 1);
  const double z = s * s;
  const double series =
      1.0 / 3 +
      z * (1.0 / 5 +
           z * (1.0 / 7 + z * (1.0 / 9 + z * (1.0 / 11 + z * (1.0 / 13 + z * (1.0 / 15 + z * (1.0 / 17 + z / 19)))))));
  return (exponent + shift) * 0.6931471805599453 + 2 * (s + s * z * series);
}

/* The natural logarithm of (word + 1/2) / 2^32. */
static inline double log_of_word(uint32_t word) { return log_of(word + 0.5, -32); }

static inline double sine_of(double x, double z) {
  return x * (1 + z * (-1.0 / 6 +
                       z * (1.0 / 120 +
                            z * (-1.0 / 5040 +
                                 z * (1.0 / 362880 +
                                      z * (-1.0 / 39916800 + z * (1.0 / 6227020800 - z / 1307674368000)))))));
}

static inline double cosine_of(double z) {
  return 1 + z * (-1.0 / 2 +
                  z * (1.0 / 24 +
                       z * (-1.0 / 720 +
                            z * (1.0 / 40320 +
                                 z * (-1.0 / 3628800 +
                                      z * (1.0 / 479001600 + z * (-1.0 / 87178291200 + z / 20922789888000)))))));
}

/* Box-Muller pairs: the radius from one word, the angle from the other. */
static inline void normal_of_words(double scale, const uint32_t *restrict even, const uint32_t *restrict odd,
                                   float *restrict firsts, float *restrict seconds) {
  for (int i = 0; i < PAIRS; i++) {
    const double radius = scale * sqrt(-2 * log_of_word(even[i]));
    const uint32_t word = odd[i];
    const uint32_t turns = ((word >> 29) + 1) >> 1;
    const double x = 2 * 3.141592653589793 / 4294967296 * (int32_t)(word - (turns << 30));
    const double z = x * x;
    const double sine = sine_of(x, z), cosine = cosine_of(z);
    const double c = radius * (turns & 1 ? sine : cosine), s = radius * (turns & 1 ? cosine : sine);
    firsts[i] = (float)((turns + 1) & 2 ? -c : c);
    seconds[i] = (float)(turns & 2 ? -s : s);
  }
}

/* The quantile under the normal distribution cut at -2 and 2. */
static inline float truncated_of_word(uint32_t word) {
  const double x = 0.9544997361036416 * 0x1p-31 * ((int32_t)(word & 0x7fffffff) + 0.5);
  const double y = x * x;
  const double above =
      1.2533141391595826 +
      y * (-3.8546323507339735 +
           y * (4.376828774689208 + y * (-2.199999143388869 + y * (0.445164728805328 + y * -0.02035635627403332))));
  const double below =
      1 + y * (-3.337350879835634 +
               y * (4.221986105826804 + y * (-2.477952213723387 + y * (0.6488071142128492 + y * -0.05539094509530405))));
  const double size = x * above / below;
  return (float)((int32_t)word < 0 ? -size : size);
}

/* The quantile under the standard Gumbel distribution. */
static inline float gumbel_of_word(uint32_t word) { return (float)-log_of(-log_of_word(word), 0); }

#endif

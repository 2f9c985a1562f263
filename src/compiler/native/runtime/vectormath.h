/* vectormath.h: element-wise functions as branch-free inlines, which compilers vectorise inside simd loops. */
#ifndef LUTHIER_VECTORMATH_H
#define LUTHIER_VECTORMATH_H

#include <stdint.h>

/* Compile with -fopenmp-simd -fno-math-errno -fno-trapping-math, never with -ffast-math: NaN and infinity count.
   Errors are below 1e-6 of the result unless a comment says otherwise, and exponentials below 2^-125 may be zero.
   Reductions of arguments are those of Cody & Waite, polynomials of the kind that Cephes has. */

#define LT_MATH static inline __attribute__((always_inline, unused))
#define LT_INFINITY __builtin_inff()
#define LT_NAN __builtin_nanf("")

LT_MATH uint32_t lt_bits(float x) {
  uint32_t u;
  __builtin_memcpy(&u, &x, 4);
  return u;
}

LT_MATH float lt_from_bits(uint32_t u) {
  float x;
  __builtin_memcpy(&x, &u, 4);
  return x;
}

LT_MATH uint64_t lt_bits64(double x) {
  uint64_t u;
  __builtin_memcpy(&u, &x, 8);
  return u;
}

LT_MATH double lt_from_bits64(uint64_t u) {
  double x;
  __builtin_memcpy(&x, &u, 8);
  return x;
}

/* ---- bf16 ----------------------------------------------------------------------------------------------------- */

LT_MATH float lt_from_bf16(uint16_t x) { return lt_from_bits((uint32_t)x << 16); }

/* To nearest, ties to even; NaN stays NaN. */
LT_MATH uint16_t lt_to_bf16(float x) {
  const uint32_t u = lt_bits(x);
  const uint32_t rounded = u + 0x7fffu + ((u >> 16) & 1u);
  return (uint16_t)((x != x ? u | 0x400000u : rounded) >> 16);
}

/* ---- Exact functions ------------------------------------------------------------------------------------------ */

LT_MATH float lt_sqrtf(float x) { return __builtin_sqrtf(x); }
LT_MATH float lt_absf(float x) { return __builtin_fabsf(x); }
LT_MATH float lt_floorf(float x) { return __builtin_floorf(x); }
LT_MATH float lt_ceilf(float x) { return __builtin_ceilf(x); }
LT_MATH float lt_roundf(float x) { return __builtin_rintf(x); } /* half to even */

/* NaN of either side wins. Two selections of one condition each: gcc makes jumps of one inside the other if they share theirs. */
LT_MATH float lt_maxf(float a, float b) {
  const float larger = a > b ? a : b;
  return a != a ? a : larger;
}
LT_MATH float lt_minf(float a, float b) {
  const float smaller = a < b ? a : b;
  return a != a ? a : smaller;
}
LT_MATH float lt_clipf(float x, float lo, float hi) {
  const float y = x < lo ? lo : x;
  return y > hi ? hi : y;
}
LT_MATH float lt_squaref(float x) { return x * x; }
LT_MATH float lt_signf(float x) { return x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x; }
LT_MATH float lt_reluf(float x) { return x <= 0.0f ? 0.0f : x; }
LT_MATH float lt_relu6f(float x) { return lt_clipf(lt_reluf(x), 0.0f, 6.0f); }
LT_MATH float lt_leakyf(float x, float alpha) { return x >= 0.0f ? x : alpha * x; }
LT_MATH float lt_stepf(float x, float alpha) { return x > 0.0f ? 1.0f : x <= 0.0f ? alpha : x; }

/* ---- Integers, modulo 2^32 ------------------------------------------------------------------------------------ */

LT_MATH int32_t lt_maxi(int32_t a, int32_t b) { return a > b ? a : b; }
LT_MATH int32_t lt_mini(int32_t a, int32_t b) { return a < b ? a : b; }
LT_MATH int32_t lt_clipi(int32_t x, int32_t lo, int32_t hi) { return lt_mini(lt_maxi(x, lo), hi); }
LT_MATH int32_t lt_absi(int32_t x) { return (int32_t)(x < 0 ? 0u - (uint32_t)x : (uint32_t)x); }
LT_MATH int32_t lt_squarei(int32_t x) { return (int32_t)((uint32_t)x * (uint32_t)x); }

/* Truncated and taken modulo 2^32, as typed arrays do; 0 for NaN and infinities. Every step is exact. */
LT_MATH int32_t lt_to_int(float x) {
  const float whole = __builtin_truncf(x);
  const float rest = whole - __builtin_truncf(whole * 0x1p-32f) * 0x1p32f;
  const float low = rest < -2147483648.0f ? rest + 0x1p32f : rest;
  const float inside = low >= 2147483648.0f ? low - 0x1p32f : low;
  return (int32_t)(inside == inside ? inside : 0.0f);
}

/* The floor of the quotient, 0 where b is 0; doubles hold it exactly. -2^31 / -1 wraps. */
LT_MATH int32_t lt_floordiv(int32_t a, int32_t b) {
  const double quotient = __builtin_floor((double)a / (double)(b == 0 ? 1 : b));
  const int32_t result = (int32_t)(quotient < 2147483648.0 ? quotient : -2147483648.0);
  return b == 0 ? 0 : result;
}

/* The remainder with the divisor's sign, 0 where b is 0. */
LT_MATH int32_t lt_floormod(int32_t a, int32_t b) {
  const int32_t rest = (int32_t)((uint32_t)a - (uint32_t)lt_floordiv(a, b) * (uint32_t)b);
  return b == 0 ? 0 : rest;
}

/* a ** b in doubles, truncated and taken modulo 2^32; 0 where that is infinite. */
LT_MATH int32_t lt_ipow(int32_t a, int32_t b) {
  double result = 1.0, base = (double)a;
  _Pragma("GCC unroll 31") for (int bit = 0; bit < 31; bit++) {
    result = (b >> bit) & 1 ? result * base : result;
    base *= base;
  }
  const double inverse = a == 1 ? 1.0 : a == -1 ? (b & 1 ? -1.0 : 1.0) : 0.0;
  result = b < 0 ? inverse : result;
  result = __builtin_fabs(result) < 1e300 ? result : 0.0;
  const double low = result - __builtin_floor(result * 0x1p-32) * 0x1p32; /* in [0, 2^32) */
  return (int32_t)(low >= 2147483648.0 ? low - 4294967296.0 : low);
}

/* ---- Random numbers (ops/random.ts) --------------------------------------------------------------------------- */

LT_MATH uint32_t lt_mix(uint32_t x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

LT_MATH float lt_uniformf(uint32_t position, uint32_t k0, uint32_t k1) {
  return (float)(int32_t)(lt_mix(lt_mix(position + k0) ^ k1) >> 8) * 0x1p-24f;
}
LT_MATH uint32_t lt_fold_first(uint32_t k0, uint32_t d0) { return lt_mix(k0 ^ d0); }
LT_MATH uint32_t lt_fold_second(uint32_t k0, uint32_t k1, uint32_t d0, uint32_t d1) {
  return lt_mix(k1 + lt_mix(k0 ^ d0) + d1);
}

/* ---- Exponentials and logarithms ------------------------------------------------------------------------------ */

/* x to the nearest integer as a float, and that integer modulo 2^32; |x| < 2^22. NaN gives NaN and any integer. */
LT_MATH float lt_nearest(float x, uint32_t *integer) {
  const float shifted = x + 12582912.0f;
  *integer = lt_bits(shifted) - 0x4b400000u;
  return shifted - 12582912.0f;
}

/* 2^n for n in [-126, 127]; any bits elsewhere. */
LT_MATH float lt_power2(uint32_t n) { return lt_from_bits((n + 127u) << 23); }

/* (e^r - 1 - r) / r^2 for |r| <= ln(2) / 2. */
LT_MATH float lt_exp_tail(float r) {
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  return p * r + 5.0000001201e-1f;
}

/* e^x for x in [-86.98, 88.72283]; any number elsewhere, but NaN for NaN. */
LT_MATH float lt_exp_inside(float x) {
  uint32_t n;
  const float whole = lt_nearest(x * 1.44269504f, &n);
  const float r = (x - whole * 0.693359375f) + whole * 2.12194440e-4f;
  const float s = r + r;
  const float twice = lt_exp_tail(r) * (s * r) + (s + 2.0f);
  return twice * lt_power2(n - 1u); /* 2^128 is no float */
}

/* 0 below -86.98, where results come close to subnormal ones. Bounds are looked at last: a compiler that sees them first
   computes their results too. */
LT_MATH float lt_expf(float x) {
  const float inside = lt_exp_inside(x);
  const float low = x < -86.98f ? 0.0f : inside;
  return x > 88.72283f ? LT_INFINITY : low;
}

/* e^x - 1 for x in [-86, 88.72283]; any number elsewhere, but NaN for NaN. */
LT_MATH float lt_expm1_inside(float x) {
  uint32_t n;
  const float whole = lt_nearest(x * 1.44269504f, &n);
  const float r = (x - whole * 0.693359375f) + whole * 2.12194440e-4f;
  const float p = lt_exp_tail(r) * (r * r) + r;
  const float half = lt_power2(n - 1u); /* of 2^n */
  return (half * p + (half - 0.5f)) * 2.0f;
}

LT_MATH float lt_expm1f(float x) {
  const float inside = lt_expm1_inside(x);
  const float low = x < -30.0f ? -1.0f : inside;
  const float high = x > 88.72283f ? LT_INFINITY : low;
  return lt_absf(x) < 0x1p-25f ? x : high;
}

/* The logarithm of a positive normal number, from its bits: exponent and mantissa in [sqrt(1/2), sqrt(2)). */
LT_MATH float lt_log_normal(float x, float exponent) {
  const uint32_t u = lt_bits(x) - 0x3f3504f3u;
  const float e = exponent + (float)((int32_t)u >> 23);
  const float f = lt_from_bits((u & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
  float p = 7.0376836292e-2f;
  p = p * f - 1.1514610310e-1f;
  p = p * f + 1.1676998740e-1f;
  p = p * f - 1.2420140846e-1f;
  p = p * f + 1.4249322787e-1f;
  p = p * f - 1.6668057665e-1f;
  p = p * f + 2.0000714765e-1f;
  p = p * f - 2.4999993993e-1f;
  p = p * f + 3.3333331174e-1f;
  const float square = f * f;
  const float small = p * (square * f) + e * -2.12194440e-4f - 0.5f * square;
  return (f + small) + e * 0.693359375f;
}

LT_MATH float lt_logf(float x) {
  const int subnormal = x < 0x1p-126f;
  const float result = lt_log_normal(subnormal ? x * 0x1p23f : x, subnormal ? -23.0f : 0.0f);
  const float finite = x < LT_INFINITY ? result : x; /* infinity and NaN */
  const float positive = x == 0.0f ? -LT_INFINITY : finite;
  return x < 0.0f ? LT_NAN : positive;
}

LT_MATH float lt_log1pf(float x) {
  const float sum = 1.0f + x;
  const float lost = x - (sum - 1.0f);
  const float result = lt_log_normal(sum, 0.0f) + lost / sum;
  const float finite = x < LT_INFINITY ? result : x;
  const float inside = x == -1.0f ? -LT_INFINITY : x < -1.0f ? LT_NAN : finite;
  return lt_absf(x) < 0x1p-24f ? x : inside;
}

/* ---- What networks call --------------------------------------------------------------------------------------- */

LT_MATH float lt_tanhf(float x) {
  const float t = lt_absf(x), e = lt_expm1_inside(-2.0f * t);
  const float inside = t < 0x1p-25f ? t : -e / (2.0f + e);
  return __builtin_copysignf(t > 10.0f ? 1.0f : inside, x);
}

LT_MATH float lt_sigmoidf(float x) { return 1.0f / (1.0f + lt_expf(-x)); }

/* max(x, 0) + log1p(e^-|x|), whose argument is in [0, 1]. */
LT_MATH float lt_softplusf(float x) {
  const float e = lt_expf(-lt_absf(x)), sum = 1.0f + e;
  const float logarithm = lt_log_normal(sum, 0.0f) + (e - (sum - 1.0f)) / sum;
  return lt_maxf(x, 0.0f) + (e < 0x1p-24f ? e : logarithm);
}

LT_MATH float lt_eluf(float x) { return x >= 0.0f ? x : lt_expm1f(x); }
LT_MATH float lt_elugradf(float dy, float y) { return y >= 0.0f ? dy : dy * (y + 1.0f); }

/* x p(x^2) / q(x^2), minimax for the relative error, 2e-8 before rounding; from 3.925 on it is 1. */
LT_MATH float lt_erff(float x) {
  const float t = lt_absf(x), u = t > 3.925f ? 3.925f : t, s = u * u;
  float p = 2.045995023e-6f;
  p = p * s + 2.848397659e-4f;
  p = p * s + 3.772507694e-3f;
  p = p * s + 5.276915915e-2f;
  p = p * s + 1.905931374e-1f;
  p = p * s + 1.128379146f;
  float q = 3.804724324e-5f;
  q = q * s + 1.163842223e-3f;
  q = q * s + 1.498311582e-2f;
  q = q * s + 1.141824133e-1f;
  q = q * s + 5.022415018e-1f;
  q = q * s + 1.0f;
  const float y = u * p / q;
  return __builtin_copysignf(y > 1.0f ? 1.0f : y, x);
}

/* The derivative of x Phi(x), Phi(x) + x phi(x), to 3e-7 absolute: half of it is odd, x p(x^2) / q(x^2), minimax, and 1/2
   from 6.3 on. A third of the work of an error function and an exponential. */
LT_MATH float lt_gelu_slopef(float x) {
  const float s = x * x;
  float p = 1.9790580e-08f;
  p = p * s + 1.2413323e-06f;
  p = p * s + 3.4213554e-05f;
  p = p * s + 3.1954551e-04f;
  p = p * s + 1.3611553e-02f;
  p = p * s - 1.5926803e-02f;
  p = p * s + 7.9788452e-01f;
  float q = 1.4213537e-09f;
  q = q * s + 4.3023576e-07f;
  q = q * s + 1.1858908e-05f;
  q = q * s + 2.7511597e-04f;
  q = q * s + 4.3059736e-03f;
  q = q * s + 4.6518706e-02f;
  q = q * s + 3.1337133e-01f;
  q = q * s + 1.0f;
  const float inside = x * p / q; /* the bound is looked at last, as in lt_expf */
  return 0.5f + (lt_absf(x) > 6.3f ? __builtin_copysignf(0.5f, x) : inside);
}

/* x - quadrant * pi / 2, to 2e-8 whatever the size of x; the quadrant, modulo 4. Of 2 / pi, only those bits matter whose
   products with x are neither multiples of 4 nor too small to tell (Payne & Hanek): for 26 exponents of x, the same 82. They
   are selected, not looked up, so that the common angle pays little. The product with the first 29 is exact. */
LT_MATH float lt_quadrant(float x, int32_t *quadrant) {
  const float size = lt_absf(x);
  double high = 0x1.45f306dp-1, low = 0x1.9391054a7f09dp-30;
  high = size >= 0x1p51f ? 0x1.727220ap-27 : high, low = size >= 0x1p51f ? 0x1.29fc2757d1f53p-56 : low;
  high = size >= 0x1p77f ? 0x1.4a7f09cp-54 : high, low = size >= 0x1p77f ? 0x1.5f47d4d377037p-82 : low;
  high = size >= 0x1p103f ? 0x1.abe8fa9p-79 : high, low = size >= 0x1p103f ? 0x1.4ddc0db629599p-108 : low;
  const double to_whole = 6755399441055744.0, first = (double)x * high; /* below 2^51 */
  const double turned = first + to_whole;
  const double sum = (first - (turned - to_whole)) + (double)x * low; /* below 2^23; NaN for infinities */
  const double shifted = sum + to_whole;
  *quadrant = (int32_t)((uint32_t)lt_bits64(turned) + (uint32_t)lt_bits64(shifted));
  return (float)((sum - (shifted - to_whole)) * 1.57079632679489661923);
}

/* sin(rest + quadrant * pi / 2). */
LT_MATH float lt_wave(float rest, int32_t quadrant) {
  const float s = rest * rest;
  float sine = -1.9515295891e-4f;
  sine = sine * s + 8.3321608736e-3f;
  sine = sine * s - 1.6666654611e-1f;
  sine = rest * (sine * s + 1.0f); /* -0 stays */
  float cosine = 2.443315711809948e-5f;
  cosine = cosine * s - 1.388731625493765e-3f;
  cosine = cosine * s + 4.166664568298827e-2f;
  cosine = cosine * (s * s) - 0.5f * s + 1.0f;
  const float value = quadrant & 1 ? cosine : sine;
  return quadrant & 2 ? -value : value;
}

/* Absolute errors. */
LT_MATH float lt_sinf(float x) {
  int32_t quadrant;
  const float rest = lt_quadrant(x, &quadrant);
  return lt_wave(rest, quadrant);
}

LT_MATH float lt_cosf(float x) {
  int32_t quadrant;
  const float rest = lt_quadrant(x, &quadrant);
  return lt_wave(rest, quadrant + 1);
}

/* ---- Powers and remainders, in doubles ------------------------------------------------------------------------ */

/* log2 of a positive float to 1e-11; infinite for 0 and infinity. */
LT_MATH double lt_log2_double(float x) {
  const uint64_t u = lt_bits64((double)x) - 0x3fe6a09e667f3bcdull;
  const double e = (double)((int32_t)(uint32_t)(u >> 32) >> 20);
  const double m = lt_from_bits64((u & 0xfffffffffffffull) + 0x3fe6a09e667f3bcdull);
  const double s = (m - 1.0) / (m + 1.0), z = s * s;
  double p = 1.0 / 15.0;
  p = p * z + 1.0 / 13.0;
  p = p * z + 1.0 / 11.0;
  p = p * z + 1.0 / 9.0;
  p = p * z + 1.0 / 7.0;
  p = p * z + 1.0 / 5.0;
  p = p * z + 1.0 / 3.0;
  const double result = e + (p * z * s + s) * 2.88539008177792681472;
  const double positive = x == 0.0f ? -__builtin_inf() : result;
  return x < LT_INFINITY ? positive : (double)x;
}

/* 2^x for |x| <= 1000; any double elsewhere but NaN, which stays. */
LT_MATH double lt_exp2_double(double x) {
  const double shifted = x + 6755399441055744.0;
  const double r = (x - (shifted - 6755399441055744.0)) * 0.69314718055994530942;
  double p = 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  return p * lt_from_bits64((lt_bits64(shifted) + 1023) << 52);
}

/* The special cases are those of IEEE 754's pow. */
LT_MATH float lt_powf(float a, float b) {
  const double scaled = (double)b * lt_log2_double(lt_absf(a));
  const double low = scaled < -200.0 ? -200.0 : scaled;
  const float size = (float)lt_exp2_double(low > 200.0 ? 200.0 : low);
  const int whole = lt_floorf(b) == b;
  const int odd = whole & (lt_floorf(b * 0.5f) != b * 0.5f);
  const float sign = (lt_bits(a) >> 31) & odd ? -size : size;
  const float real = (a < 0.0f) & (a > -LT_INFINITY) & !whole & (b == b) ? LT_NAN : sign;
  const float one = (a == 1.0f) | (b == 0.0f) | ((a == -1.0f) & (lt_absf(b) == LT_INFINITY)) ? 1.0f : real;
  return one;
}

/* The remainder with the divisor's sign, exact while |a / b| < 2^29; NaN where a is infinite or b is 0, b where that is
   infinite and of another sign than a. */
LT_MATH float lt_floormodf(float a, float b) {
  const double x = (double)a, y = (double)b;
  double rest = x - __builtin_floor(x / y) * y;
  rest = (rest < 0.0) != (y < 0.0) && rest != 0.0 ? rest + y : rest;
  const float finite = (float)rest;
  const int same = (a == 0.0f) | ((a < 0.0f) == (b < 0.0f));
  const float infinite = lt_absf(a) < LT_INFINITY ? (same ? a : b) : LT_NAN;
  return lt_absf(b) == LT_INFINITY ? infinite : finite;
}

/* ---- Reductions of simd loops: #pragma omp simd reduction(lt_maximum : s) ------------------------------------- */

#pragma omp declare reduction(lt_maximum : float : omp_out = lt_maxf(omp_out, omp_in)) initializer(omp_priv = -LT_INFINITY)
#pragma omp declare reduction(lt_minimum : float : omp_out = lt_minf(omp_out, omp_in)) initializer(omp_priv = LT_INFINITY)

#endif

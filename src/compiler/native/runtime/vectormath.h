/* vectormath.h: elementwise functions as branch-free inlines, which compilers vectorise in simd loops. */
#ifndef LUTHIER_VECTORMATH_H
#define LUTHIER_VECTORMATH_H

#include <stdint.h>

/* Compile with -fopenmp-simd -fno-math-errno -fno-trapping-math, never with -ffast-math: NaN and infinity count.
   Relative errors are below 1e-6 unless a comment says otherwise, and exponentials below 2^-125 may be zero.
   Argument reductions follow Cody & Waite, polynomials the style of Cephes. */

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

/* ---- bf16 ----------------------------------------------------------------------------------------------------- */

LT_MATH float lt_from_bf16(uint16_t x) { return lt_from_bits((uint32_t)x << 16); }

/* To nearest, ties to even; NaN stays NaN. */
LT_MATH uint16_t lt_to_bf16(float x) {
  const uint32_t u = lt_bits(x);
  const uint32_t rounded = u + 0x7fffu + ((u >> 16) & 1u);
  return (uint16_t)((x != x ? u | 0x400000u : rounded) >> 16);
}

/* ---- f16 (IEEE 754 half precision), i8, u8 -------------------------------------------------------------------- */

/* Subnormal halves are multiples of 2^-24, the last bit of floats from 2^-14 on: exact without subnormal floats. */
LT_MATH float lt_from_f16(uint16_t x) {
  const uint32_t magnitude = (uint32_t)(x & 0x7fffu) << 13;
  const uint32_t small = lt_bits(lt_from_bits(magnitude + 0x38800000u) - 0x1p-14f);
  const uint32_t finite = magnitude < 0x00800000u ? small : magnitude + 0x38000000u;
  const uint32_t any = magnitude >= 0x0f800000u ? magnitude + 0x70000000u : finite;
  return lt_from_bits(any | (uint32_t)(x & 0x8000u) << 16);
}

/* To nearest, ties to even; NaN stays NaN. 0.5f has 2^-24 as its last bit, so that the sum rounds small floats. */
LT_MATH uint16_t lt_to_f16(float x) {
  const uint32_t u = lt_bits(x), magnitude = u & 0x7fffffffu;
  const uint32_t small = lt_bits(lt_from_bits(magnitude) + 0.5f) - 0x3f000000u;
  const uint32_t normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  const uint32_t finite = magnitude < 0x38800000u ? small : normal;
  const uint32_t number = magnitude >= 0x477ff000u ? 0x7c00u : finite;
  const uint32_t any = magnitude > 0x7f800000u ? 0x7e00u | ((magnitude >> 13) & 0x3ffu) : number;
  return (uint16_t)(any | ((u >> 16) & 0x8000u));
}

/* The nearest integer that the type has. */
LT_MATH int8_t lt_to_i8(int32_t x) {
  const int32_t least = x < -128 ? -128 : x;
  return (int8_t)(least > 127 ? 127 : least);
}
LT_MATH uint8_t lt_to_u8(int32_t x) {
  const int32_t least = x < 0 ? 0 : x;
  return (uint8_t)(least > 255 ? 255 : least);
}

/* ---- Exact functions ------------------------------------------------------------------------------------------ */

LT_MATH float lt_sqrtf(float x) { return __builtin_sqrtf(x); }
LT_MATH float lt_absf(float x) { return __builtin_fabsf(x); }
LT_MATH float lt_floorf(float x) { return __builtin_floorf(x); }
LT_MATH float lt_ceilf(float x) { return __builtin_ceilf(x); }
LT_MATH float lt_roundf(float x) { return __builtin_rintf(x); } /* half to even */

/* NaN on either side wins. Two selects with one condition each: gcc turns nested selects with a shared condition
   into jumps. */
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
/* The same of numbers of which all or none are NaN: one instruction. */
LT_MATH float lt_above(float a, float b) { return a > b ? a : b; }
LT_MATH float lt_below(float a, float b) { return a < b ? a : b; }
/* The power of two below |x|: 0 of a subnormal number, infinity of NaN. */
LT_MATH float lt_power_of_twof(float x) { return lt_from_bits(lt_bits(x) & 0x7f800000u); }
LT_MATH int32_t lt_nearest_integer(float x, float least, float most) {
  return (int32_t)lt_roundf(lt_below(lt_above(x, least), most)); /* of NaN the least */
}
LT_MATH float lt_squaref(float x) { return x * x; }
/* a b + c, rounded once where the CPU does so: compilers themselves choose which of two products they fuse with a sum. */
LT_MATH float lt_fma(float a, float b, float c) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA) || defined(__FP_FAST_FMAF)
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}
LT_MATH float lt_signf(float x) { return x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x; }
LT_MATH float lt_reluf(float x) { return x <= 0.0f ? 0.0f : x; }
LT_MATH float lt_relu6f(float x) { return lt_clipf(lt_reluf(x), 0.0f, 6.0f); }
LT_MATH float lt_leakyf(float x, float alpha) { return x >= 0.0f ? x : alpha * x; }
LT_MATH float lt_stepf(float x, float alpha) { return x > 0.0f ? 1.0f : x <= 0.0f ? alpha : x; }

/* ---- Exponentials and logarithms ------------------------------------------------------------------------------ */

/* x to the nearest integer as a float, and that integer modulo 2^32; |x| < 2^22. NaN gives NaN and any integer. */
LT_MATH float lt_nearest(float x, uint32_t *integer) {
  const float shifted = x + 12582912.0f;
  *integer = lt_bits(shifted) - 0x4b400000u;
  return shifted - 12582912.0f;
}

/* 2^n for n in [-126, 127]; arbitrary bits elsewhere. */
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

/* e^x for x in [-86.98, 88.72283]; NaN for NaN; any number elsewhere. */
LT_MATH float lt_exp_inside(float x) {
  uint32_t n;
  const float whole = lt_nearest(x * 1.44269504f, &n);
  const float r = (x - whole * 0.693359375f) + whole * 2.12194440e-4f;
  const float s = r + r;
  const float twice = lt_exp_tail(r) * (s * r) + (s + 2.0f);
  return twice * lt_power2(n - 1u); /* 2^128 is no float */
}

/* 0 below -86.98, where results approach subnormal numbers. Bounds are applied last: a compiler that sees them first
   would compute their results too. */
LT_MATH float lt_expf(float x) {
  const float inside = lt_exp_inside(x);
  const float low = x < -86.98f ? 0.0f : inside;
  return x > 88.72283f ? LT_INFINITY : low;
}

/* e^x - 1 for x in [-86, 88.72283]; NaN for NaN; any number elsewhere. */
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

/* ---- Activations -------------------------------------------------------------------------------------------- */

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

/* x p(x^2) / q(x^2), minimax for the relative error, 2e-8 before rounding; from 3.925 on it is 1, where the quotient is
   within a rounding of it: to ask for that again would turn both selects into jumps. */
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
  return __builtin_copysignf(y > 0.9999999f ? 1.0f : y, x);
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
  const float inside = x * p / q; /* the bound is applied last, as in lt_expf */
  return 0.5f + (lt_absf(x) > 6.3f ? __builtin_copysignf(0.5f, x) : inside);
}

#include "integermath.h"
#include "doublemath.h"
#include "inversemath.h"

/* ---- Reductions of simd loops: #pragma omp simd reduction(lt_maximum : s) ------------------------------------- */

#pragma omp declare reduction(lt_maximum : float : omp_out = lt_maxf(omp_out, omp_in)) initializer(omp_priv = -LT_INFINITY)
#pragma omp declare reduction(lt_minimum : float : omp_out = lt_minf(omp_out, omp_in)) initializer(omp_priv = LT_INFINITY)

#endif

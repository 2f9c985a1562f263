/* doublemath.h: float functions computed in doubles: sines, powers, remainders; a part of vectormath.h. */
#ifndef LUTHIER_DOUBLEMATH_H
#define LUTHIER_DOUBLEMATH_H

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

/* ---- Sine and cosine ----------------------------------------------------------------------------------------- */

/* x - quadrant * pi / 2, to 2e-8 for any x, and the quadrant modulo 4. Of 2 / pi, only those bits matter whose
   products with x are neither multiples of 4 nor negligible (Payne & Hanek): the same 82 for 26 exponents of x. They
   are selected, not looked up, so that common angles stay cheap. The product with the first 29 is exact. */
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
  sine = rest * (sine * s + 1.0f); /* keeps -0 */
  float cosine = 2.443315711809948e-5f;
  cosine = cosine * s - 1.388731625493765e-3f;
  cosine = cosine * s + 4.166664568298827e-2f;
  cosine = cosine * (s * s) - 0.5f * s + 1.0f;
  const float value = quadrant & 1 ? cosine : sine;
  return quadrant & 2 ? -value : value;
}

/* Errors are absolute. */
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

/* 2^x for |x| <= 1000; NaN for NaN; any double elsewhere. */
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
  const float real = ((a < 0.0f) & (a > -LT_INFINITY) & !whole & (b == b)) ? LT_NAN : sign;
  const float one = ((a == 1.0f) | (b == 0.0f) | ((a == -1.0f) & (lt_absf(b) == LT_INFINITY))) ? 1.0f : real;
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

#endif

/* integermath.h: integers modulo 2^32, and random bits derived from them; a part of vectormath.h. */
#ifndef LUTHIER_INTEGERMATH_H
#define LUTHIER_INTEGERMATH_H

/* ---- Integers, modulo 2^32 ------------------------------------------------------------------------------------ */

LT_MATH int32_t lt_maxi(int32_t a, int32_t b) { return a > b ? a : b; }
LT_MATH int32_t lt_mini(int32_t a, int32_t b) { return a < b ? a : b; }
LT_MATH int32_t lt_clipi(int32_t x, int32_t lo, int32_t hi) { return lt_mini(lt_maxi(x, lo), hi); }
LT_MATH int32_t lt_absi(int32_t x) { return (int32_t)(x < 0 ? 0u - (uint32_t)x : (uint32_t)x); }
LT_MATH int32_t lt_squarei(int32_t x) { return (int32_t)((uint32_t)x * (uint32_t)x); }

/* Truncated modulo 2^32, as typed arrays do; 0 for NaN and infinities. Every step is exact. */
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

/* a ** b in doubles, truncated modulo 2^32; 0 where that is infinite. */
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

/* ---- Random numbers (ops/randomOps.ts) ------------------------------------------------------------------------ */

LT_MATH uint32_t lt_mix(uint32_t x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

LT_MATH uint32_t lt_random_word(uint32_t position, uint32_t k0, uint32_t k1) { return lt_mix(lt_mix(position + k0) ^ k1); }

LT_MATH float lt_uniformf(uint32_t position, uint32_t k0, uint32_t k1) {
  return (float)(int32_t)(lt_random_word(position, k0, k1) >> 8) * 0x1p-24f;
}

/* From `low` on, `range` integers; of two words, 63 bits are taken modulo the range. */
LT_MATH int32_t lt_random_int(uint32_t position, uint32_t k0, uint32_t k1, uint32_t low, uint64_t range) {
  const uint64_t high = lt_random_word(2 * position, k0, k1) >> 1;
  return (int32_t)(low + (uint32_t)((high << 32 | lt_random_word(2 * position + 1, k0, k1)) % range));
}
LT_MATH uint32_t lt_fold_first(uint32_t k0, uint32_t d0) { return lt_mix(k0 ^ d0); }
LT_MATH uint32_t lt_fold_second(uint32_t k0, uint32_t k1, uint32_t d0, uint32_t d1) {
  return lt_mix(k1 + lt_mix(k0 ^ d0) + d1);
}

#endif

/* inversemath.h: the tangent, inverse trigonometric, hyperbolic and inverse hyperbolic functions; a part of
   vectormath.h. */
#ifndef LUTHIER_INVERSEMATH_H
#define LUTHIER_INVERSEMATH_H

#define LT_HALF_PI 1.57079632679489661923f
#define LT_LN_2 0.69314718055994530942f

/* ---- Tangent and inverse trigonometric functions --------------------------------------------------------------- */

/* Errors are relative for |x| < 1e5; beyond, those of the reduced angle are absolute. */
LT_MATH float lt_tanf(float x) {
  int32_t quadrant;
  const float r = lt_quadrant(x, &quadrant), s = r * r;
  float p = 9.38540185543e-3f;
  p = p * s + 3.11992232697e-3f;
  p = p * s + 2.44301354525e-2f;
  p = p * s + 5.34112807005e-2f;
  p = p * s + 1.33387994085e-1f;
  p = p * s + 3.33331568548e-1f;
  const float tangent = p * (s * r) + r;
  return quadrant & 1 ? -1.0f / tangent : tangent;
}

/* By atan(t) = pi/4 + atan((t - 1) / (t + 1)) and pi/2 - atan(1 / t), of at most tan(pi/8). */
LT_MATH float lt_atanf(float x) {
  const float t = lt_absf(x);
  const float middle = t > 0.414213562f ? t - 1.0f : t, numerator = t > 2.41421356f ? -1.0f : middle;
  const float sum = t > 0.414213562f ? t + 1.0f : 1.0f, denominator = t > 2.41421356f ? t : sum;
  const float quarter = t > 0.414213562f ? 0.5f * LT_HALF_PI : 0.0f, base = t > 2.41421356f ? LT_HALF_PI : quarter;
  const float u = numerator / denominator, s = u * u;
  float p = 8.05374449538e-2f;
  p = p * s - 1.38776856032e-1f;
  p = p * s + 1.99777106478e-1f;
  p = p * s - 3.33329491539e-1f;
  return __builtin_copysignf(base + (p * (s * u) + u), x);
}

/* asin(|x|) up to 1/2; above, asin(sqrt((1 - |x|) / 2)), half of acos(|x|). */
LT_MATH float lt_asin_part(float t) {
  const float s = t > 0.5f ? 0.5f * (1.0f - t) : t * t;
  const float u = t > 0.5f ? lt_sqrtf(s) : t;
  float p = 4.2163199048e-2f;
  p = p * s + 2.4181311049e-2f;
  p = p * s + 4.5470025998e-2f;
  p = p * s + 7.4953002686e-2f;
  p = p * s + 1.6666752422e-1f;
  return p * (s * u) + u;
}

LT_MATH float lt_asinf(float x) {
  const float t = lt_absf(x), part = lt_asin_part(t);
  return __builtin_copysignf(t > 0.5f ? LT_HALF_PI - 2.0f * part : part, x);
}

LT_MATH float lt_acosf(float x) {
  const float t = lt_absf(x), part = lt_asin_part(t);
  const float outer = x < 0.0f ? 2.0f * LT_HALF_PI - 2.0f * part : 2.0f * part;
  return t > 0.5f ? outer : LT_HALF_PI - __builtin_copysignf(part, x);
}

/* ---- Hyperbolic functions -------------------------------------------------------------------------------------- */

/* e^t / 2 for t in [0, 89.415986], where it is finite though e^t may not be. */
LT_MATH float lt_half_exp(float t) {
  uint32_t n;
  const float whole = lt_nearest(t * 1.44269504f, &n);
  const float r = (t - whole * 0.693359375f) + whole * 2.12194440e-4f;
  const float s = r + r;
  return (lt_exp_tail(r) * (s * r) + (s + 2.0f)) * lt_power2(n - 2u);
}

LT_MATH float lt_sinhf(float x) {
  const float t = lt_absf(x), e = lt_expm1_inside(t);
  const float small = 0.5f * (e + e / (e + 1.0f));
  const float inside = t > 9.0f ? lt_half_exp(t) : small;
  const float nearly = t < 0x1p-12f ? t : inside;
  return __builtin_copysignf(t > 89.415986f ? LT_INFINITY : nearly, x);
}

LT_MATH float lt_coshf(float x) {
  const float t = lt_absf(x), half = lt_half_exp(t);
  const float inside = half + 0.25f / half;
  return t > 89.415986f ? LT_INFINITY : inside;
}

LT_MATH float lt_asinhf(float x) {
  const float t = lt_absf(x), s = t * t;
  const float inside = lt_log1pf(t + s / (1.0f + lt_sqrtf(1.0f + s)));
  return __builtin_copysignf(t > 4096.0f ? lt_logf(t) + LT_LN_2 : inside, x);
}

LT_MATH float lt_acoshf(float x) {
  const float t = x - 1.0f;
  const float inside = lt_log1pf(t + lt_sqrtf(t + t + t * t));
  const float result = x > 4096.0f ? lt_logf(x) + LT_LN_2 : inside;
  return x < 1.0f ? LT_NAN : result;
}

LT_MATH float lt_atanhf(float x) {
  const float t = lt_absf(x);
  return __builtin_copysignf(0.5f * lt_log1pf((t + t) / (1.0f - t)), x);
}

#endif

/* gemmVectormath.c: vectormath.h against the C library in doubles; run by vectormath.test.ts, which reads the output:
   one line a function, "ok" or what was wrong first. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "luthier.h"

enum { COUNT = 1 << 16 };
static float in[COUNT], other[COUNT], out[COUNT];

static int failures, finished;
static char first[300];

static void report(const char *name) {
  if (failures)
    printf("%s: %d wrong, first %s\n", name, failures, first);
  else
    printf("%s: ok\n", name);
  finished += !failures;
  failures = 0;
}

static int right(float got, double expected, double relative, double absolute) {
  if (isnan(expected)) return isnan(got);
  const float rounded = (float)expected;
  if (isinf(rounded) || isinf(got)) return got == rounded || (fabs(expected) > 3.4028e38 && fabsf(got) > 3.4028e38f);
  if (expected == 0) return got == 0 && !signbit(got) == !signbit(expected);
  return fabs(got - expected) <= relative * fabs(expected) + absolute;
}

static void expect(float got, double expected, float x, float y, double relative, double absolute) {
  if (!right(got, expected, relative, absolute) && !failures++)
    snprintf(first, sizeof first, "at (%.9g, %.9g): %.9g instead of %.9g", x, y, got, expected);
}

static const float special[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1.0f, -1.0f, 0.5f, -0.5f, 2.0f, 1e-45f, -1e-45f,
                                1e-39f, -1e-39f, 0x1p-126f, -0x1p-126f, 3.4028235e38f, -3.4028235e38f, 88.72283f, 88.7229f,
                                -87.33655f, -103.97f, -103.98f, 1e-8f, -1e-8f, 1e5f, -1e5f, 3.0f, -3.0f, 0x1p24f, -0x1p25f};
enum { SPECIALS = sizeof special / sizeof *special };

/* Even bit patterns of all floats, where lo > hi; else even steps from lo to hi. */
static void fill(float *values, double lo, double hi) {
  for (int i = 0; i < COUNT; i++)
    values[i] = lo > hi ? lt_from_bits((uint32_t)i * 65521u) : (float)(lo + (hi - lo) * i / (COUNT - 1));
  if (lo > hi) memcpy(values, special, sizeof special);
}

#define EACH(...) _Pragma("omp simd") for (int i = 0; i < COUNT; i++) __VA_ARGS__

/* name, expression of x for us, of double x for the library, range of even steps, tolerances */
#define ONE(name, ours, theirs, lo, hi, relative, absolute)                                                            \
  static __attribute__((noinline)) void run_##name(void) { EACH({ const float x = in[i]; out[i] = ours; }) }           \
  static void test_##name(void) {                                                                                      \
    for (int range = 0; range < 2; range++) {                                                                          \
      fill(in, range ? lo : 1, range ? hi : 0);                                                                        \
      run_##name();                                                                                                    \
      for (int i = 0; i < COUNT; i++) {                                                                                \
        const double x = in[i];                                                                                        \
        expect(out[i], theirs, in[i], 0, relative, absolute);                                                          \
      }                                                                                                                \
    }                                                                                                                  \
    report(#name);                                                                                                     \
  }

static double rounded(double x) { return nearbyint(x); }
static double bf16Of(float x) {
  if (isnan(x)) return NAN;
  const double size = fabs((double)x), unit = size < 0x1p-126 ? 0x1p-133 : exp2(floor(log2(size)) - 7);
  const double result = copysign(nearbyint(size / unit) * unit, x);
  return isinf(x) ? x : fabs(result) >= 0x1p128 ? copysign(INFINITY, x) : result;
}

/* Of x Phi(x). */
static double slope(double x) {
  return erfc(-x * 0.70710678118654752440) / 2 + (isinf(x) ? 0 : x * exp(-x * x / 2) * 0.39894228040143267794);
}

ONE(exp, lt_expf(x), exp(x), -105, 90, 1e-6, 0x1p-125)
ONE(log, lt_logf(x), x < 0 ? NAN : log(x), 0, 8, 1e-6, 0)
ONE(log1p, lt_log1pf(x), x < -1 ? NAN : log1p(x), -1, 4, 1e-6, 0)
ONE(expm1, lt_expm1f(x), expm1(x), -30, 90, 1e-6, 0)
ONE(tanh, lt_tanhf(x), tanh(x), -10, 10, 1e-6, 0)
ONE(tan, lt_tanf(x), fabs(x) < 1e5 ? tan(x) : isfinite(x) ? out[i] : NAN, -1e5, 1e5, 1e-6, 0)
ONE(asin, lt_asinf(x), asin(x), -1, 1, 1e-6, 0)
ONE(acos, lt_acosf(x), acos(x), -1, 1, 1e-6, 0)
ONE(atan, lt_atanf(x), atan(x), -9, 9, 1e-6, 0)
ONE(sinh, lt_sinhf(x), sinh(x), -90, 90, 1e-6, 0)
ONE(cosh, lt_coshf(x), cosh(x), -90, 90, 1e-6, 0)
ONE(asinh, lt_asinhf(x), asinh(x), -9, 9, 1e-6, 0)
ONE(acosh, lt_acoshf(x), acosh(x), 1, 9, 1e-6, 0)
ONE(atanh, lt_atanhf(x), atanh(x), -1, 1, 1e-6, 0)
ONE(erf, lt_erff(x), erf(x), -5, 5, 1e-6, 1e-45)
ONE(geluSlope, lt_gelu_slopef(x), slope(x), -8, 8, 0, 3e-7)
ONE(sin, lt_sinf(x), isfinite(x) ? sin(x) : NAN, -1e5, 1e5, 0, 1e-7)
ONE(cos, lt_cosf(x), isfinite(x) ? cos(x) : NAN, -1e5, 1e5, 0, 1e-7)
ONE(sigmoid, lt_sigmoidf(x), 1 / (1 + exp(-x)), -100, 100, 1e-6, 0x1p-125)
ONE(softplus, lt_softplusf(x), x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)), -100, 100, 1e-6, 0x1p-125)
ONE(sqrt, lt_sqrtf(x), sqrt(x), 0, 9, 1e-7, 0)
ONE(abs, lt_absf(x), fabs(x), -9, 9, 0, 0)
ONE(floor, lt_floorf(x), floor(x), -9, 9, 0, 0)
ONE(ceil, lt_ceilf(x), ceil(x), -9, 9, 0, 0)
ONE(round, lt_roundf(x), rounded(x), -9, 9, 0, 0)
ONE(square, lt_squaref(x), (double)(float)(x * x), -9, 9, 0, 0)
ONE(sign, lt_signf(x), x > 0 ? 1 : x < 0 ? -1 : x, -9, 9, 0, 0)
ONE(relu, lt_reluf(x), x <= 0 ? 0 : x, -9, 9, 0, 0)
ONE(relu6, lt_relu6f(x), x <= 0 ? 0 : x > 6 ? 6 : x, -9, 9, 0, 0)
ONE(elu, lt_eluf(x), x >= 0 ? x : expm1(x), -9, 9, 1e-6, 0)
ONE(leaky, lt_leakyf(x, 0.25f), x >= 0 ? x : (double)(float)(0.25 * x), -9, 9, 0, 0)
ONE(step, lt_stepf(x, 0.25f), x > 0 ? 1 : x <= 0 ? 0.25 : NAN, -9, 9, 0, 0)
ONE(clip, lt_clipf(x, -1.5f, 2.5f), x < -1.5 ? -1.5 : x > 2.5 ? 2.5 : x, -9, 9, 0, 0)
ONE(bf16, lt_from_bf16(lt_to_bf16(x)), bf16Of((float)x), -9, 9, 0, 0)

/* Of two arguments: all pairs of special numbers, and pairs of even bit patterns, and of even steps. */
#define TWO(name, ours, theirs, relative)                                                                              \
  static __attribute__((noinline)) void run_##name(void) {                                                             \
    EACH({ const float x = in[i], y = other[i]; out[i] = ours; })                                                      \
  }                                                                                                                    \
  static void test_##name(void) {                                                                                      \
    for (int range = 0; range < 4; range++) {                                                                          \
      for (int i = 0; i < COUNT; i++) {                                                                                \
        const uint32_t a = lt_mix((uint32_t)(2 * i)), b = lt_mix((uint32_t)(2 * i + 1));                               \
        in[i] = range == 0 ? special[i % SPECIALS] : range == 1 ? lt_from_bits(a) : (float)a * 0x1p-29f;               \
        other[i] = range == 0 ? special[i / SPECIALS % SPECIALS] : range == 1 ? lt_from_bits(b) : (float)(int32_t)b * 0x1p-28f; \
        if (range == 3) in[i] = (float)((int32_t)a >> 20), other[i] = (float)((int32_t)b >> 27);                       \
      }                                                                                                                \
      run_##name();                                                                                                    \
      for (int i = 0; i < COUNT; i++) {                                                                                \
        const double x = in[i], y = other[i];                                                                          \
        (void)x, (void)y;                                                                                              \
        expect(out[i], theirs, in[i], other[i], relative, 1e-45);                                                      \
      }                                                                                                                \
    }                                                                                                                  \
    report(#name);                                                                                                     \
  }

static double larger(double x, double y) { return isnan(x) || isnan(y) ? NAN : x > y ? x : y; }
static double smaller(double x, double y) { return isnan(x) || isnan(y) ? NAN : x < y ? x : y; }
static double modulo(float x, float y, float got) {
  if (isinf(y)) return isfinite(x) ? (x == 0 || (x < 0) == (y < 0) ? x : y) : NAN;
  if (isfinite(x) && fabs((double)x / (double)y) >= 0x1p29) return got; /* nothing is said */
  const double rest = fmod(x, y);
  const float result = (float)(rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest);
  return result == 0 && got == 0 ? got : result;
}

TWO(pow, lt_powf(x, y), pow(x, y), 1e-6)
TWO(max, lt_maxf(x, y), x == y ? out[i] == x ? out[i] : 9 : larger(x, y), 0)
TWO(min, lt_minf(x, y), x == y ? out[i] == x ? out[i] : 9 : smaller(x, y), 0)
TWO(floormod, lt_floormodf(x, y), modulo(in[i], other[i], out[i]), 1e-7)
TWO(elugrad, lt_elugradf(x, y), (double)(y >= 0 ? in[i] : in[i] * (other[i] + 1)), 1e-6)

static void expectInt(const char *what, int32_t got, int32_t expected, int32_t a, int32_t b) {
  if (got != expected && !failures++) snprintf(first, sizeof first, "%s(%d, %d): %d instead of %d", what, a, b, got, expected);
}

/* ToInt32 of a double that JavaScript's Math.pow would give. */
static int32_t power(int32_t a, int32_t b) {
  const double value = trunc(pow(a, b));
  if (!isfinite(value)) return 0;
  const double low = fmod(value, 4294967296.0);
  return (int32_t)(uint32_t)(int64_t)low;
}

static void test_integers(void) {
  const int32_t values[] = {0, 1, -1, 2, -2, 3, -3, 7, -7, 10, 1000, -1000, 65536, INT32_MAX, INT32_MIN, INT32_MIN + 1};
  for (int i = 0; i < 16 * 16 + 20000; i++) {
    const int32_t a = i < 256 ? values[i % 16] : (int32_t)lt_mix((uint32_t)i) >> i % 31;
    const int32_t b = i < 256 ? values[i / 16] : (int32_t)lt_mix((uint32_t)~i) >> i % 29;
    const int64_t quotient = b == 0 ? 0 : (int64_t)a / b - (a % (int64_t)b != 0 && (a < 0) != (b < 0));
    expectInt("floordiv", lt_floordiv(a, b), (int32_t)(uint32_t)quotient, a, b);
    expectInt("floormod", lt_floormod(a, b), b == 0 ? 0 : (int32_t)(a - quotient * b), a, b);
    expectInt("max", lt_maxi(a, b), a > b ? a : b, a, b);
    expectInt("min", lt_mini(a, b), a < b ? a : b, a, b);
    expectInt("clip", lt_clipi(a, -5, 9), a < -5 ? -5 : a > 9 ? 9 : a, a, b);
    expectInt("abs", lt_absi(a), (int32_t)(uint32_t)llabs((long long)a), a, b);
    expectInt("square", lt_squarei(a), (int32_t)(uint32_t)((uint64_t)a * (uint64_t)a), a, b);
    if (fabs(pow(a, b)) < 0x1p53 || fabs(pow(a, b)) > 0x1p86) expectInt("pow", lt_ipow(a, b), power(a, b), a, b);
  }
  report("integers");
}

static int32_t whole[COUNT];
static __attribute__((noinline)) void run_toInt(void) { EACH({ whole[i] = lt_to_int(in[i]); }) }

static void test_toInt(void) {
  for (int range = 0; range < 2; range++) {
    fill(in, range ? -3e9 : 1, range ? 3e9 : 0);
    run_toInt();
    for (int i = 0; i < COUNT; i++) {
      const int32_t expected = fabsf(in[i]) < 0x1p63f ? (int32_t)(uint32_t)(int64_t)in[i] : 0; /* also where it is NaN */
      if (whole[i] != expected && !failures++) snprintf(first, sizeof first, "at %.9g: %d", in[i], whole[i]);
    }
  }
  report("toInt");
}

static __attribute__((noinline)) float largest(const float *x, int n) {
  float result = -LT_INFINITY;
#pragma omp simd reduction(lt_maximum : result)
  for (int i = 0; i < n; i++) result = lt_maxf(result, x[i]);
  return result;
}

static __attribute__((noinline)) float least(const float *x, int n) {
  float result = LT_INFINITY;
#pragma omp simd reduction(lt_minimum : result)
  for (int i = 0; i < n; i++) result = lt_minf(result, x[i]);
  return result;
}

static void test_reductions(void) {
  for (int n = 0; n < 200; n++) {
    double high = -INFINITY, low = INFINITY;
    for (int i = 0; i < n; i++) {
      in[i] = (float)(int32_t)lt_mix((uint32_t)(n * 1000 + i));
      high = larger(high, in[i]), low = smaller(low, in[i]);
    }
    expect(largest(in, n), high, (float)n, 0, 0, 0);
    expect(least(in, n), low, (float)n, 0, 0, 0);
    if (n == 0) continue;
    in[(unsigned)n * 7 % (unsigned)n] = NAN;
    expect(largest(in, n), NAN, (float)n, 0, 0, 0);
    in[0] = 0, in[n / 2] = NAN;
    expect(least(in, n), NAN, (float)n, 0, 0, 0);
    expect(largest(in, n), NAN, (float)n, 0, 0, 0);
  }
  report("reductions");
}

/* Numbers for the test to compare with what ops/random.ts computes; the words of foldIn's 42. */
static void printRandom(void) {
  printf("random");
  for (uint32_t i = 0; i < 8; i++) printf(" %.17g", (double)lt_uniformf(i * 1000003u, 0x12345678u, 0xfedcba98u));
  printf(" %d", (int32_t)lt_fold_first(5u, 0xee467f55u));
  printf(" %d\n", (int32_t)lt_fold_second(5u, 6u, 0xee467f55u, 0x19ed82fdu));
}

int main(void) {
  test_exp(), test_log(), test_log1p(), test_expm1(), test_tanh(), test_erf(), test_tan(), test_asin(), test_acos(), test_atan(),
      test_sinh(), test_cosh(), test_asinh(), test_acosh(), test_atanh(), test_geluSlope(), test_sin(), test_cos(), test_sigmoid();
  test_softplus(), test_sqrt(), test_abs(), test_floor(), test_ceil(), test_round(), test_square(), test_sign(), test_relu();
  test_relu6(), test_elu(), test_leaky(), test_step(), test_clip(), test_bf16(), test_toInt();
  test_pow(), test_max(), test_min(), test_floormod(), test_elugrad();
  test_integers(), test_reductions(), printRandom();
  printf("finished %d\n", finished);
  return 0;
}

/* integersCheck.c: products of rounded rows by weights of few bits, by every kernel that this CPU has: within 1e-6 of sums in double
   precision, the same bits by each of them, and of a row alone. Memory ends with the last element. Says what differs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "luthier.h"

static const char *const kernels[] = {"portable", "neon", "avx2", "avxvnni", "avx512", "avx512vnni", "avx512bf16", "auto"};

/* bits, rows, channels, depth, groups: ends of steps, panels and tiles; sums of 2^17 terms. */
static const int shapes[][5] = {
    {8, 1, 1, 1, 1},   {8, 3, 17, 33, 1},  {8, 7, 9, 50, 1},     {8, 2, 6, 96, 3},   {8, 14, 64, 320, 10}, {8, 13, 70, 161, 1},
    {4, 1, 3, 32, 1},  {4, 5, 7, 160, 5},  {4, 3, 5, 384, 6},    {4, 4, 9, 256, 2},  {4, 7, 70, 1600, 50}, {4, 13, 33, 320, 1},
    {4, 2, 100, 96, 3}, {8, 4, 2, 131072, 1}, {8, 1, 33, 64, 2}, {4, 13, 32, 64, 2}, {4, 2, 40, 768, 12}, {8, 1, 33, 288, 9}};

static uint64_t state = 50;
static uint32_t draw(void) { return (uint32_t)((state = state * 6364136223846793005u + 1442695040888963407u) >> 33); }

static float *rowsOf(int64_t count) {
  float *x = malloc((size_t)count * 4);
  for (int64_t i = 0; i < count; i++) x[i] = (float)draw() / (1u << 30) - 1;
  return x;
}

/* bf16 numbers, in memory of either type. */
static void *scalesOf(int64_t count, int isNarrow, float *values) {
  uint16_t *halves = malloc((size_t)count * 2);
  for (int64_t i = 0; i < count; i++) {
    halves[i] = (uint16_t)(0x3c00 + draw() % 256);
    const uint32_t word = (uint32_t)halves[i] << 16;
    memcpy(values + i, &word, 4);
  }
  if (isNarrow) return halves;
  free(halves);
  return memcpy(malloc((size_t)count * 4), values, (size_t)count * 4);
}

static int codeOf(const lt_quantized *w, int64_t channel, int64_t d) {
  const uint8_t *codes = w->codes;
  if (w->bits == 8) return ((const int8_t *)codes)[channel * w->depth + d];
  const int byte = codes[channel * w->depth / 2 + d / 32 * 16 + d % 16];
  return (d % 32 < 16 ? byte & 15 : byte >> 4) - 8;
}

static double expected(const lt_quantized *w, const float *scales, const float *row, int64_t channel) {
  const int64_t size = w->depth / w->groups;
  double sum = 0;
  for (int64_t g = 0; g < w->groups; g++) {
    const float *x = row + g * size;
    float most = 0;
    for (int64_t i = 0; i < size; i++) most = fmaxf(most, fabsf(x[i]));
    double part = 0;
    for (int64_t i = 0; i < size; i++) part += (double)nearbyintf(x[i] * (127 / most)) * codeOf(w, channel, g * size + i);
    sum += part * (most / 127) * scales[channel * w->groups + g];
  }
  return sum;
}

/* c [rows, channels] in memory of its own. */
static float *product(const lt_quantized *w, int64_t channels, const float *x, int64_t rows) {
  float *c = malloc((size_t)(rows * channels) * 4);
  void *scratch = aligned_alloc(64, (size_t)(lt_quantized_scratch_bytes(w, rows) + 63) / 64 * 64);
  lt_quantized_product(w, 0, channels, (lt_matrix){x, LT_FLOAT32, w->depth, 1}, rows, c, channels, scratch, 0, 1);
  free(scratch);
  return c;
}

static void check(const int *shape) {
  const int bits = shape[0], rows = shape[1], channels = shape[2], depth = shape[3], groups = shape[4];
  const int64_t bytes = (int64_t)channels * (bits == 4 ? depth / 2 : depth);
  uint8_t *codes = malloc((size_t)bytes);
  /* The largest sums have weights of one sign. */
  for (int64_t i = 0; i < bytes; i++) codes[i] = depth > 100000 ? 128 : (uint8_t)draw();
  float *values = malloc((size_t)(channels * groups) * 4), *x = rowsOf((int64_t)rows * depth);
  if (depth > 100000)
    for (int64_t i = 0; i < (int64_t)rows * depth; i++) x[i] = 1;
  void *scales = scalesOf((int64_t)channels * groups, groups > 1, values);
  const lt_quantized w = {codes, scales, bits, groups > 1 ? LT_BFLOAT16 : LT_FLOAT32, 1, 8, depth, groups};
  float *first = NULL;
  for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++) {
    if (!lt_gemm_force(kernels[k])) continue;
    float *c = product(&w, channels, x, rows);
    double most = 0, worst = 0;
    for (int r = 0; r < rows && !first; r++)
      for (int j = 0; j < channels; j++) {
        const double sum = expected(&w, values, x + (int64_t)r * depth, j), error = fabs(c[r * channels + j] - sum);
        most = fmax(most, fabs(sum));
        worst = error <= worst ? worst : error;
      }
    if (!(worst <= 1e-6 * most)) printf("shape %d: off by %g of %g\n", (int)(shape - shapes[0]) / 5, worst, most);
    for (int r = 0; r < rows; r++) {
      float *alone = product(&w, channels, x + (int64_t)r * depth, 1);
      if (memcmp(alone, c + r * channels, (size_t)channels * 4))
        printf("shape %d, %s: row %d alone has other bits\n", (int)(shape - shapes[0]) / 5, kernels[k], r);
      free(alone);
    }
    if (first && memcmp(first, c, (size_t)(rows * channels) * 4))
      printf("shape %d: %s gives other bits than %s\n", (int)(shape - shapes[0]) / 5, kernels[k], kernels[0]);
    if (first)
      free(c);
    else
      first = c;
  }
  free(first);
  free(scales);
  free(values);
  free(codes);
  free(x);
}

/* Rows of zeros, of numbers whose inverses are infinite, and that are not finite: 0, 0, and NaN. */
static void special(void) {
  enum { DEPTH = 64, ROWS = 4 };
  const float rows[ROWS] = {0, 1e-40f, INFINITY, NAN};
  float x[ROWS * DEPTH], scale = 1;
  int8_t codes[DEPTH];
  for (int i = 0; i < DEPTH; i++) codes[i] = 1;
  for (int i = 0; i < ROWS * DEPTH; i++) x[i] = i % 2 ? rows[i / DEPTH] : 0;
  const lt_quantized w = {codes, &scale, 8, LT_FLOAT32, 1, 8, DEPTH, 1};
  for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++) {
    if (!lt_gemm_force(kernels[k])) continue;
    float *c = product(&w, 1, x, ROWS);
    if (c[0] != 0 || c[1] != 0 || !isnan(c[2]) || !isnan(c[3]))
      printf("%s: special rows have %g, %g, %g, %g\n", kernels[k], c[0], c[1], c[2], c[3]);
    free(c);
  }
}

int main(void) {
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) check(shapes[i]);
  special();
  puts("finished");
  return 0;
}

/* quantized.c: products by weights of few bits, divided among threads by channels. */
/* flags: -O2 */
#include "quantized.h"

enum { ROWS_BYTES = 1 << 19 /* of rows at a time: they stay in the second-level cache */ };

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Rows at a time. */
static int64_t rowsAtOnce(const lt_quantized_kernel *kernel, const lt_quantized *w, int64_t rows) {
  const int64_t fit = ROWS_BYTES / (4 * kernel->padded(w)), most = fit < 12 ? 12 : fit / 12 * 12;
  return least(rows, most);
}

static int64_t codesOf(const lt_quantized *w) { return w->bits == 4 ? w->depth / 2 : w->depth; }

int64_t lt_quantized_scratch_bytes(const lt_quantized *w, int64_t rows) {
  const lt_quantized_kernel *kernel = lt_quantized_kernel_of(w->row_bits);
  const int64_t narrow = w->code_bytes == 1 ? 0 : kernel->channels * codesOf(w);
  const int64_t block = rowsAtOnce(kernel, w, rows);
  return 4 * (block * kernel->padded(w) + kernel->expanded(w, block) + 32) + narrow;
}

/* The weights of a task's channels, their codes as bytes. */
static lt_quantized narrowed(const lt_quantized *w, int64_t first, int64_t channels, int8_t *codes) {
  lt_quantized part = *w;
  const int32_t *from = (const int32_t *)w->codes + first * codesOf(w);
  for (int64_t i = 0; i < channels * codesOf(w); i++) codes[i] = (int8_t)from[i];
  part.codes = codes;
  part.scales = (const char *)w->scales + first * w->groups * (w->scale_type == LT_BFLOAT16 ? 2 : 4);
  return part;
}

void lt_quantized_product(const lt_quantized *w, int64_t first, int64_t channels, lt_matrix x, int64_t rows, float *c,
                          int64_t ldc, void *scratch, int thread, int threads) {
  const lt_quantized_kernel *kernel = lt_quantized_kernel_of(w->row_bits);
  const int64_t block = rowsAtOnce(kernel, w, rows), tasks = (channels + kernel->channels - 1) / kernel->channels;
  float *const prepared = scratch;
  float *const expanded = prepared + (block * kernel->padded(w) + 15) / 16 * 16;
  for (int64_t i = 0; i < rows; i += block) {
    const int64_t count = least(block, rows - i);
    const lt_matrix part = {(const char *)x.data + i * x.rs * (x.type == LT_BFLOAT16 ? 2 : 4), x.type, x.rs, x.cs};
    kernel->prepare(w, part, count, prepared);
    LT_TASKS(task, tasks, thread, threads) {
      const int64_t j = task * kernel->channels, width = least(kernel->channels, channels - j);
      float *const to = c + i * ldc + j;
      if (w->code_bytes == 1) {
        kernel->multiply(w, first + j, width, prepared, count, to, ldc, expanded);
      } else {
        const lt_quantized own = narrowed(w, first + j, width, (int8_t *)(expanded + kernel->expanded(w, block)));
        kernel->multiply(&own, 0, width, prepared, count, to, ldc, expanded);
      }
    }
  }
}

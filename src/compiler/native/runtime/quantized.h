/* quantized.h: internal to the runtime: products by weights of few bits, a kernel for each instruction set. */
#ifndef LUTHIER_QUANTIZED_H
#define LUTHIER_QUANTIZED_H

#include "luthier.h"

/* Weights of 4 bits in 16 bytes. */
enum { LT_BLOCK = 32 };

typedef struct lt_quantized_kernel {
  int64_t channels; /* of a task */
  /* Floats of a row of x as `prepare` orders it, and of the memory that `multiply` of so many rows works in. */
  int64_t (*padded)(const lt_quantized *w);
  int64_t (*expanded)(const lt_quantized *w, int64_t rows);
  void (*prepare)(const lt_quantized *w, lt_matrix x, int64_t rows, float *to);
  /* c [rows, channels] = x times the channels from `first` on. No element depends on the number of rows. */
  void (*multiply)(const lt_quantized *w, int64_t first, int64_t channels, const float *x, int64_t rows, float *c, int64_t ldc,
                   float *expanded);
} lt_quantized_kernel;

/* That of the products' kernel for float32; with `row_bits` that of its integers. */
const lt_quantized_kernel *lt_quantized_kernel_of(int32_t row_bits);

#endif

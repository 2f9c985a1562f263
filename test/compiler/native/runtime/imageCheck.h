/* imageCheck.h: random images in memory of exactly their size, and comparisons with sums in doubles. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"
#include "share.h"

static uint64_t state = 1;
static int64_t below(int64_t n) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (int64_t)((state >> 33) % (uint64_t)n);
}
static float number(void) { return (float)below(1 << 20) / (1 << 19) - 1; }

/* Exactly as large as needed, so that overruns are found. */
static void *room(int64_t bytes) {
  void *memory = NULL;
  if (posix_memalign(&memory, 64, (size_t)(bytes > 0 ? bytes : 1))) exit(2);
  return memory;
}

/* An image with gaps between rows, and between items. */
static lt_image imageOf(int64_t batch, int64_t height, int64_t width, int64_t channels) {
  const int64_t column = channels + below(3), row = width * column + below(4), item = height * row + below(4);
  const int64_t size = (batch - 1) * item + (height - 1) * row + (width - 1) * column + channels;
  float *data = room(size * 4);
  for (int64_t i = 0; i < size; i++) data[i] = number();
  return (lt_image){data, item, row, column};
}

static float *at(lt_image x, int64_t item, int64_t i, int64_t j) {
  return (float *)x.data + item * x.batch + i * x.row + j * x.column;
}

static int64_t round64(int64_t bytes) { return (bytes + 63) / 64 * 64; }

/* Compares; a special result must be the same, and no other may be special. `size`: of the sum's terms. */
static int differs(double wanted, float got, double size) {
  if (isnan(wanted)) return !isnan(got);
  if (isinf(wanted)) return got != (float)wanted;
  return !(fabs(wanted - got) <= 2e-5 * (size + 1));
}

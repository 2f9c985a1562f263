/* indexingCheck.c: sums by segment, cumulative sums and the k largest against plain loops; run by kernels.test.ts and
   kernels.long.ts. Silent where all is well. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "luthier.h"

static int failures;
static uint32_t drawn_so_far = 1;
static uint32_t drawn(void) { return lt_mix(drawn_so_far++ * 2654435761u); }
static int64_t up_to(int64_t n) { return 1 + drawn() % (uint32_t)n; }
static float real(void) { return (float)(int32_t)drawn() * 0x1p-31f; }

static void expect(int holds, const char *what, int64_t at) {
  if (!holds && failures++ < 5) printf("%s, at %d\n", what, (int)at);
}

static void *array(int64_t count, int64_t size) { return malloc((size_t)(count * size)); }

/* ---- Sums by segment -------------------------------------------------------------------------------------------- */

static void segment_case(int32_t type, int64_t rows, int64_t columns, int64_t segments, int accumulate) {
  const int64_t rs = columns + drawn() % 3, out_rs = columns + drawn() % 3, ids_stride = up_to(2);
  const int64_t size = (rows - 1) * rs + columns, out_size = (segments - 1) * out_rs + columns;
  float *floats = array(size, 4), *out = array(out_size, 4), *expected = array(out_size, 4), *start = array(out_size, 4);
  bf16 *halves = array(size, 2);
  int32_t *ids = array((rows - 1) * ids_stride + 1, 4);
  for (int64_t i = 0; i < size; i++) halves[i] = lt_to_bf16(real());
  for (int64_t i = 0; i < size; i++) floats[i] = type == LT_BFLOAT16 ? lt_from_bf16(halves[i]) : real();
  for (int64_t r = 0; r < rows; r++) ids[r * ids_stride] = (int32_t)(drawn() % (uint32_t)(segments + 2)) - 1;
  if (rows > 1) ids[0] = INT32_MIN, ids[ids_stride] = INT32_MAX;
  for (int64_t i = 0; i < out_size; i++) start[i] = expected[i] = real();
  for (int64_t s = 0; s < segments; s++)
    for (int64_t c = 0; c < columns && !accumulate; c++) expected[s * out_rs + c] = 0;
  for (int64_t r = 0; r < rows; r++)
    for (int64_t c = 0; c < columns; c++)
      if (ids[r * ids_stride] >= 0 && ids[r * ids_stride] < segments)
        expected[ids[r * ids_stride] * out_rs + c] += floats[r * rs + c];
  for (int threads = 1; threads <= 4; threads++) {
    memcpy(out, start, (size_t)out_size * 4);
    for (int thread = 0; thread < threads; thread++)
      lt_segment_sum(type == LT_BFLOAT16 ? (void *)halves : floats, type, rs, ids, ids_stride, rows, columns, out, out_rs,
                     segments, accumulate, thread, threads);
    expect(memcmp(out, expected, (size_t)out_size * 4) == 0, "segment sum: other bits than the loop's", threads);
  }
  free(floats), free(out), free(expected), free(start), free(halves), free(ids);
}

static void check_segments(void) {
  for (int round = 0; round < 200; round++)
    segment_case(round % 2, up_to(60), up_to(round % 5 ? 40 : 200), up_to(round % 3 ? 12 : 120), round / 2 % 2);
  float out[2] = {3, NAN};
  lt_segment_sum(NULL, LT_FLOAT32, 1, NULL, 1, 0, 1, out, 1, 2, 0, 0, 1);
  expect(out[0] == 0 && out[1] == 0, "no rows: zeros", 0);
  const float x[2] = {NAN, 1};
  const int32_t ids[2] = {1, 0};
  lt_segment_sum(x, LT_FLOAT32, 1, ids, 1, 2, 1, out, 1, 2, 0, 0, 1);
  expect(out[0] == 1 && isnan(out[1]), "NaN stays in its segment", 0);
}

/* ---- Cumulative sums --------------------------------------------------------------------------------------------- */

static void cumulative_case(int64_t n, int exclusive, int reverse) {
  const int64_t stride = up_to(3), out_stride = up_to(3);
  float *x = array(n * stride, 4), *out = array(n * out_stride, 4), sum = 0;
  int32_t *xi = array(n * stride, 4), *outi = array(n * out_stride, 4);
  uint32_t sumi = 0;
  for (int64_t i = 0; i < n * stride; i++) x[i] = real(), xi[i] = (int32_t)drawn();
  lt_cumsum_f32(x, stride, out, out_stride, n, exclusive, reverse);
  lt_cumsum_i32(xi, stride, outi, out_stride, n, exclusive, reverse);
  for (int64_t i = 0; i < n; i++) {
    const int64_t at = reverse ? n - 1 - i : i;
    if (!exclusive) sum += x[at * stride], sumi += (uint32_t)xi[at * stride];
    expect(out[at * out_stride] == sum, "cumulative sum", at);
    expect(outi[at * out_stride] == (int32_t)sumi, "cumulative sum of integers", at);
    if (exclusive) sum += x[at * stride], sumi += (uint32_t)xi[at * stride];
  }
  float *kept = array(n, 4);
  for (int64_t i = 0; i < n; i++) kept[i] = out[i * out_stride];
  lt_cumsum_f32(x, stride, x, stride, n, exclusive, reverse);
  for (int64_t i = 0; i < n; i++) expect(x[i * stride] == kept[i], "cumulative sum in place", i);
  free(x), free(out), free(xi), free(outi), free(kept);
}

static void check_cumulative(void) {
  for (int round = 0; round < 200; round++) cumulative_case(up_to(67), round % 2, round / 2 % 2);
  lt_cumsum_f32(NULL, 1, NULL, 1, 0, 0, 0);
  const float x[4] = {1, INFINITY, -INFINITY, 2};
  float out[4];
  lt_cumsum_f32(x, 1, out, 1, 4, 1, 0);
  expect(out[0] == 0 && out[1] == 1 && out[2] == INFINITY && isnan(out[3]), "infinities cancel to NaN", 0);
}

/* ---- The k largest ----------------------------------------------------------------------------------------------- */

/* Whether element i comes before element j. */
static int before(const float *x, int64_t stride, int64_t i, int64_t j) {
  const float a = x[i * stride], b = x[j * stride];
  if (isnan(a) || isnan(b)) return isnan(a) && (!isnan(b) || i < j);
  return a > b || (a == b && i < j);
}

static void largest_case(int64_t n, int64_t k, int kind) {
  const int64_t stride = up_to(3), values_stride = up_to(2), indices_stride = up_to(2);
  float *x = array(n * stride, 4), *values = array(k * values_stride, 4);
  int32_t *xi = array(n * stride, 4), *valuesi = array(k * values_stride, 4), *indices = array(k * indices_stride, 4);
  void *scratch = array(1, lt_top_k_scratch_bytes(k));
  const float special[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, -NAN, 1e-45f, -1e-45f, 3e38f};
  for (int64_t i = 0; i < n * stride; i++) {
    xi[i] = kind == 0 ? (int32_t)drawn() : (int32_t)(drawn() % 5) - 2;
    x[i] = kind == 0 ? real() : kind == 1 ? (float)xi[i] : special[drawn() % 9];
  }
  lt_top_k_f32(x, stride, n, k, values, values_stride, indices, indices_stride, scratch);
  for (int64_t i = 0; i < k; i++) {
    const int32_t index = indices[i * indices_stride];
    int64_t rank = 0;
    for (int64_t j = 0; j < n; j++) rank += j != index && before(x, stride, j, index);
    expect(rank == i, "rank of a float", i);
    expect(memcmp(&values[i * values_stride], &x[index * stride], 4) == 0, "value of a float", i);
  }
  lt_top_k_i32(xi, stride, n, k, valuesi, values_stride, indices, indices_stride, scratch);
  for (int64_t i = 0; i < k; i++) {
    const int32_t index = indices[i * indices_stride], value = xi[index * stride];
    int64_t rank = 0;
    for (int64_t j = 0; j < n; j++) rank += xi[j * stride] > value || (xi[j * stride] == value && j < index);
    expect(rank == i && valuesi[i * values_stride] == value, "rank of an integer", i);
  }
  free(x), free(values), free(xi), free(valuesi), free(indices), free(scratch);
}

static void check_largest(void) {
  for (int round = 0; round < 400; round++) {
    const int64_t n = up_to(round % 10 ? 67 : 500);
    largest_case(n, round % 3 == 0 ? n : up_to(n), round % 4 == 3 ? 0 : round % 4);
  }
  lt_top_k_f32(NULL, 1, 0, 0, NULL, 1, NULL, 1, NULL);
}

int main(int count, char **arguments) {
  const char *check = count == 2 ? arguments[1] : "";
  if (strcmp(check, "segments") == 0) check_segments();
  else if (strcmp(check, "cumulative") == 0) check_cumulative();
  else if (strcmp(check, "largest") == 0) check_largest();
  else return printf("no such check\n"), 1;
  return failures > 0;
}

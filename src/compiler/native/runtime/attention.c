/* attention.c: routines shared by attention's passes: products of packed panels and of rows, logits, stores. */
#include "attention.h"

#ifdef __AVX512BF16__
#include <immintrin.h>
#endif

void lt_pack_list(const lt_kernel *kernel, lt_panel_list to, lt_matrix from, int64_t across, int64_t along,
                  int64_t vectors, int64_t room, int64_t k) {
  kernel->pack(to.words, to.size, to.width, from.data, from.type, across, along, vectors, k);
  int64_t i = (vectors + to.width - 1) / to.width * to.width;
  for (to.words += i / to.width * to.size; i < room; i += to.width, to.words += to.size)
    memset(to.words, 0, (size_t)(lt_words(kernel, k) * to.width) * sizeof(uint32_t));
}

/* Whether any of the ids is between two. */
static int any_between(const int32_t *ids, int64_t count, int32_t least, int32_t most) {
  int any = 0;
#pragma omp simd reduction(| : any)
  for (int64_t i = 0; i < count; i++) any |= ids[i] >= least && ids[i] <= most;
  return any;
}

lt_range lt_range_of(const lt_shape *a, int64_t batch, int64_t query, int64_t queries) {
  const lt_attention *s = a->s;
  const int64_t window = query + a->first, end = queries == 0 ? 0 : lt_window_end(a, query + queries - 1);
  lt_range keys = {window <= 0 ? 0 : lt_least(window, end), end};
  keys.begin -= keys.begin % LT_KEY_STEP;
  if (s->query_segments == NULL || queries == 0) return keys;
  const int32_t *ids = s->key_segments + batch * s->key_segments_batch;
  const int32_t *own = s->query_segments + batch * s->query_segments_batch + query;
  int32_t least = own[0], most = own[0];
  for (int64_t c = 1; c < queries; c++) {
    least = own[c] < least ? own[c] : least;
    most = own[c] > most ? own[c] : most;
  }
  while (keys.begin < keys.end &&
         !any_between(ids + keys.begin, lt_least(LT_KEY_STEP, keys.end - keys.begin), least, most))
    keys.begin += LT_KEY_STEP;
  while (keys.begin < keys.end) {
    const int64_t step = (keys.end - 1) / LT_KEY_STEP * LT_KEY_STEP;
    if (any_between(ids + step, keys.end - step, least, most)) break;
    keys.end = step;
  }
  return keys;
}

void lt_add_stream(lt_streams *streams, lt_matrix rows, int64_t count, int64_t columns, int write) {
  enum { MOST = 1 << 17 };
  const int64_t size = lt_size_of(rows.type), bytes = columns * size;
  if (count * bytes > MOST || streams->count == LT_STREAMS) return;
  streams->of[streams->count].at = rows.data;
  streams->of[streams->count].rows = count;
  streams->of[streams->count].stride = rows.rs * size;
  streams->of[streams->count].bytes = bytes;
  streams->of[streams->count++].write = write;
  if (count > streams->rows) streams->rows = count;
}

void lt_fetch_streams(lt_streams *streams) {
  enum { LINE = 64 };
  const int64_t end = lt_least(streams->row + streams->share, streams->rows);
  for (int i = 0; i < streams->count; i++) {
    for (int64_t r = streams->row; r < lt_least(end, streams->of[i].rows); r++) {
      const char *first = streams->of[i].at + r * streams->of[i].stride, *last = first + streams->of[i].bytes - 1;
      for (const char *at = first - (uintptr_t)first % LINE; at <= last; at += LINE) {
        if (streams->of[i].write)
          __builtin_prefetch(at, 1, 2);
        else
          __builtin_prefetch(at, 0, 2);
      }
    }
  }
  streams->row = end;
}

lt_left lt_keys_as_left(const lt_shape *a, lt_panel_list packed, lt_matrix rows, int64_t dims) {
  if (a->kernel->multiply != NULL && a->p == LT_FLOAT32 && rows.type == LT_FLOAT32)
    return lt_left_in_place(a->kernel, rows.data, rows.rs, 1);
  lt_pack_list(a->kernel, packed, rows, rows.rs, 1, a->keys, a->keys, dims);
  return lt_packed_left(packed);
}

void lt_multiply_rows(const lt_kernel *kernel, lt_left a, lt_panel_list b, int64_t first, int64_t words, int64_t m,
                      int64_t n, float *c, int64_t ldc, int accumulate) {
  const int64_t rows = kernel->rows;
  a.words += first * a.step;
  b.words += first * b.width;
  if (kernel->multiply != NULL) {
    n = (n + kernel->lanes - 1) & -kernel->lanes;
    const int64_t at_once = a.size == rows * a.row ? m : rows;
    for (int64_t i = 0; i < m; i += at_once, a.words += a.size)
      kernel->multiply(a.words, a.row, a.step, b.words, b.size, b.width, words, c + i * ldc, ldc,
                       lt_least(at_once, m - i), n, accumulate);
    return;
  }
  for (int64_t j = 0; j < n; j += b.width, b.words += b.size) {
    const int64_t columns = n - j >= b.width ? b.width : lt_round_up(n - j, kernel->lanes);
    const lt_word *left = a.words;
    lt_tile *const tile = kernel->tile(rows, columns);
    for (int64_t i = 0; i < m; i += rows, left += a.size)
      tile(left, b.words, words, b.width, c + i * ldc + j, LT_FLOAT32, ldc, rows, columns, 1.0f, accumulate, NULL, 0);
  }
}

void lt_multiply_strip(const lt_shape *a, lt_left left, lt_panel_list strip, int64_t words, int64_t key, int64_t keys,
                       int64_t query, int64_t lanes, float *to) {
  const int64_t rows = a->kernel->rows;
  int64_t count;
  left.words += key / rows * left.size;
  for (int64_t r = 0; r < keys; r += count) {
    count = lt_same_lanes(a, key + r, keys - r, query, lanes);
    const int64_t skipped = lt_first_lane(a, key + r, query, lanes);
    lt_panel_list right = strip;
    for (int64_t j = 0; j < lanes; j += strip.width, right.words += strip.size) {
      const int64_t first = skipped > j ? skipped - j : 0, columns = strip.width - first;
      if (columns <= 0) continue;
      const lt_panel_list seen = {right.words + first, strip.width, 0};
      lt_multiply_rows(a->kernel, left, seen, 0, words, count, columns, to + r * lanes + j + first, lanes, 0);
    }
    left.words += (count + rows - 1) / rows * left.size;
  }
}

/* The mask's row for one key: a value per lane, 0 beyond the queries. */
static void mask_lanes(const float *mask, int64_t stride, int64_t queries, int64_t lanes, float *row) {
  if (stride == 1)
    memcpy(row, mask, (size_t)queries * sizeof(float));
  else
    for (int64_t c = 0; c < queries; c++) row[c] = mask[c * stride];
  for (int64_t c = queries; c < lanes; c++) row[c] = 0.0f;
}

/* logit = cap tanh(scale x / cap); its derivative by x is scale (1 - tanh^2). */
static void cap_logits(const lt_attention *s, int64_t count, float *logits, float *slopes) {
  const float cap = s->logit_cap, inner = s->scale / cap, scale = s->scale;
  if (slopes != NULL) {
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
      const float t = lt_tanhf(logits[i] * inner);
      slopes[i] = scale * (1.0f - t * t);
    }
  }
#pragma omp simd
  for (int64_t i = 0; i < count; i++) logits[i] = cap * lt_tanhf(logits[i] * inner);
}

void lt_finish_logits(const lt_shape *a, int64_t batch, int64_t head, int64_t key, int64_t keys, int64_t query,
                      int64_t queries, int64_t lanes, float *logits, float *slopes) {
  const lt_attention *s = a->s;
  const int64_t count = keys * lanes;
  if (s->logit_cap != 0.0f) {
    cap_logits(s, count, logits, slopes);
  } else {
    const float scale = s->scale;
#pragma omp simd
    for (int64_t i = 0; i < count; i++) logits[i] *= scale;
    if (slopes != NULL)
      for (int64_t i = 0; i < count; i++) slopes[i] = scale;
  }
  if (s->mask == NULL) return;
  const float *mask = s->mask + batch * s->mask_batch + head * s->mask_head + query * s->mask_query + key * s->mask_key;
  if (lanes == 1) {
    for (int64_t r = 0; r < keys; r++) logits[r] += mask[r * s->mask_key];
    return;
  }
  float row_mask[LT_STRIP];
  for (int64_t r = 0; r < keys; r++) {
    if (r == 0 || s->mask_key != 0) mask_lanes(mask + r * s->mask_key, s->mask_query, queries, lanes, row_mask);
    float *row = logits + r * lanes;
#pragma omp simd
    for (int64_t c = 0; c < lanes; c++) row[c] += row_mask[c];
  }
}

/* One of the CPU's vectors: compilers keep sums of this type in registers, those of an array in memory. */
#if defined(__AVX512F__)
enum { LANES = 16 };
#elif defined(__AVX__)
enum { LANES = 8 };
#else
enum { LANES = 4 };
#endif
typedef float vector __attribute__((vector_size(4 * LANES)));
typedef float loose __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef bf16 halves __attribute__((vector_size(2 * LANES), aligned(2), may_alias));
typedef uint32_t words __attribute__((vector_size(4 * LANES)));

#define LT_FLOATS_AT(x) (*(const loose *)(x))
#define LT_BF16S_AT(x) ((vector)(__builtin_convertvector(*(const halves *)(x), words) << 16))

/* sum(x * y) in two vectors of sums, whatever the type. */
#define LT_ROW_PRODUCT(name, TYPE_X, TYPE_Y, X_AT, Y_AT, FROM_X, FROM_Y)                                                \
  static inline float name(const TYPE_X *x, const TYPE_Y *y, int64_t columns) {                                         \
    vector even = {0}, odd = {0};                                                                                       \
    float sum = 0.0f;                                                                                                   \
    int64_t at = 0;                                                                                                     \
    for (; at + 2 * LANES <= columns; at += 2 * LANES) {                                                                \
      even += X_AT(x + at) * Y_AT(y + at);                                                                              \
      odd += X_AT(x + at + LANES) * Y_AT(y + at + LANES);                                                               \
    }                                                                                                                   \
    for (; at < columns; at++) sum += FROM_X(x[at]) * FROM_Y(y[at]);                                                    \
    even += odd;                                                                                                        \
    for (int c = 0; c < LANES; c++) sum += even[c];                                                                     \
    return sum;                                                                                                         \
  }
LT_ROW_PRODUCT(product_ff, float, float, LT_FLOATS_AT, LT_FLOATS_AT, , )
LT_ROW_PRODUCT(product_fb, float, bf16, LT_FLOATS_AT, LT_BF16S_AT, , lt_from_bf16)
LT_ROW_PRODUCT(product_bb, bf16, bf16, LT_BF16S_AT, LT_BF16S_AT, lt_from_bf16, lt_from_bf16)

void lt_row_products(lt_matrix x, lt_matrix y, int64_t rows, int64_t columns, float *to) {
  if (x.type != y.type && x.type == LT_BFLOAT16) {
    lt_row_products(y, x, rows, columns, to);
    return;
  }
  for (int64_t r = 0; r < rows; r++) {
    const float *xf = (const float *)x.data + r * x.rs, *yf = (const float *)y.data + r * y.rs;
    const bf16 *xb = (const bf16 *)x.data + r * x.rs, *yb = (const bf16 *)y.data + r * y.rs;
    if (x.type == LT_BFLOAT16)
      to[r] = product_bb(xb, yb, columns);
    else
      to[r] = y.type == LT_BFLOAT16 ? product_fb(xf, yb, columns) : product_ff(xf, yf, columns);
  }
}

/* Rounds a row, sixteen elements at a time where the CPU can; its instruction flushes subnormal numbers to zero. */
static void round_row(bf16 *restrict to, const float *restrict from, float scale, int64_t columns) {
  int64_t c = 0;
#ifdef __AVX512BF16__
  for (; c + 16 <= columns; c += 16) {
    const __m512 scaled = _mm512_mul_ps(_mm512_loadu_ps(from + c), _mm512_set1_ps(scale));
    _mm256_storeu_si256((__m256i *)(to + c), (__m256i)_mm512_cvtneps_pbh(scaled));
  }
#endif
#pragma omp simd
  for (int64_t d = c; d < columns; d++) to[d] = lt_to_bf16(from[d] * scale);
}

void lt_store_rows(lt_matrix to, const float *from, int64_t stride, const float *scales, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; r++, from += stride) {
    const float scale = scales == NULL ? 1.0f : scales[r];
    if (to.type == LT_BFLOAT16) {
      round_row((bf16 *)to.data + r * to.rs, from, scale, columns);
    } else {
      float *row = (float *)to.data + r * to.rs;
#pragma omp simd
      for (int64_t c = 0; c < columns; c++) row[c] = from[c] * scale;
    }
  }
}

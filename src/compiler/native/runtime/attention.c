/* attention.c: the parts of attention that its passes share: products of packed panels, logits, storing. */
#include "attention.h"

void lt_pack_list(const lt_kernel *kernel, lt_panel_list to, lt_matrix from, int64_t across, int64_t along,
                  int64_t vectors, int64_t room, int64_t k) {
  const int64_t bytes = from.type == LT_BFLOAT16 ? 2 : 4;
  const char *at = from.data;
  for (int64_t i = 0; i < room; i += to.width, at += to.width * across * bytes, to.words += to.size) {
    if (i < vectors)
      kernel->pack(to.words, to.width, at, from.type, across, along, lt_least(to.width, vectors - i), k);
    else
      memset(to.words, 0, (size_t)(lt_words(kernel, k) * to.width) * sizeof(uint32_t));
  }
}

void lt_multiply_lists(const lt_kernel *kernel, lt_panel_list a, lt_panel_list b, int64_t first, int64_t words, int64_t m,
                       int64_t n, float *c, int64_t ldc, int accumulate) {
  const uint32_t *left = a.words + first * a.width, *right = b.words + first * b.width;
  for (int64_t j = 0; j < n; j += b.width, right += b.size) {
    const int64_t columns = lt_least(b.width, lt_round_up(n - j, kernel->lanes));
    const uint32_t *panel = left;
    for (int64_t i = 0; i < m; i += a.width, panel += a.size)
      kernel->tile(panel, right, words, b.width, c + i * ldc + j, LT_FLOAT32, ldc, a.width, columns, 1.0f, accumulate, NULL,
                   0);
  }
}

/* The mask's row for one key: a value a lane, 0 beyond the queries. */
static void mask_lanes(const float *mask, int64_t stride, int64_t queries, int64_t width, float *row) {
  if (stride == 1)
    memcpy(row, mask, (size_t)queries * sizeof(float));
  else
    for (int64_t c = 0; c < queries; c++) row[c] = mask[c * stride];
  for (int64_t c = queries; c < width; c++) row[c] = 0.0f;
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
                      int64_t queries, int64_t width, float *logits, float *slopes) {
  const lt_attention *s = a->s;
  const int64_t count = keys * width;
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
  if (width == 1) {
    for (int64_t r = 0; r < keys; r++) logits[r] += mask[r * s->mask_key];
    return;
  }
  float lanes[LT_STRIP];
  for (int64_t r = 0; r < keys; r++) {
    if (r == 0 || s->mask_key != 0) mask_lanes(mask + r * s->mask_key, s->mask_query, queries, width, lanes);
    float *row = logits + r * width;
#pragma omp simd
    for (int64_t c = 0; c < width; c++) row[c] += lanes[c];
  }
}

void lt_hide_logits(const lt_shape *a, int64_t key, int64_t keys, int64_t query, int64_t width, float *logits) {
  if (!a->s->causal) return;
  int64_t first = query + a->offset + 1 - key; /* the first row that the first query doesn't see */
  for (int64_t r = first < 0 ? 0 : first; r < keys; r++) {
    float *row = logits + r * width;
    const int64_t hidden = lt_least(r - first + 1, width);
    for (int64_t c = 0; c < hidden; c++) row[c] = -LT_INFINITY;
  }
}

void lt_raise_maxima(const float *logits, int64_t keys, int64_t lanes, float scale, float *maxima) {
  for (int64_t g = 0; g < lanes; g += LT_GROUP_LANES) {
    float most[LT_GROUP_LANES];
    for (int c = 0; c < LT_GROUP_LANES; c++) most[c] = -LT_INFINITY;
    const float *row = logits + g;
    int64_t r = 0;
    for (; r + 4 <= keys; r += 4, row += 4 * lanes) {
#pragma omp simd
      for (int c = 0; c < LT_GROUP_LANES; c++) {
        const float x = row[c] > row[lanes + c] ? row[c] : row[lanes + c];
        const float y = row[2 * lanes + c] > row[3 * lanes + c] ? row[2 * lanes + c] : row[3 * lanes + c];
        const float z = x > y ? x : y;
        most[c] = most[c] > z ? most[c] : z;
      }
    }
    for (; r < keys; r++, row += lanes)
      for (int c = 0; c < LT_GROUP_LANES; c++) most[c] = row[c] > most[c] ? row[c] : most[c];
    for (int c = 0; c < LT_GROUP_LANES; c++) {
      const float scaled = most[c] * scale;
      maxima[g + c] = scaled > maxima[g + c] ? scaled : maxima[g + c];
    }
  }
}

void lt_exponentials(float *logits, int64_t keys, int64_t lanes, float scale, const float *maxima, float *totals) {
  for (int64_t g = 0; g < lanes; g += LT_GROUP_LANES) {
    float shift[LT_GROUP_LANES], total[LT_GROUP_LANES];
    memcpy(shift, maxima + g, sizeof shift);
    memcpy(total, totals + g, sizeof total);
    float *row = logits + g;
    for (int64_t r = 0; r < keys; r++, row += lanes) {
#pragma omp simd
      for (int c = 0; c < LT_GROUP_LANES; c++) {
        const float e = lt_expf(row[c] * scale - shift[c]);
        row[c] = e;
        total[c] += e;
      }
    }
    memcpy(totals + g, total, sizeof total);
  }
}

void lt_store_rows(lt_matrix to, const float *from, int64_t stride, const float *scales, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; r++, from += stride) {
    const float scale = scales == NULL ? 1.0f : scales[r];
    if (to.type == LT_BFLOAT16) {
      bf16 *row = (bf16 *)to.data + r * to.rs;
#pragma omp simd
      for (int64_t c = 0; c < columns; c++) row[c] = lt_to_bf16(from[c] * scale);
    } else {
      float *row = (float *)to.data + r * to.rs;
#pragma omp simd
      for (int64_t c = 0; c < columns; c++) row[c] = from[c] * scale;
    }
  }
}

/* winograd.c: convolutions by 3x3 filters with stride 1, by the transforms of winograd.h. */
#include "winograd.h"

enum { SLAB = 16, TILES = 48 };

/* ---- Filters ---------------------------------------------------------------------------------------------------------- */

static int64_t placeBytes(const lt_convolution *s) { return aligned(lt_packed_bytes(LT_FLOAT32, s->channels, s->filters)); }

int64_t lt_winograd_filter_bytes(const lt_convolution *s) { return PLACES * placeBytes(s); }

int64_t lt_winograd_scratch_bytes(const lt_convolution *s) {
  const int64_t operands = PLACES * (apart(TILES, s->channels) + apart(TILES, s->filters)) * 4;
  const int64_t filters = PLACES * apart(SLAB, s->filters) * 4;
  return aligned(most(operands, filters)) + lt_gemm_scratch_bytes(LT_FLOAT32, TILES, s->channels);
}

INLINE float filterElement(int p, const lt_filter *w, int64_t tap, int64_t c, int64_t m) {
  const float x = w->data[tap / 3 * w->row + tap % 3 * w->column + c * w->channel + m * w->filter];
  return p != LT_FLOAT32 ? lt_from_bf16(lt_to_bf16(x)) : x;
}

void lt_winograd_filters(int p, const lt_convolution *s, lt_filter w, void *packed, void *scratch, int thread, int threads) {
  const int64_t slabs = ceilDivide(s->channels, SLAB), width = rounded(s->filters), between = apart(SLAB, s->filters);
  for (int64_t slab = slabs * thread / threads; slab < slabs * (thread + 1) / threads; slab++) {
    const int64_t c0 = slab * SLAB, c1 = least(s->channels, c0 + SLAB);
    for (int64_t c = c0; c < c1; c++)
      for (int64_t m = 0; m < s->filters; m += LANES) {
        vector values[PLACES];
        for (int64_t tap = 0; tap < 9; tap++) {
          vector taps = {0};
          for (int64_t lane = 0; lane < least(LANES, s->filters - m); lane++)
            taps[lane] = filterElement(p, &w, tap, c, m + lane);
          values[tap / 3 * CELLS + tap % 3] = taps;
        }
        TRANSFORM(fromFilter, values, 3, CELLS);
        for (int i = 0; i < PLACES; i++)
          *(loose *)((float *)scratch + i * between + (c - c0) * width + m) = values[i];
      }
    for (int i = 0; i < PLACES; i++) {
      /* The slab's first row stands where the whole matrix would have it. */
      const lt_matrix b = {(const float *)scratch + i * between - c0 * width, LT_FLOAT32, width, 1};
      lt_pack_slab(LT_FLOAT32, (char *)packed + i * placeBytes(s), b, s->channels, s->filters, c0, c1);
    }
  }
}

/* ---- The convolution -------------------------------------------------------------------------------------------------- */

/* Without the transforms: they spread an infinity, or a NaN, over the tile. */
static __attribute__((noinline)) void computePlainly(int p, const lt_convolution *s, lt_image x, lt_filter w, lt_image y,
                                                     position at) {
  const region cells = cellsAt(s, x, at), results = resultsAt(s, y, at);
  for (int64_t i = 0; i < results.bottom; i++)
    for (int64_t j = 0; j < results.right; j++)
      for (int64_t m = 0; m < s->filters; m++) {
        float sum = 0;
        for (int64_t tap = 0; tap < 9; tap++) {
          const int64_t row = i + tap / 3, column = j + tap % 3;
          if (row < cells.top || row >= cells.bottom || column < cells.left || column >= cells.right) continue;
          const float *from = cells.data + row * x.row + column * x.column;
          for (int64_t c = 0; c < s->channels; c++)
            sum += (p != LT_FLOAT32 ? lt_from_bf16(lt_to_bf16(from[c])) : from[c]) * filterElement(p, &w, tap, c, m);
        }
        results.data[i * y.row + j * y.column + m] = sum;
      }
}

/* Stores a tile's results; returns whether all are finite. */
static int writeTile(region r, lt_image y, int64_t filters, const float *from, int64_t between) {
  vector special = {0};
  for (int64_t m = 0; m < filters; m += LANES) {
    vector values[PLACES];
    UNROLL for (int i = 0; i < PLACES; i++) values[i] = load(LT_FLOAT32, from + i * between + m, filters - m);
    TRANSFORM(toResults, values, CELLS, TILE);
    for (int64_t i = 0; i < r.bottom; i++)
      for (int64_t j = 0; j < r.right; j++) {
        special += values[i * CELLS + j] * 0.0f;
        store(r.data + i * y.row + j * y.column + m, values[i * CELLS + j], filters - m);
      }
  }
  float total = 0;
  for (int lane = 0; lane < LANES; lane++) total += special[lane];
  return total == 0;
}

void lt_winograd(int p, const lt_convolution *s, lt_image x, lt_filter w, const void *packed, lt_image y, void *scratch,
                 int thread, int threads) {
  const int64_t tiles = tilesOf(s), blocks = ceilDivide(tiles, TILES), inside = apart(TILES, s->channels);
  const int64_t outside = apart(TILES, s->filters), wide = rounded(s->channels), broad = rounded(s->filters);
  float *const cells = scratch, *const results = cells + PLACES * inside;
  void *const work = (char *)scratch + lt_winograd_scratch_bytes(s) - lt_gemm_scratch_bytes(LT_FLOAT32, TILES, s->channels);
  for (int64_t block = blocks * thread / threads; block < blocks * (thread + 1) / threads; block++) {
    const int64_t first = block * TILES, count = least(TILES, tiles - first);
    for (int64_t t = 0; t < count; t++)
      writeCells(p, cellsAt(s, x, positionOf(s, first + t)), x, s->channels, cells + t * wide, inside);
    for (int i = 0; i < PLACES; i++)
      lt_gemm(LT_FLOAT32, count, s->filters, s->channels, (lt_matrix){cells + i * inside, LT_FLOAT32, wide, 1},
              (const char *)packed + i * placeBytes(s), 0, lt_panels(LT_FLOAT32, s->filters), results + i * outside,
              LT_FLOAT32, broad, 1.0f, 0, work);
    for (int64_t t = 0; t < count; t++) {
      const position at = positionOf(s, first + t);
      if (!writeTile(resultsAt(s, y, at), y, s->filters, results + t * broad, outside)) computePlainly(p, s, x, w, y, at);
    }
  }
}

/* winogradGradient.c: gradients of convolutions by 3x3 filters with stride 1, by the filter; see winograd.h. */
#include "winograd.h"

enum {
  TILES = 96,
  MOST_PARTS = 16,        /* of the tiles, each with sums of its own; threads divide them, and the filters of each */
  SUMS_BYTES = 16 << 20   /* up to so many bytes of sums there are more than two parts */
};

TRANSFORM_REGION(writeResults, fromResults, TILE)

static int64_t sumsBytes(const lt_convolution *s) { return aligned(PLACES * s->channels * s->filters * 4); }

static int64_t operandsBytes(const lt_convolution *s) {
  return aligned(PLACES * (apart(TILES, s->channels) + apart(TILES, s->filters)) * 4);
}

/* A power of two, which most numbers of threads divide well, or are divided by. */
static int64_t partsOf(const lt_convolution *s) {
  const int64_t blocks = ceilDivide(tilesOf(s), TILES);
  int64_t parts = 1;
  while (2 * parts <= least(blocks, MOST_PARTS) && (parts == 1 || 2 * parts * sumsBytes(s) <= SUMS_BYTES)) parts *= 2;
  return parts;
}

int64_t lt_winograd_sums_bytes(const lt_convolution *s) { return partsOf(s) * sumsBytes(s); }

int64_t lt_winograd_gradient_scratch_bytes(const lt_convolution *s) {
  return operandsBytes(s) + aligned(lt_packed_bytes(LT_FLOAT32, TILES, s->filters)) +
         lt_gemm_scratch_bytes(LT_FLOAT32, s->channels, TILES);
}

/* The sums over the tiles of a part, of the filters [from, to): how many are computed at once changes no sum. */
static void sumPart(int p, const lt_convolution *s, lt_image x, lt_image dy, float *sums, void *scratch, int64_t part,
                    int64_t from, int64_t to) {
  const int64_t tiles = tilesOf(s), blocks = ceilDivide(tiles, TILES), parts = partsOf(s), filters = to - from;
  const int64_t inside = apart(TILES, s->channels), outside = apart(TILES, filters);
  const int64_t wide = rounded(s->channels), broad = rounded(filters), panels = lt_panels(LT_FLOAT32, filters);
  const int64_t begin = blocks * part / parts, end = blocks * (part + 1) / parts;
  float *const cells = scratch, *const results = cells + PLACES * inside;
  char *const packed = (char *)cells + operandsBytes(s);
  void *const work = packed + aligned(lt_packed_bytes(LT_FLOAT32, TILES, s->filters));
  dy.data = (float *)dy.data + from;
  for (int64_t block = begin; block < end; block++) {
    const int64_t first = block * TILES, count = least(TILES, tiles - first);
    for (int64_t t = 0; t < count; t++) {
      const position at = positionOf(s, first + t);
      writeCells(p, cellsAt(s, x, at), x, s->channels, cells + t * wide, inside);
      writeResults(p, resultsAt(s, dy, at), dy, filters, results + t * broad, outside);
    }
    for (int i = 0; i < PLACES; i++) {
      const lt_matrix b = {results + i * outside, LT_FLOAT32, broad, 1};
      lt_pack_panels(LT_FLOAT32, packed, b, count, filters, 0, panels);
      lt_gemm(LT_FLOAT32, s->channels, filters, count, (lt_matrix){cells + i * inside, LT_FLOAT32, 1, wide}, packed, 0,
              panels, sums + i * s->channels * s->filters + from, LT_FLOAT32, s->filters, 1.0f, block > begin, work);
    }
  }
}

void lt_winograd_sums(int p, const lt_convolution *s, lt_image x, lt_image dy, void *sums, void *scratch, int thread,
                      int threads) {
  const int64_t groups = ceilDivide(s->filters, LANES), all = partsOf(s) * groups;
  int64_t unit = all * thread / threads;
  const int64_t last = all * (thread + 1) / threads;
  while (unit < last) {
    const int64_t part = unit / groups, from = unit % groups, to = least(groups, from + last - unit);
    sumPart(p, s, x, dy, (float *)((char *)sums + part * sumsBytes(s)), scratch, part, from * LANES,
            least(s->filters, to * LANES));
    unit += to - from;
  }
}

/* The taps' gradients of one channel and filter, without the transforms. */
static __attribute__((noinline)) void sumPlainly(int p, const lt_convolution *s, lt_image x, lt_image dy, int64_t c, int64_t m,
                                                 float *dw) {
  for (int64_t tap = 0; tap < 9; tap++) {
    const int64_t above = s->above - tap / 3, before = s->before - tap % 3;
    float sum = 0;
    for (int64_t item = 0; item < s->batch; item++)
      for (int64_t i = most(0, above); i < least(s->down, s->height + above); i++)
        for (int64_t j = most(0, before); j < least(s->across, s->width + before); j++) {
          const float cell = ((const float *)x.data)[item * x.batch + (i - above) * x.row + (j - before) * x.column + c];
          const float result = ((const float *)dy.data)[item * dy.batch + i * dy.row + j * dy.column + m];
          sum += p != LT_FLOAT32 ? lt_from_bf16(lt_to_bf16(cell)) * lt_from_bf16(lt_to_bf16(result)) : cell * result;
        }
    dw[tap * s->channels * s->filters] = sum;
  }
}

void lt_winograd_gradient(int p, const lt_convolution *s, lt_image x, lt_image dy, const void *sums, float *dw, int thread,
                          int threads) {
  const int64_t parts = partsOf(s), size = s->channels * s->filters, groups = ceilDivide(size, LANES);
  for (int64_t group = groups * thread / threads; group < groups * (thread + 1) / threads; group++) {
    const int64_t at = group * LANES, count = least(LANES, size - at);
    vector values[PLACES], special = {0};
    for (int i = 0; i < PLACES; i++) {
      values[i] = (vector){0};
      for (int64_t part = 0; part < parts; part++)
        values[i] += load(LT_FLOAT32, (const float *)((const char *)sums + part * sumsBytes(s)) + i * size + at, count);
    }
    TRANSFORM(toFilter, values, CELLS, 3);
    for (int tap = 0; tap < 9; tap++) {
      special += values[tap / 3 * CELLS + tap % 3] * 0.0f;
      store(dw + tap * size + at, values[tap / 3 * CELLS + tap % 3], count);
    }
    for (int64_t lane = 0; lane < count; lane++)
      if (special[lane] != 0)
        sumPlainly(p, s, x, dy, (at + lane) / s->filters, (at + lane) % s->filters, dw + at + lane);
  }
}

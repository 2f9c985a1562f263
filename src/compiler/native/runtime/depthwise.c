/* depthwise.c: convolutions of each channel by a filter of its own, and their gradients by the input and by the filter.

   Both the result and the gradient by the input gather: a cell is the sum of the cells of another image that some taps
   join it to. Which ones, along each axis, is found once per call. */
#include "lanes.h"

/* Vectors of channels that are summed at once: more sums hide the latency of multiply-adds, and what finding a cell takes. */
enum { AT_ONCE = 8 };

/* Calls with a number of vectors, and of channels if it is one vector, for all channels from c = 0 on, as many at once as there
   are. */
#define EACH_CHANNELS(call)                                                                  \
  int64_t c = 0;                                                                             \
  for (; c + AT_ONCE * LANES <= channels; c += AT_ONCE * LANES) call(AT_ONCE, LANES);        \
  if (c + 4 * LANES <= channels) call(4, LANES), c += 4 * LANES;                             \
  if (c + 2 * LANES <= channels) call(2, LANES), c += 2 * LANES;                             \
  if (c + LANES <= channels) call(1, LANES), c += LANES;                                     \
  if (c < channels) call(1, channels - c);

/* A tap that joins a cell to one of the other image: the elements from the first tap, and from the first cell. */
typedef struct {
  int64_t tap, cell;
} join;

/* Joins of the cells along an axis: those of cell i are joins[i * taps], up to counts[i]. */
typedef struct {
  const join *joins;
  const int64_t *counts;
  int64_t taps;
} axis;

static int64_t cellsOf(const lt_windows *w, int backward) { return backward ? w->size : w->count; }

static int64_t axisBytes(const lt_windows *w) {
  return most(w->size, w->count) * (w->taps * (int64_t)sizeof(join) + (int64_t)sizeof(int64_t));
}

int64_t lt_depthwise_scratch_bytes(const lt_depthwise *s) { return axisBytes(&s->down) + axisBytes(&s->across); }

/* Cell i, or window i if forward, and the window (cell) that tap t joins it to; -1 if there is none. */
static int64_t joined(const lt_windows *w, int backward, int64_t i, int64_t t) {
  const int64_t at = backward ? i + w->before - t * w->dilation : i * w->stride + t * w->dilation - w->before;
  if (!backward) return at >= 0 && at < w->size ? at : -1;
  return at >= 0 && at % w->stride == 0 && at / w->stride < w->count ? at / w->stride : -1;
}

static axis axisOf(const lt_windows *w, int backward, int64_t tapStride, int64_t cellStride, void *memory) {
  const int64_t cells = cellsOf(w, backward);
  join *const joins = memory;
  int64_t *const counts = (int64_t *)(joins + cells * w->taps);
  for (int64_t i = 0; i < cells; i++) {
    counts[i] = 0;
    for (int64_t t = 0; t < w->taps; t++) {
      const int64_t at = joined(w, backward, i, t);
      if (at >= 0) joins[i * w->taps + counts[i]++] = (join){t * tapStride, at * cellStride};
    }
  }
  return (axis){joins, counts, w->taps};
}

/* `vectors` neighbouring vectors of a cell's channels; `count` channels if it is one vector. */
INLINE void gatherVectors(const int vectors, int64_t count, axis down, int64_t i, axis across, int64_t j, const float *from,
                          const float *taps, float *to) {
  vector sums[AT_ONCE] = {{0}};
  const join *const rows = down.joins + i * down.taps, *const columns = across.joins + j * across.taps;
  for (int64_t a = 0; a < down.counts[i]; a++)
    for (int64_t b = 0; b < across.counts[j]; b++) {
      const float *const cell = from + rows[a].cell + columns[b].cell, *const tap = taps + rows[a].tap + columns[b].tap;
      UNROLL for (int v = 0; v < vectors; v++)
        sums[v] += load(LT_FLOAT32, cell + v * LANES, count) * load(LT_FLOAT32, tap + v * LANES, count);
    }
  UNROLL for (int v = 0; v < vectors; v++) store(to + v * LANES, sums[v], count);
}

static void gather(const lt_depthwise *s, int backward, lt_image x, const float *taps, lt_image y, void *scratch, int thread,
                   int threads) {
  const int64_t rows = cellsOf(&s->down, backward), columns = cellsOf(&s->across, backward), channels = s->channels;
  const axis down = axisOf(&s->down, backward, s->across.taps * channels, x.row, scratch);
  const axis across = axisOf(&s->across, backward, channels, x.column, (char *)scratch + axisBytes(&s->down));
  const int64_t all = s->batch * rows;
  for (int64_t row = all * thread / threads; row < all * (thread + 1) / threads; row++) {
    const int64_t item = row / rows, i = row % rows;
    const float *const from = (const float *)x.data + item * x.batch;
    float *const to = (float *)y.data + item * y.batch + i * y.row;
    for (int64_t j = 0; j < columns; j++) {
#define GATHER(vectors, count) gatherVectors(vectors, count, down, i, across, j, from + c, taps + c, to + j * y.column + c)
      EACH_CHANNELS(GATHER)
#undef GATHER
    }
  }
}

void lt_depthwise_forward(const lt_depthwise *s, lt_image x, const float *w, lt_image y, void *scratch, int thread,
                          int threads) {
  gather(s, 0, x, w, y, scratch, thread, threads);
}

void lt_depthwise_backward(const lt_depthwise *s, lt_image dy, const float *w, lt_image dx, void *scratch, int thread,
                           int threads) {
  gather(s, 1, dy, w, dx, scratch, thread, threads);
}

/* ---- The gradient by the filter --------------------------------------------------------------------------------------- */

static int64_t sizeOf(const lt_depthwise *s) { return s->down.taps * s->across.taps * s->channels; }

/* Parts of the rows, each with sums of its own; threads divide them. */
static int64_t partsOf(const lt_depthwise *s) { return least(s->batch * s->down.count, 32); }

int64_t lt_depthwise_sums_bytes(const lt_depthwise *s) { return partsOf(s) * sizeOf(s) * 4; }

/* sums[c] += x[j, c] dy[j, c] over `columns` windows j, for `vectors` vectors of channels. A row's sum is a term of its
   own, so that the terms of a large sum do not vanish in it. */
INLINE void addVectors(const int vectors, int64_t count, const float *x, int64_t step, const float *dy, int64_t column,
                       int64_t columns, float *sums) {
  vector row[AT_ONCE] = {{0}};
  for (int64_t j = 0; j < columns; j++)
    UNROLL for (int v = 0; v < vectors; v++)
      row[v] += load(LT_FLOAT32, x + j * step + v * LANES, count) * load(LT_FLOAT32, dy + j * column + v * LANES, count);
  UNROLL for (int v = 0; v < vectors; v++)
    store(sums + v * LANES, load(LT_FLOAT32, sums + v * LANES, count) + row[v], count);
}

static void addRow(const lt_depthwise *s, lt_image x, const float *cells, lt_image dy, const float *results, float *sums) {
  const lt_windows *const w = &s->across;
  const int64_t channels = s->channels, step = w->stride * x.column;
  for (int64_t t = 0; t < w->taps; t++, sums += channels) {
    int64_t first = 0, last = w->count;
    const int64_t offset = t * w->dilation - w->before; /* of the first window's cell */
    while (first < last && first * w->stride + offset < 0) first++;
    while (first < last && (last - 1) * w->stride + offset >= w->size) last--;
    if (first == last) continue;
    const float *const cell = cells + (first * w->stride + offset) * x.column, *const result = results + first * dy.column;
    const int64_t columns = last - first;
#define ADD(vectors, count) addVectors(vectors, count, cell + c, step, result + c, dy.column, columns, sums + c)
    EACH_CHANNELS(ADD)
#undef ADD
  }
}

static void sumRows(const lt_depthwise *s, lt_image x, lt_image dy, float *sums, int64_t from, int64_t to) {
  const int64_t rows = s->down.count;
  memset(sums, 0, (size_t)sizeOf(s) * sizeof *sums);
  for (int64_t row = from; row < to; row++) {
    const int64_t item = row / rows, i = row % rows;
    const float *const results = (const float *)dy.data + item * dy.batch + i * dy.row;
    for (int64_t t = 0; t < s->down.taps; t++) {
      const int64_t at = joined(&s->down, 0, i, t);
      if (at < 0) continue;
      const float *const cells = (const float *)x.data + item * x.batch + at * x.row;
      addRow(s, x, cells, dy, results, sums + t * s->across.taps * s->channels);
    }
  }
}

void lt_depthwise_sums(const lt_depthwise *s, lt_image x, lt_image dy, float *sums, int thread, int threads) {
  const int64_t parts = partsOf(s), rows = s->batch * s->down.count;
  for (int64_t part = parts * thread / threads; part < parts * (thread + 1) / threads; part++)
    sumRows(s, x, dy, sums + part * sizeOf(s), rows * part / parts, rows * (part + 1) / parts);
}

void lt_depthwise_filter(const lt_depthwise *s, const float *sums, float *dw, int thread, int threads) {
  const int64_t parts = partsOf(s), size = sizeOf(s);
  for (int64_t i = size * thread / threads; i < size * (thread + 1) / threads; i++) {
    float sum = 0;
    for (int64_t part = 0; part < parts; part++) sum += sums[part * size + i];
    dw[i] = sum;
  }
}

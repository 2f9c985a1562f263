/* quantizedKernel.h: products by weights of 8 and 4 bits; a file for one instruction set defines these and includes it once.

   LT_LANES               float32 lanes of a vector
   LT_TILE_ROWS, LT_TILE_CHANNELS   of a tile: 3 and 4, or 2 and 2
   LT_BYTES(p)            LT_LANES int8 at p as floats
   LT_NIBBLES(words, i)   bits 4 i to 4 i + 3 of each word, less 8, as floats
   LT_SCALES(p)           bf16 of consecutive blocks, each in four lanes, and LT_TOTAL(v), the sum of lanes, where there are instructions

   Weights are multiplied in planes of LT_LANES, which a row of x is ordered by as well. Of 8 bits, planes are neighbours. 4 bits are
   read as vectors of words, a chunk of eight planes each: plane i has the bits from 4 i on of all words. Blocks are LT_BLOCK
   weights in 16 bytes, the first half of them in the lower bits, as in GGML's Q4_0; so all weights of a word are of one block. */
#include <string.h>

#include "quantized.h"

typedef float lt_vector __attribute__((vector_size(4 * LT_LANES)));
typedef float lt_loose __attribute__((vector_size(4 * LT_LANES), aligned(4), may_alias));
typedef uint32_t lt_words __attribute__((vector_size(4 * LT_LANES)));
typedef uint32_t lt_loosewords __attribute__((vector_size(4 * LT_LANES), aligned(1), may_alias));

#ifndef LT_IN_REGISTER
#define LT_IN_REGISTER(v)
#endif

#define LT_UNROLL _Pragma("GCC unroll 16")
#define LT_INLINE static inline __attribute__((always_inline))

enum { NIBBLES = 8, BLOCKS = LT_LANES / 4, CHUNK = 8 * LT_LANES };

/* Planes of a weight's row, in chunks that have one vector of scales each. */
typedef struct {
  int64_t chunks, planes; /* of each chunk, but for the last one */
  int64_t all;
} lt_order;

LT_INLINE lt_order orderOf(const lt_quantized *w) {
  if (w->bits == 4) {
    const int64_t chunks = (w->depth + CHUNK - 1) / CHUNK;
    return (lt_order){chunks, NIBBLES, chunks * NIBBLES};
  }
  const int64_t all = (w->depth + LT_LANES - 1) / LT_LANES;
  return (lt_order){w->groups, w->groups > 1 ? all / w->groups : all, all};
}

static int64_t paddedSize(const lt_quantized *w) { return orderOf(w).all * LT_LANES; }

/* The place of a weight's factor in a row of x. */
LT_INLINE int64_t placeOf(int64_t k) {
  const int64_t chunk = k / CHUNK, block = k % CHUNK / LT_BLOCK, i = k % LT_BLOCK;
  const int64_t byte = i % 16, plane = byte % 4 * 2 + i / 16;
  return chunk * CHUNK + plane * LT_LANES + block * 4 + byte / 4;
}

LT_INLINE float element(const void *from, int32_t type, int64_t i) {
  return type == LT_BFLOAT16 ? lt_from_bf16(((const bf16 *)from)[i]) : ((const float *)from)[i];
}

/* Rows of x in the order of the planes; what is beyond them is 0. */
static void prepare(const lt_quantized *w, lt_matrix x, int64_t rows, float *to) {
  const int64_t padded = paddedSize(w);
  for (int64_t r = 0; r < rows; r++, to += padded) {
    const void *from = (const char *)x.data + r * x.rs * (x.type == LT_BFLOAT16 ? 2 : 4);
    if (w->bits == 8 && x.type == LT_FLOAT32) {
      memcpy(to, from, (size_t)w->depth * 4);
    } else if (w->bits == 8) {
      for (int64_t k = 0; k < w->depth; k++) to[k] = element(from, x.type, k);
    } else {
      for (int64_t k = 0; k < w->depth; k += LT_BLOCK) {
        float *block = to + placeOf(k);
        for (int i = 0; i < LT_BLOCK; i++)
          block[(i % 4 * 2 + i / 16) * LT_LANES + i % 16 / 4] = element(from, x.type, k + i);
      }
      for (int64_t k = w->depth; k < padded; k += LT_BLOCK) {
        float *block = to + placeOf(k);
        for (int i = 0; i < LT_BLOCK; i++) block[(i % 4 * 2 + i / 16) * LT_LANES + i % 16 / 4] = 0;
      }
      continue;
    }
    for (int64_t k = w->depth; k < padded; k++) to[k] = 0;
  }
}

/* The scales of a chunk of a channel; 0 beyond its last weight. */
LT_INLINE lt_vector scalesOf(const int bits, const lt_quantized *w, int64_t channel, int64_t chunk) {
  const int64_t first = channel * w->groups;
  if (bits == 8 || w->groups == 1) {
    const float scale = element(w->scales, w->scale_type, first + (bits == 8 ? chunk : 0));
    return scale - (lt_vector){0};
  }
  const int64_t blocks = w->depth / LT_BLOCK, each = blocks / w->groups, from = chunk * BLOCKS;
  if (each % BLOCKS == 0) return element(w->scales, w->scale_type, first + from / each) - (lt_vector){0};
#ifdef LT_SCALES
  if (each == 1 && w->scale_type == LT_BFLOAT16 && from + BLOCKS <= blocks)
    return LT_SCALES((const bf16 *)w->scales + first + from);
#endif
  lt_vector found;
  LT_UNROLL for (int b = 0; b < BLOCKS; b++) {
    const float scale =
        from + b < blocks ? element(w->scales, w->scale_type, first + (from + b) / each) : 0;
    LT_UNROLL for (int i = 0; i < 4; i++) found[4 * b + i] = scale;
  }
  return found;
}

LT_INLINE const char *codesOf(const int bits, const lt_quantized *w, int64_t channel) {
  return (const char *)w->codes + channel * (bits == 4 ? w->depth / 2 : w->depth);
}

/* The last plane of 8-bit codes, or chunk of words, of which fewer bytes exist. */
#define LT_PARTIAL(buffer, from, bytes)                                                                                \
  char buffer[4 * LT_LANES] = {0};                                                                                     \
  memcpy(buffer, from, (size_t)(bytes))

/* Adds the product of a plane to a tile's sums. */
#define LT_ADD_PLANE(plane)                                                                                            \
  LT_UNROLL for (int r = 0; r < rows; r++) {                                                                           \
    const lt_vector left = *(const lt_loose *)(x + r * padded + (plane) * LT_LANES);                                   \
    LT_UNROLL for (int j = 0; j < channels; j++) parts[r][j] += left * q[j];                                           \
  }

/* Ends a chunk: its sums times their scales. */
#define LT_END_CHUNK(scale)                                                                                            \
  LT_UNROLL for (int j = 0; j < channels; j++) {                                                                       \
    const lt_vector factor = scale;                                                                                    \
    LT_UNROLL for (int r = 0; r < rows; r++) {                                                                         \
      sums[r][j] += parts[r][j] * factor;                                                                              \
      parts[r][j] = (lt_vector){0};                                                                                    \
    }                                                                                                                  \
  }

#define LT_BEGIN_SUMS                                                                                                  \
  lt_vector parts[LT_TILE_ROWS][LT_TILE_CHANNELS], sums[LT_TILE_ROWS][LT_TILE_CHANNELS], q[LT_TILE_CHANNELS];          \
  LT_UNROLL for (int r = 0; r < rows; r++) LT_UNROLL for (int j = 0; j < channels; j++) parts[r][j] = sums[r][j] = (lt_vector){0}

LT_INLINE float total(lt_vector v) {
#ifdef LT_TOTAL
  return LT_TOTAL(v);
#else
  float sums[LT_LANES];
  LT_UNROLL for (int i = 0; i < LT_LANES; i++) sums[i] = v[i];
  for (int half = LT_LANES / 2; half > 0; half /= 2)
    for (int i = 0; i < half; i++) sums[i] += sums[i + half];
  return sums[0];
#endif
}

#ifdef LT_STORE_TOTALS
#define LT_STORE_ROW(r)                                                                                                \
  if (channels == 4) {                                                                                                 \
    LT_STORE_TOTALS(c + (r) * ldc, sums[r]);                                                                           \
    continue;                                                                                                          \
  }
#else
#define LT_STORE_ROW(r)
#endif
#define LT_STORE_SUMS                                                                                                  \
  LT_UNROLL for (int r = 0; r < rows; r++) {                                                                           \
    LT_STORE_ROW(r)                                                                                                    \
    LT_UNROLL for (int j = 0; j < channels; j++) c[r * ldc + j] = total(sums[r][j]);                                   \
  }

/* A tile of few rows, by weights as memory holds them. */
LT_INLINE void direct(const int bits, const int rows, const int channels, const lt_quantized *w, int64_t first,
                               const float *x, int64_t padded, float *c, int64_t ldc) {
  const lt_order order = orderOf(w);
  const char *codes[LT_TILE_CHANNELS];
  LT_UNROLL for (int j = 0; j < channels; j++) codes[j] = codesOf(bits, w, first + j);
  const int64_t bytes = bits == 4 ? w->depth / 2 : w->depth, next = 2 * channels * bytes; /* to the channels after the next ones */
  LT_BEGIN_SUMS;
  for (int64_t chunk = 0; chunk < order.chunks; chunk++) {
    if (bits == 4) {
      const int64_t at = chunk * 4 * LT_LANES, left = bytes - at;
      lt_words words[LT_TILE_CHANNELS];
      if (left >= 4 * LT_LANES) {
        LT_UNROLL for (int j = 0; j < channels; j++) {
          words[j] = *(const lt_loosewords *)(codes[j] + at);
          __builtin_prefetch(codes[j] + at + next, 0, 2);
        }
      } else {
        LT_UNROLL for (int j = 0; j < channels; j++) {
          LT_PARTIAL(rest, codes[j] + at, left);
          words[j] = *(const lt_loosewords *)rest;
        }
      }
      LT_UNROLL for (int i = 0; i < NIBBLES; i++) {
        LT_UNROLL for (int j = 0; j < channels; j++) q[j] = LT_NIBBLES(words[j], i);
        LT_ADD_PLANE(chunk * NIBBLES + i);
      }
    } else {
      const int64_t begin = chunk * order.planes, end = begin + order.planes, whole = bytes / LT_LANES < end ? bytes / LT_LANES : end;
      for (int64_t plane = begin; plane < whole; plane++) {
        const int64_t at = plane * LT_LANES;
        LT_UNROLL for (int j = 0; j < channels; j++) {
          q[j] = LT_BYTES(codes[j] + at);
          if (at % 64 == 0) __builtin_prefetch(codes[j] + at + next, 0, 2);
        }
        LT_ADD_PLANE(plane);
      }
      if (whole < end) {
        LT_UNROLL for (int j = 0; j < channels; j++) {
          LT_PARTIAL(rest, codes[j] + whole * LT_LANES, bytes - whole * LT_LANES);
          q[j] = LT_BYTES(rest);
        }
        LT_ADD_PLANE(whole);
      }
    }
    LT_END_CHUNK(scalesOf(bits, w, first + j, chunk));
  }
  LT_STORE_SUMS;
}

/* A plane of codes of 8 bits, or a chunk of planes of 4 bits, as floats. */
LT_INLINE void expandPlanes(const int bits, const char *from, float *to) {
  if (bits == 8) {
    *(lt_loose *)to = LT_BYTES(from);
  } else {
    const lt_words words = *(const lt_loosewords *)from;
    LT_UNROLL for (int i = 0; i < NIBBLES; i++) *(lt_loose *)(to + i * LT_LANES) = LT_NIBBLES(words, i);
  }
}

/* A channel's codes as floats, plane by plane, and its scales. */
LT_INLINE void expand(const int bits, const lt_quantized *w, int64_t channel, float *to, float *scales) {
  const lt_order order = orderOf(w);
  const char *codes = codesOf(bits, w, channel);
  const int64_t bytes = bits == 4 ? w->depth / 2 : w->depth;
  for (int64_t chunk = 0; chunk < order.chunks; chunk++)
    *(lt_loose *)(scales + chunk * LT_LANES) = scalesOf(bits, w, channel, chunk);
  const int64_t step = bits == 4 ? 4 * LT_LANES : LT_LANES, whole = bytes / step * step;
  for (int64_t at = 0; at < whole; at += step, to += bits == 4 ? CHUNK : LT_LANES) expandPlanes(bits, codes + at, to);
  if (whole < bytes) {
    LT_PARTIAL(rest, codes + whole, bytes - whole);
    expandPlanes(bits, rest, to);
  }
}

/* Planes that rows of x and expanded weights are multiplied by at a time: they stay in the first-level cache. */
enum { SPAN = 768 / LT_LANES };
/* Tiles of channels that are expanded at a time. */
enum { SIDES = 2, MOST_TILES = SIDES + LT_TILE_CHANNELS - 2 /* the last ones of one channel each */ };

/* Sums of a tile between two spans. */
typedef struct {
  lt_vector parts[LT_TILE_ROWS][LT_TILE_CHANNELS], sums[LT_TILE_ROWS][LT_TILE_CHANNELS];
} lt_state;

/* A span of a tile of expanded weights; with the last one, the sums of `direct`, to the bit. */
LT_INLINE void dense(const int rows, const int channels, lt_order order, const float *expanded, const float *scales,
                     const float *x, int64_t begin, lt_state *state, float *c, int64_t ldc) {
  const int64_t padded = order.all * LT_LANES, perChannel = order.chunks * LT_LANES;
  const int64_t end = begin + SPAN < order.all ? begin + SPAN : order.all;
  LT_BEGIN_SUMS;
  if (begin > 0) {
    LT_UNROLL for (int r = 0; r < rows; r++) LT_UNROLL for (int j = 0; j < channels; j++) {
      parts[r][j] = state->parts[r][j];
      sums[r][j] = state->sums[r][j];
    }
  }
  for (int64_t plane = begin; plane < end;) {
    const int64_t chunk = plane / order.planes, last = (chunk + 1) * order.planes, stop = last < end ? last : end;
    for (; plane < stop; plane++) {
      LT_UNROLL for (int j = 0; j < channels; j++) {
        q[j] = *(const lt_loose *)(expanded + j * padded + plane * LT_LANES);
        LT_IN_REGISTER(q[j]);
      }
      LT_ADD_PLANE(plane);
    }
    if (stop == last) {
      LT_END_CHUNK(*(const lt_loose *)(scales + j * perChannel + chunk * LT_LANES));
    }
  }
  if (end == order.all) {
    LT_STORE_SUMS;
  } else {
    LT_UNROLL for (int r = 0; r < rows; r++) LT_UNROLL for (int j = 0; j < channels; j++) {
      state->parts[r][j] = parts[r][j];
      state->sums[r][j] = sums[r][j];
    }
  }
}

#define LT_DIRECT(bits, rows, channels)                                                                                \
  static __attribute__((noinline)) void direct_##bits##_##rows##_##channels(                                  \
      const lt_quantized *w, int64_t first, const float *x, int64_t padded, float *c, int64_t ldc) {                   \
    direct(bits, rows, channels, w, first, x, padded, c, ldc);                                                \
  }
#define LT_DENSE(rows, channels)                                                                                       \
  static __attribute__((noinline)) void dense_##rows##_##channels(                                            \
      lt_order order, const float *expanded, const float *scales, const float *x, int64_t begin, lt_state *state,      \
      float *c, int64_t ldc) {                                                                                         \
    dense(rows, channels, order, expanded, scales, x, begin, state, c, ldc);                                                \
  }
#if LT_TILE_ROWS == 3 && LT_TILE_CHANNELS == 4
#define LT_TILES(define) define(1, 1) define(2, 1) define(3, 1) define(1, 4) define(2, 4) define(3, 4)
#define LT_TABLE(name) {{name##_1_1, name##_2_1, name##_3_1}, {name##_1_4, name##_2_4, name##_3_4}}
#else
#define LT_TILES(define) define(1, 1) define(2, 1) define(1, 2) define(2, 2)
#define LT_TABLE(name) {{name##_1_1, name##_2_1}, {name##_1_2, name##_2_2}}
#endif
#define LT_DIRECT_8(rows, channels) LT_DIRECT(8, rows, channels)
#define LT_DIRECT_4(rows, channels) LT_DIRECT(4, rows, channels)
LT_TILES(LT_DIRECT_8)
LT_TILES(LT_DIRECT_4)
LT_TILES(LT_DENSE)

/* Floats of what expanded channels take: codes, scales, and the states of tiles of `rows`. */
static int64_t expandedSize(const lt_quantized *w, int64_t rows) {
  const lt_order order = orderOf(w);
  const int64_t tiles = (rows + LT_TILE_ROWS - 1) / LT_TILE_ROWS;
  const int64_t states = order.all > SPAN ? MOST_TILES * tiles * (int64_t)(sizeof(lt_state) / sizeof(float)) : 0;
  return SIDES * LT_TILE_CHANNELS * (order.all + order.chunks) * LT_LANES + states;
}

/* lt_quantized_kernel.multiply */
static void multiply(const lt_quantized *w, int64_t first, int64_t channels, const float *x, int64_t rows, float *c,
                     int64_t ldc, float *expanded) {
  typedef void directTile(const lt_quantized *, int64_t, const float *, int64_t, float *, int64_t);
  typedef void denseTile(lt_order, const float *, const float *, const float *, int64_t, lt_state *, float *, int64_t);
  static directTile *const directs[2][2][LT_TILE_ROWS] = {LT_TABLE(direct_8), LT_TABLE(direct_4)};
  static denseTile *const denses[2][LT_TILE_ROWS] = LT_TABLE(dense);
  const lt_order order = orderOf(w);
  const int64_t padded = order.all * LT_LANES, perChannel = order.chunks * LT_LANES;
  if (rows <= LT_TILE_ROWS) {
    for (int64_t j = 0, width; j < channels; j += width) {
      width = channels - j >= LT_TILE_CHANNELS ? LT_TILE_CHANNELS : 1;
      directs[w->bits == 4][width > 1][rows - 1](w, first + j, x, padded, c + j, ldc);
    }
    return;
  }
  float *const scales = expanded + SIDES * LT_TILE_CHANNELS * padded;
  lt_state *const states = (lt_state *)(scales + SIDES * LT_TILE_CHANNELS * perChannel);
  for (int64_t j = 0; j < channels; j += SIDES * LT_TILE_CHANNELS) {
    const int64_t left = channels - j, count = left < SIDES * LT_TILE_CHANNELS ? left : SIDES * LT_TILE_CHANNELS;
    for (int64_t i = 0; i < count; i++) {
      if (w->bits == 4)
        expand(4, w, first + j + i, expanded + i * padded, scales + i * perChannel);
      else
        expand(8, w, first + j + i, expanded + i * padded, scales + i * perChannel);
    }
    for (int64_t begin = 0; begin < order.all; begin += SPAN) {
      lt_state *state = states;
      for (int64_t r = 0; r < rows; r += LT_TILE_ROWS) {
        const int64_t height = rows - r < LT_TILE_ROWS ? rows - r : LT_TILE_ROWS;
        for (int64_t i = 0, width; i < count; i += width) {
          width = count - i >= LT_TILE_CHANNELS ? LT_TILE_CHANNELS : 1;
          denses[width > 1][height - 1](order, expanded + i * padded, scales + i * perChannel, x + r * padded, begin, state++,
                                        c + r * ldc + j + i, ldc);
        }
      }
    }
  }
}

#define LT_QUANTIZED_KERNEL {16, paddedSize, expandedSize, prepare, multiply}

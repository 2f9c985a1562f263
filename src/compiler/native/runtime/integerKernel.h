/* integerKernel.h: products of rows that are rounded to 8 bits by weights of 8 and 4 bits, summed as integers; a file for one
   instruction set defines these and includes it once.

   LT_LANES                             32-bit lanes of a vector: each has a channel
   LT_TILE_ROWS, LT_TILE_VECTORS        of a tile: 6 or 2, and 2 or 1
   LT_FEW_ROWS                          of which each reads codes as memory holds them
   LT_QUADS(to, from, stride)           four vectors of words: lane i of vector j has bytes 4 j to 4 j + 3 of 16 at from + i * stride
   LT_DOT(bits, sums, w, x)             sums + the product of four unsigned bytes of each lane of w by four signed ones of the word x

   Of a weight, 128 plus its code of 8 bits, or 8 plus that of 4, is an unsigned byte; a sum begins with what that adds to it. Sums of
   integers are exact, and the few operations of floats are the same ones in the same order in all files, none of them fused: each
   CPU gives the same bits, for any number of rows. */
#include <string.h>

#include "quantized.h"

typedef float lt_vector __attribute__((vector_size(4 * LT_LANES)));
typedef float lt_loose __attribute__((vector_size(4 * LT_LANES), aligned(4), may_alias));
typedef int32_t lt_ints __attribute__((vector_size(4 * LT_LANES)));
typedef uint32_t lt_words __attribute__((vector_size(4 * LT_LANES)));
typedef uint32_t lt_loosewords __attribute__((vector_size(4 * LT_LANES), aligned(4), may_alias));

#define LT_UNROLL _Pragma("GCC unroll 16")
#define LT_INLINE static inline __attribute__((always_inline))

/* Bytes of a channel that are read at a time; channels of a panel. */
enum { STEP = 16, PANEL = LT_LANES * LT_TILE_VECTORS, MOST_QUADS = LT_BLOCK / 4 };

LT_INLINE int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
LT_INLINE int quadsOfStep(const int bits) { return bits == 4 ? 8 : 4; }

static int64_t bytesOf(const lt_quantized *w) { return w->bits == 4 ? w->depth / 2 : w->depth; }
static int64_t stepsOf(const lt_quantized *w) { return (bytesOf(w) + STEP - 1) / STEP; }
static int64_t wordsOf(const lt_quantized *w) { return stepsOf(w) * quadsOfStep(w->bits); }
/* Sums of integers of a row and a channel: of one group all, else one of each LT_BLOCK weights. */
static int64_t sumsOf(const lt_quantized *w) { return w->groups == 1 ? 1 : w->depth / LT_BLOCK; }

/* A prepared row of x: words of four codes each, then for each sum what it begins with, and its scale. */
static int64_t paddedSize(const lt_quantized *w) { return wordsOf(w) + 2 * sumsOf(w); }

LT_INLINE float element(const void *from, int32_t type, int64_t i) {
  return type == LT_BFLOAT16 ? lt_from_bf16(((const bf16 *)from)[i]) : ((const float *)from)[i];
}

/* Rounds `count` elements to codes from -127 to 127, halves to even ones; returns their scale, NaN where one is not finite. Where
   none reaches 2^-100, all are 0. */
LT_INLINE float roundGroup(const int32_t type, const char *x, int64_t count, int8_t *codes) {
  enum { INFINITE = 0x7f800000, LEAST = 0x0d800000 };
  const float whole = 12582912.0f; /* 3 * 2^22: the lower bits of its sum with a number are the rounded number */
  int32_t largest = 0;
  for (int64_t i = 0; i < count; i++) {
    const float value = element(x, type, i);
    int32_t bits;
    memcpy(&bits, &value, 4);
    bits &= 0x7fffffff;
    largest = bits > largest ? bits : largest;
  }
  float most;
  memcpy(&most, &largest, 4);
  const int isRounded = largest >= LEAST && largest < INFINITE;
  const float factor = isRounded ? 127.0f / most : 0;
  for (int64_t i = 0; i < count; i++) {
    const float shifted = (isRounded ? element(x, type, i) : 0) * factor + whole;
    int32_t bits;
    memcpy(&bits, &shifted, 4);
    codes[i] = (int8_t)bits;
  }
  return largest >= INFINITE ? __builtin_nanf("") : isRounded ? most / 127.0f : 0;
}

/* Rows of x in codes. */
static void prepare(const lt_quantized *w, lt_matrix x, int64_t rows, float *to) {
  const int64_t words = wordsOf(w), sums = sumsOf(w), group = w->depth / w->groups;
  for (int64_t r = 0; r < rows; r++, to += words + 2 * sums) {
    const int64_t size = x.type == LT_BFLOAT16 ? 2 : 4;
    const char *from = (const char *)x.data + r * x.rs * size;
    int8_t *codes = (int8_t *)to;
    float *scales = to + words + sums;
    for (int64_t g = 0; g < w->groups; g++) {
      const char *part = from + g * group * size;
      const float scale = x.type == LT_BFLOAT16 ? roundGroup(LT_BFLOAT16, part, group, codes + g * group)
                                                : roundGroup(LT_FLOAT32, part, group, codes + g * group);
      for (int64_t i = 0; i < sums / w->groups; i++) scales[g * (sums / w->groups) + i] = scale;
    }
    memset(codes + w->depth, 0, (size_t)(4 * words - w->depth));
    const int64_t each = sums == 1 ? 4 * words : LT_BLOCK;
    for (int64_t i = 0; i < sums; i++) {
      int32_t sum = 0;
      for (int64_t k = 0; k < each; k++) sum += codes[i * each + k];
      const int32_t begin = sum * (w->bits == 4 ? -8 : -128);
      memcpy(to + words + i, &begin, 4);
    }
  }
}

/* A step of LT_LANES channels: vectors of words, of which each has four codes of a channel as unsigned bytes. */
LT_INLINE void stepOf(const int bits, const char *from, int64_t stride, lt_words *to) {
  lt_words bytes[4];
  LT_QUADS(bytes, from, stride);
  LT_UNROLL for (int j = 0; j < 4; j++) {
    if (bits == 4) {
      to[j] = bytes[j] & 0x0f0f0f0f;
      to[4 + j] = bytes[j] >> 4 & 0x0f0f0f0f;
    } else {
      to[j] = bytes[j] ^ 0x80808080;
    }
  }
}

/* Channels of a panel. Those that it lacks are of any finite values: nothing keeps what they give. */
typedef struct {
  const char *codes;
  int64_t stride, steps, sums; /* bytes from channel to channel; steps of a sum, and sums */
  float *scales;               /* [sums, PANEL] */
} lt_channels;

/* The scales of a panel, sum by sum. */
LT_INLINE void readScales(const lt_quantized *w, int64_t first, int64_t count, float *to) {
  enum { EIGHT = STEP / 2 };
  const int64_t groups = w->groups, sums = sumsOf(w), each = sums / groups;
  for (int64_t c = 0; c < PANEL; c += LT_LANES) {
    if (w->scale_type == LT_BFLOAT16 && count - c >= LT_LANES && groups >= EIGHT) {
      /* bf16 are the upper halves of floats: a word has two. The last eight may overlap those before them. */
      const char *from = (const char *)w->scales + (first + c) * groups * 2;
      for (int64_t next = 0; next < groups; next += EIGHT) {
        const int64_t g = least(next, groups - EIGHT);
        lt_words words[4];
        LT_QUADS(words, from + g * 2, groups * 2);
        for (int64_t k = 0; k < each; k++) LT_UNROLL for (int j = 0; j < 4; j++) {
          float *const two = to + ((g + 2 * j) * each + k) * PANEL + c;
          *(lt_loosewords *)two = words[j] << 16;
          *(lt_loosewords *)(two + each * PANEL) = words[j] & 0xffff0000;
        }
      }
      continue;
    }
    for (int64_t g = 0; g < groups; g++)
      for (int64_t i = 0; i < LT_LANES; i++) {
        const float scale = c + i < count ? element(w->scales, w->scale_type, (first + c + i) * groups + g) : 0;
        for (int64_t k = 0; k < each; k++) to[(g * each + k) * PANEL + c + i] = scale;
      }
  }
}

#define LT_BEGIN_TOTALS                                                                                                \
  lt_vector totals[LT_TILE_ROWS][LT_TILE_VECTORS];                                                                     \
  LT_UNROLL for (int r = 0; r < rows; r++) LT_UNROLL for (int v = 0; v < vectors; v++) totals[r][v] = (lt_vector){0}

#define LT_BEGIN_SUMS(i)                                                                                               \
  lt_ints sums[LT_TILE_ROWS][LT_TILE_VECTORS];                                                                         \
  LT_UNROLL for (int r = 0; r < rows; r++) LT_UNROLL for (int v = 0; v < vectors; v++)                                 \
      sums[r][v] = ((const lt_number *)x)[r * row + begins + (i)] - (lt_ints){0}

#define LT_END_SUMS(i, first)                                                                                          \
  LT_UNROLL for (int v = 0; v < vectors; v++) {                                                                        \
    const lt_vector scale = *(const lt_loose *)(panel->scales + (i) * PANEL + (first) + v * LT_LANES);                 \
    LT_UNROLL for (int r = 0; r < rows; r++)                                                                           \
        totals[r][v] += __builtin_convertvector(sums[r][v], lt_vector) * (x[r * row + begins + panel->sums + (i)] * scale); \
  }

#define LT_STORE(first)                                                                                                \
  LT_UNROLL for (int r = 0; r < rows; r++) LT_UNROLL for (int v = 0; v < vectors; v++)                                 \
      *(lt_loose *)(c + r * ldc + (first) + v * LT_LANES) = totals[r][v]

typedef int32_t lt_number __attribute__((may_alias));

/* A tile of few rows, by codes as memory holds them, a vector of channels after the other. */
LT_INLINE void direct(const int bits, const int rows, const lt_channels *panel, const float *x, int64_t row, float *c,
                      int64_t ldc) {
  enum { vectors = 1 };
  const int quads = quadsOfStep(bits);
  const int64_t begins = panel->sums * panel->steps * quads;
  for (int channel = 0; channel < PANEL; channel += LT_LANES) {
    const char *from = panel->codes + channel * panel->stride, *next = from + LT_LANES * panel->stride;
    const float *words = x;
    LT_BEGIN_TOTALS;
    for (int64_t i = 0; i < panel->sums; i++) {
      LT_BEGIN_SUMS(i);
      for (int64_t s = 0; s < panel->steps; s++, from += STEP, words += quads, next += LT_LANES * STEP) {
        lt_words w[MOST_QUADS];
        LT_UNROLL for (int line = 0; line < LT_LANES * STEP; line += 64) __builtin_prefetch(next + line, 0, 2);
        stepOf(bits, from, panel->stride, w);
        LT_UNROLL for (int q = 0; q < quads; q++) LT_UNROLL for (int r = 0; r < rows; r++)
            sums[r][0] = LT_DOT(bits, sums[r][0], w[q], ((const lt_number *)words)[r * row + q]);
      }
      LT_END_SUMS(i, channel);
    }
    LT_STORE(channel);
  }
}

/* A tile of a panel whose steps are in turn: of each, the vectors of a quad side by side. */
LT_INLINE void dense(const int bits, const int rows, const lt_channels *panel, const lt_words *w, const float *x, int64_t row,
                     float *c, int64_t ldc) {
  enum { vectors = LT_TILE_VECTORS };
  const int64_t quads = panel->steps * quadsOfStep(bits), begins = panel->sums * quads;
  const float *words = x;
  LT_BEGIN_TOTALS;
  for (int64_t i = 0; i < panel->sums; i++) {
    LT_BEGIN_SUMS(i);
    for (int64_t q = 0; q < quads; q++, words++, w += vectors)
      LT_UNROLL for (int r = 0; r < rows; r++) LT_UNROLL for (int v = 0; v < vectors; v++)
          sums[r][v] = LT_DOT(bits, sums[r][v], w[v], ((const lt_number *)words)[r * row]);
    LT_END_SUMS(i, 0);
  }
  LT_STORE(0);
}

typedef void directTile(const lt_channels *, const float *, int64_t, float *, int64_t);
typedef void denseTile(const lt_channels *, const lt_words *, const float *, int64_t, float *, int64_t);
#define LT_TILE(bits, rows)                                                                                            \
  static __attribute__((noinline)) void direct_##bits##_##rows(const lt_channels *panel, const float *x, int64_t row,  \
                                                               float *c, int64_t ldc) {                                \
    direct(bits, rows, panel, x, row, c, ldc);                                                                         \
  }                                                                                                                    \
  static __attribute__((noinline)) void dense_##bits##_##rows(const lt_channels *panel, const lt_words *w,             \
                                                              const float *x, int64_t row, float *c, int64_t ldc) {    \
    dense(bits, rows, panel, w, x, row, c, ldc);                                                                       \
  }
#if LT_TILE_ROWS == 6
#define LT_TILES(bits) LT_TILE(bits, 1) LT_TILE(bits, 2) LT_TILE(bits, 3) LT_TILE(bits, 4) LT_TILE(bits, 5) LT_TILE(bits, 6)
#define LT_TABLE(name) {name##_1, name##_2, name##_3, name##_4, name##_5, name##_6}
#else
#define LT_TILES(bits) LT_TILE(bits, 1) LT_TILE(bits, 2)
#define LT_TABLE(name) {name##_1, name##_2}
#endif
LT_TILES(8)
LT_TILES(4)

/* Floats that `multiply` works in: a panel's scales, words, copied channels, and a tile of results. */
static int64_t expandedSize(const lt_quantized *w, int64_t rows) {
  (void)rows;
  return PANEL * (sumsOf(w) + wordsOf(w) + stepsOf(w) * STEP / 4 + LT_TILE_ROWS) + LT_LANES;
}

/* lt_quantized_kernel.multiply */
static void multiply(const lt_quantized *w, int64_t first, int64_t channels, const float *x, int64_t rows, float *c,
                     int64_t ldc, float *expanded) {
  static directTile *const directs[2][LT_TILE_ROWS] = {LT_TABLE(direct_8), LT_TABLE(direct_4)};
  static denseTile *const denses[2][LT_TILE_ROWS] = {LT_TABLE(dense_8), LT_TABLE(dense_4)};
  const int64_t row = paddedSize(w), bytes = bytesOf(w), steps = stepsOf(w), sums = sumsOf(w);
  const int quads = quadsOfStep(w->bits), isFour = w->bits == 4;
  lt_words *const words = (lt_words *)(((uintptr_t)expanded + sizeof(lt_words) - 1) / sizeof(lt_words) * sizeof(lt_words));
  float *const scales = (float *)words + PANEL * steps * quads;
  float *const results = scales + PANEL * sums;
  char *const copied = (char *)(results + PANEL * LT_TILE_ROWS);
  for (int64_t j = 0; j < channels; j += PANEL) {
    const int64_t count = least(PANEL, channels - j);
    lt_channels panel = {(const char *)w->codes + (first + j) * bytes, bytes, steps / sums, sums, scales};
    readScales(w, first + j, count, scales);
    if (count < PANEL || bytes % STEP != 0) {
      memset(copied, 0, (size_t)(PANEL * steps * STEP));
      for (int64_t i = 0; i < count; i++) memcpy(copied + i * steps * STEP, panel.codes + i * bytes, (size_t)bytes);
      panel.codes = copied;
      panel.stride = steps * STEP;
    }
    if (rows > LT_FEW_ROWS) {
      for (int64_t s = 0; s < steps; s++)
        for (int v = 0; v < LT_TILE_VECTORS; v++) {
          lt_words step[MOST_QUADS];
          const char *from = panel.codes + v * LT_LANES * panel.stride + s * STEP;
          if (isFour)
            stepOf(4, from, panel.stride, step);
          else
            stepOf(8, from, panel.stride, step);
          for (int q = 0; q < quads; q++) words[(s * quads + q) * LT_TILE_VECTORS + v] = step[q];
        }
    }
    for (int64_t r = 0; r < rows; r += LT_TILE_ROWS) {
      const int64_t height = least(LT_TILE_ROWS, rows - r);
      const int isWhole = count == PANEL;
      float *const to = isWhole ? c + r * ldc + j : results;
      const int64_t step = isWhole ? ldc : PANEL;
      if (rows > LT_FEW_ROWS)
        denses[isFour][height - 1](&panel, words, x + r * row, row, to, step);
      else
        directs[isFour][height - 1](&panel, x + r * row, row, to, step);
      for (int64_t i = 0; i < height && !isWhole; i++)
        memcpy(c + (r + i) * ldc + j, results + i * PANEL, (size_t)(4 * count));
    }
  }
}

#define LT_INTEGER_KERNEL {PANEL < 16 ? 16 : PANEL, paddedSize, expandedSize, prepare, multiply}

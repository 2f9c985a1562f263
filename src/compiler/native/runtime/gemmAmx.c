/* gemmAmx.c: the microkernel for AMX tiles of bf16: sums of 16 x 16 float32, each of 32 products at once. */
/* flags: -O3 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512bf16 -mamx-tile -mamx-bf16 -mfma -mprfchw -mprefer-vector-width=512 */
#include <stdalign.h>
#include <string.h>

#include "gemmAvx512.h"

/* Two by two tiles of sums. Left panels hold sixteen words of each row after another, and what is left of the words
   likewise, as tiles read them; right panels are those of all kernels. */
enum { SIDE = 16, ROWS = 2 * SIDE, COLUMNS = 2 * SIDE, GROUP = SIDE /* of words */ };

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- Tiles ----------------------------------------------------------------------------------------------------- */

#ifndef LT_EMULATED_TILES
/* Eight tiles of sixteen rows of 64 bytes. */
static const struct {
  uint8_t palette, start, reserved[14];
  uint16_t bytes[16];
  uint8_t rows[16];
} config = {1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};

#define BEGIN() _tile_loadconfig(&config)
#define END() _tile_release()
#define CLEAR(t) _tile_zero(t)
#define LOAD(t, from, stride) _tile_loadd(t, from, stride)
#define STORE(t, to, stride) _tile_stored(t, to, stride)
#define ADD(c, a, b) _tile_dpbf16ps(c, a, b)
#else
/* For tests on CPUs without tiles. */
static _Thread_local uint32_t tiles[8][SIDE][SIDE];

static void copyTile(void *to, int64_t to_stride, const void *from, int64_t stride) {
  for (int i = 0; i < SIDE; i++) memcpy((char *)to + i * to_stride, (const char *)from + i * stride, 4 * SIDE);
}

static void addTile(int c, int a, int b) {
  for (int i = 0; i < SIDE; i++) {
    for (int j = 0; j < SIDE; j++) {
      float sum = lt_from_bits(tiles[c][i][j]);
      for (int w = 0; w < SIDE; w++) {
        const uint32_t x = tiles[a][i][w], y = tiles[b][w][j];
        sum += lt_from_bits(x << 16) * lt_from_bits(y << 16) + lt_from_bits(x & 0xffff0000u) * lt_from_bits(y & 0xffff0000u);
      }
      memcpy(&tiles[c][i][j], &sum, 4);
    }
  }
}

#define BEGIN() memset(tiles, 0, sizeof tiles)
#define END()
#define CLEAR(t) memset(tiles[t], 0, sizeof tiles[t])
#define LOAD(t, from, stride) copyTile(tiles[t], 4 * SIDE, from, stride)
#define STORE(t, to, stride) copyTile(to, stride, tiles[t], 4 * SIDE)
#define ADD(c, a, b) addTile(c, a, b)
#endif

/* ---- Products --------------------------------------------------------------------------------------------------- */

/* Adds the products of a group of words to the sums; `low` and `wide`: there are more than sixteen rows, and columns. */
#define ADD_GROUP(left, right, right_stride)                                                                           \
  do {                                                                                                                 \
    LOAD(4, left, 4 * GROUP);                                                                                          \
    LOAD(6, right, right_stride);                                                                                      \
    ADD(0, 4, 6);                                                                                                      \
    if (wide) {                                                                                                        \
      LOAD(7, (right) + SIDE, right_stride);                                                                           \
      ADD(1, 4, 7);                                                                                                    \
    }                                                                                                                  \
    if (low) {                                                                                                         \
      LOAD(5, (left) + SIDE * GROUP, 4 * GROUP);                                                                       \
      ADD(2, 5, 6);                                                                                                    \
      if (wide) ADD(3, 5, 7);                                                                                          \
    }                                                                                                                  \
  } while (0)

/* Words beyond the last whole group, padded with zeros. */
typedef struct {
  alignas(64) uint32_t left[ROWS * GROUP], right[GROUP * COLUMNS];
} padded;

static void pad(padded *to, const uint32_t *a, const uint32_t *b, int64_t words, int64_t width) {
  memset(to, 0, sizeof *to);
  for (int64_t i = 0; i < ROWS; i++) memcpy(to->left + i * GROUP, a + i * words, (size_t)words * 4);
  for (int64_t w = 0; w < words; w++) memcpy(to->right + w * COLUMNS, b + w * width, (size_t)least(width, COLUMNS) * 4);
}

/* c = alpha * sums (+ c) of one row, sixteen columns at a time. */
static inline void storeRow(const float *sums, char *c, int32_t c_type, int64_t n, float alpha, int accumulate) {
  for (int64_t j = 0; j < n; j += SIDE) {
    const __mmask16 lanes = n - j >= SIDE ? 0xffff : (__mmask16)((1u << (n - j)) - 1);
    __m512 x = _mm512_mul_ps(_mm512_load_ps(sums + j), _mm512_set1_ps(alpha));
    if (c_type == LT_BFLOAT16) {
      _mm256_mask_storeu_epi16(c + 2 * j, lanes, (__m256i)_mm512_cvtneps_pbh(x));
    } else {
      if (accumulate) x = _mm512_add_ps(x, _mm512_maskz_loadu_ps(lanes, c + 4 * j));
      _mm512_mask_storeu_ps(c + 4 * j, lanes, x);
    }
  }
}

static inline __attribute__((always_inline)) void multiply(const int low, const int wide, const uint32_t *a, const uint32_t *b,
                                                           int64_t words, int64_t width, void *c, int32_t c_type, int64_t ldc,
                                                           int64_t m, int64_t n, float alpha, int accumulate, const char *next,
                                                           int64_t ahead) {
  alignas(64) float sums[ROWS * COLUMNS];
  padded rest;
  const int64_t groups = words / GROUP, lines = groups > 0 ? (ahead + groups - 1) / groups : 0, bytes = c_type == LT_BFLOAT16 ? 2 : 4;
  for (int64_t i = 0; i < m; i++)
    for (int64_t line = 0; line < n * bytes; line += 64) __builtin_prefetch((char *)c + i * ldc * bytes + line, 1, 3);
  BEGIN();
  CLEAR(0);
  CLEAR(1);
  CLEAR(2);
  CLEAR(3);
  for (int64_t g = 0; g < groups; g++, a += ROWS * GROUP, b += GROUP * width) {
    for (int64_t line = 0; line < lines; line++, next += 64) __builtin_prefetch(next, 0, 2);
    ADD_GROUP(a, b, 4 * width);
  }
  if (words % GROUP > 0) {
    pad(&rest, a, b, words % GROUP, width);
    /* Compilers do not know that loads of tiles read memory. */
    __asm__ volatile("" : : "r"(&rest) : "memory");
    ADD_GROUP(rest.left, rest.right, 4 * COLUMNS);
  }
  STORE(0, sums, 4 * COLUMNS);
  if (wide) STORE(1, sums + SIDE, 4 * COLUMNS);
  if (low) STORE(2, sums + SIDE * COLUMNS, 4 * COLUMNS);
  if (low && wide) STORE(3, sums + SIDE * COLUMNS + SIDE, 4 * COLUMNS);
  END();
  for (int64_t i = 0; i < m; i++)
    storeRow(sums + i * COLUMNS, (char *)c + i * ldc * bytes, c_type, n, alpha, accumulate);
}

#define MULTIPLY(name, low, wide)                                                                                      \
  static void name(const uint32_t *a, const uint32_t *b, int64_t words, int64_t width, void *c, int32_t c_type,        \
                   int64_t ldc, int64_t m, int64_t n, float alpha, int accumulate, const char *next, int64_t ahead) {  \
    multiply(low, wide, a, b, words, width, c, c_type, ldc, m, n, alpha, accumulate, next, ahead);                     \
  }
MULTIPLY(one, 0, 0)
MULTIPLY(across, 0, 1)
MULTIPLY(down, 1, 0)
MULTIPLY(all, 1, 1)

static lt_tile *choose(int64_t m, int64_t n) {
  static lt_tile *const functions[2][2] = {{one, across}, {down, all}};
  return functions[m > SIDE][n > SIDE];
}

/* lt_kernel.burn: each step on all tiles is sixteen rounds. */
static float burn(int64_t rounds) {
  BEGIN();
  for (int64_t round = 0; round < rounds; round += GROUP) {
    ADD(0, 4, 6);
    ADD(1, 4, 7);
    ADD(2, 5, 6);
    ADD(3, 5, 7);
  }
  alignas(64) float sums[SIDE * SIDE];
  STORE(0, sums, 4 * SIDE);
  END();
  return sums[0];
}

/* ---- Packing ---------------------------------------------------------------------------------------------------- */

static uint32_t half(int32_t type, const void *from, int64_t index) {
  return type == LT_BFLOAT16 ? ((const bf16 *)from)[index] : lt_to_bf16(((const float *)from)[index]);
}

/* A group of up to sixteen words of each row of a panel: `k` elements of each of `valid` vectors. */
static void packLoose(uint32_t *to, const void *from, int32_t type, int64_t across, int64_t along, int64_t valid, int64_t k) {
  const int64_t words = (k + 1) / 2;
  for (int64_t i = 0; i < ROWS; i++) {
    for (int64_t w = 0; w < words; w++) {
      const int64_t at = i * across + 2 * w * along;
      const uint32_t even = i < valid ? half(type, from, at) : 0, odd = i < valid && 2 * w + 1 < k ? half(type, from, at + along) : 0;
      to[i * words + w] = even | odd << 16;
    }
  }
}

/* Sixteen words of one row, contiguous in memory. */
static inline __m512i wordsAt(int32_t type, const char *from) {
  if (type == LT_BFLOAT16) return _mm512_loadu_si512(from);
  return (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(from + 64), _mm512_loadu_ps(from));
}

/* A whole group of rows that are contiguous in memory; prefetches the next but one. */
static inline __attribute__((always_inline)) void packAlong(uint32_t *to, const char *from, const int32_t type, int64_t across,
                                                            int64_t valid) {
  const int64_t bytes = type == LT_BFLOAT16 ? 2 : 4;
  for (int64_t i = 0; i < ROWS; i++, from += across * bytes) {
    if (i < valid) {
      for (int64_t line = 0; line < 32 * bytes; line += 64) __builtin_prefetch(from + 64 * bytes + line, 0, 2);
      _mm512_storeu_si512(to + i * GROUP, wordsAt(type, from));
    } else {
      _mm512_storeu_si512(to + i * GROUP, _mm512_setzero_si512());
    }
  }
}

/* Up to sixteen neighbours of two rows of memory as words. */
static inline __m512i pairsAt(int32_t type, const char *from, int64_t stride, __mmask16 lanes) {
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21, 5, 20, 4,
                                         19, 3, 18, 2, 17, 1, 16, 0);
  const char *odd = from + stride;
  const __m512i both = type == LT_BFLOAT16
                           ? _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_maskz_loadu_epi16(lanes, from)),
                                                _mm256_maskz_loadu_epi16(lanes, odd), 1)
                           : (__m512i)_mm512_cvtne2ps_pbh(_mm512_maskz_loadu_ps(lanes, odd), _mm512_maskz_loadu_ps(lanes, from));
  return _mm512_permutexvar_epi16(order, both);
}

/* A whole group from rows of memory; prefetches the rows of the next one. */
static inline __attribute__((always_inline)) void packAcross(uint32_t *to, const char *from, const int32_t type, int64_t along,
                                                             int64_t valid) {
  const int64_t bytes = type == LT_BFLOAT16 ? 2 : 4, stride = along * bytes;
  for (int64_t i = 0; i < ROWS; i += SIDE, to += SIDE * GROUP, from += SIDE * bytes) {
    const __mmask16 lanes = valid - i >= SIDE ? 0xffff : valid <= i ? 0 : (__mmask16)((1u << (valid - i)) - 1);
    for (int64_t w = 0; w < GROUP; w += 8) {
      __m512i rows[8];
      for (int r = 0; r < 8; r++) {
        const char *at = from + 2 * (w + r) * stride;
        __builtin_prefetch(at + 2 * GROUP * stride, 0, 2);
        __builtin_prefetch(at + (2 * GROUP + 1) * stride, 0, 2);
        rows[r] = pairsAt(type, at, stride, lanes);
      }
      lt_transpose512(to + w, GROUP, rows, SIDE);
    }
  }
}

static inline __attribute__((always_inline)) void packRows(uint32_t *to, int64_t size, const char *from, const int32_t type,
                                                           int64_t across, int64_t along, int64_t vectors, int64_t k) {
  const int64_t bytes = type == LT_BFLOAT16 ? 2 : 4;
  for (int64_t j = 0; j < vectors; j += ROWS, to += size, from += ROWS * across * bytes) {
    for (int64_t d = 0; d < k; d += 2 * GROUP) {
      uint32_t *const group = to + d / 2 * ROWS;
      const char *const at = from + d * along * bytes;
      if (k - d < 2 * GROUP || (along != 1 && across != 1))
        packLoose(group, at, type, across, along, vectors - j, least(k - d, 2 * GROUP));
      else if (along == 1)
        packAlong(group, at, type, across, vectors - j);
      else
        packAcross(group, at, type, along, vectors - j);
    }
  }
}

/* lt_kernel.pack_left. */
static void packLeft(uint32_t *to, int64_t size, int64_t width, const void *from, int32_t type, int64_t across, int64_t along,
                     int64_t vectors, int64_t k) {
  (void)width;
  if (type == LT_BFLOAT16)
    packRows(to, size, from, LT_BFLOAT16, across, along, vectors, k);
  else
    packRows(to, size, from, LT_FLOAT32, across, along, vectors, k);
}

extern const lt_kernel lt_avx512bf16_bfloat16;

static void pack(uint32_t *to, int64_t size, int64_t width, const void *from, int32_t type, int64_t across, int64_t along,
                 int64_t vectors, int64_t k) {
  lt_avx512bf16_bfloat16.pack(to, size, width, from, type, across, along, vectors, k);
}

const lt_kernel lt_amx_bfloat16 = {"amx", ROWS, SIDE, COLUMNS, 2, pack, choose, NULL, burn, NULL, packLeft, GROUP};

/* gemmKernel.h: a microkernel for one instruction set; its file defines the macros below and includes this once.

   LT_NAME(x)       the file's own name of x            LT_ROWS, LT_VECTORS  vectors of a tile: rows x vectors of columns
   LT_LANES         float32 lanes of a vector           LT_DEPTH             elements of k in a word
   LT_OPERAND       the type of a vector of words       LT_LOAD(p)           a vector of words from memory
   LT_SPREAD(w)     a word in all lanes                 LT_MULADD(c, a, b)   c + a b, lane by lane
   LT_NARROW(x)     floats as bf16, where there is an instruction
   LT_LEFTS(a, rows), LT_LEFT(a, i)   where words are spread from vectors: loads of `rows` words, and word i in all lanes
   LT_NEXT(left)    where compilers load too many words ahead: makes the next one wait for this */

typedef float lt_vector __attribute__((vector_size(4 * LT_LANES)));
typedef float lt_loose __attribute__((vector_size(4 * LT_LANES), aligned(4), may_alias));
typedef uint32_t lt_loosepairs __attribute__((vector_size(4 * LT_LANES), aligned(4), may_alias));
typedef uint32_t lt_wordv __attribute__((vector_size(4 * LT_LANES)));
typedef int32_t lt_signedv __attribute__((vector_size(4 * LT_LANES)));
typedef uint16_t lt_halves __attribute__((vector_size(2 * LT_LANES)));
typedef uint16_t lt_loosehalves __attribute__((vector_size(2 * LT_LANES), aligned(2), may_alias));

#define LT_UNROLL _Pragma("GCC unroll 16")
#define LT_INLINE static inline __attribute__((always_inline))

/* The upper halves of the result's words are the floats of these bits as bf16. */
LT_INLINE lt_wordv LT_NAME(rounded)(lt_wordv u) {
  const lt_wordv nan = (lt_wordv)((lt_signedv)(u & 0x7fffffffu) > 0x7f800000);
  return (~nan & (u + 0x7fffu + ((u >> 16) & 1u))) | (nan & (u | 0x400000u));
}

#ifndef LT_LEFT
#define LT_LEFTS(a, rows)
#define LT_LEFT(a, i) LT_SPREAD((a)[i])
#endif

#ifndef LT_NEXT
#define LT_NEXT(left)
#endif

/* A vector of words as an operand. */
#define LT_WIDENED(words) ((LT_OPERAND)(words))

#ifndef LT_NARROW
#define LT_NARROW(x) __builtin_convertvector(LT_NAME(rounded)((lt_wordv)(x)) >> 16, lt_halves)
#endif

LT_INLINE lt_wordv LT_NAME(pairsAt)(const uint32_t *b) { return *(const lt_loosepairs *)b; }

/* Stores the partial tiles at a matrix's borders, through a temporary tile. */
static __attribute__((noinline)) void LT_NAME(spill)(const float *tile, int64_t width, void *c, int32_t c_type, int64_t ldc,
                                                     int64_t m, int64_t n, int accumulate) {
  for (int64_t i = 0; i < m; i++, tile += width) {
    if (c_type == LT_BFLOAT16) {
      bf16 *to = (bf16 *)c + i * ldc;
      for (int64_t j = 0; j < n; j++) to[j] = lt_to_bf16(tile[j]);
    } else {
      float *to = (float *)c + i * ldc;
      if (accumulate)
        for (int64_t j = 0; j < n; j++) to[j] += tile[j];
      else
        for (int64_t j = 0; j < n; j++) to[j] = tile[j];
    }
  }
}

/* Prefetches lines: into the first-level cache for tiles that wait for memory, else into the second. */
LT_INLINE void LT_NAME(fetch)(const int near, int lines, const char **next) {
  for (; lines > 0; lines--, *next += 64) {
    if (near)
      __builtin_prefetch(*next, 0, 3);
    else
      __builtin_prefetch(*next, 0, 2);
  }
}

/* Adds the products of one left word of each row and the vectors `right`. */
#define LT_ADD_WORD(right)                                                                                             \
  do {                                                                                                                 \
    LT_LEFTS(a, rows);                                                                                                 \
    LT_UNROLL for (int i = 0; i < rows; i++) {                                                                         \
      const LT_OPERAND left = LT_LEFT(a, i);                                                                           \
      LT_UNROLL for (int j = 0; j < vectors; j++) sums[i][j] = LT_MULADD(sums[i][j], left, (right)[j]);                \
    }                                                                                                                  \
    a += LT_ROWS;                                                                                                      \
  } while (0)

/* A tile of `rows` x `vectors`, both constant after inlining; `pairs` where b holds pairs of bf16 to widen. */
LT_INLINE void LT_NAME(tile)(const int pairs, const int rows, const int vectors, const uint32_t *a, const uint32_t *b,
                             int64_t words, int64_t width, void *c, int32_t c_type, int64_t ldc, int64_t m, int64_t n,
                             float alpha, int accumulate, const char *next, int64_t ahead) {
  lt_vector sums[LT_ROWS][LT_VECTORS];
  const int whole = m == rows && n == vectors * LT_LANES;
  LT_UNROLL for (int i = 0; i < rows; i++) {
    LT_UNROLL for (int j = 0; j < vectors; j++) {
      sums[i][j] = (lt_vector){0};
      if (whole && c_type == LT_FLOAT32) __builtin_prefetch((float *)c + i * ldc + j * LT_LANES, 1, 3);
    }
  }
  const int64_t count = pairs ? (words + 1) >> 1 : words;
  const int dense = ahead > count;
  for (int64_t w = 0; w < count; w++) {
    if (w < ahead) LT_NAME(fetch)(rows < LT_ROWS, dense ? vectors : 1, &next);
    LT_OPERAND right[LT_VECTORS];
    if (pairs) {
      LT_UNROLL for (int j = 0; j < vectors; j++) right[j] = LT_WIDENED(LT_NAME(pairsAt)(b + j * LT_LANES) << 16);
      LT_ADD_WORD(right);
      if (2 * w + 1 == words) break;
      LT_UNROLL for (int j = 0; j < vectors; j++) right[j] = LT_WIDENED(LT_NAME(pairsAt)(b + j * LT_LANES) & 0xffff0000u);
    } else {
      LT_UNROLL for (int j = 0; j < vectors; j++) right[j] = LT_LOAD(b + j * LT_LANES);
    }
    LT_ADD_WORD(right);
    b += width;
  }
  if (alpha != 1.0f) {
    LT_UNROLL for (int i = 0; i < rows; i++) LT_UNROLL for (int j = 0; j < vectors; j++) sums[i][j] *= alpha;
  }
  if (whole && c_type == LT_BFLOAT16) {
    LT_UNROLL for (int i = 0; i < rows; i++) {
      bf16 *to = (bf16 *)c + i * ldc;
      LT_UNROLL for (int j = 0; j < vectors; j++) *(lt_loosehalves *)(to + j * LT_LANES) = LT_NARROW(sums[i][j]);
    }
  } else if (whole) {
    LT_UNROLL for (int i = 0; i < rows; i++) {
      float *to = (float *)c + i * ldc;
      LT_UNROLL for (int j = 0; j < vectors; j++) {
        lt_loose *place = (lt_loose *)(to + j * LT_LANES);
        *place = accumulate ? (lt_vector)*place + sums[i][j] : sums[i][j];
      }
    }
  } else {
    lt_vector tile[LT_ROWS * LT_VECTORS];
    LT_UNROLL for (int i = 0; i < rows; i++) LT_UNROLL for (int j = 0; j < vectors; j++)
      tile[i * vectors + j] = sums[i][j];
    LT_NAME(spill)((const float *)tile, vectors * LT_LANES, c, c_type, ldc, m, n, accumulate);
  }
}

#define LT_TILE(name, pairs, rows, vectors)                                                                            \
  static __attribute__((noinline)) void LT_NAME(name##_##rows##_##vectors)(                                            \
      const uint32_t *a, const uint32_t *b, int64_t words, int64_t width, void *c, int32_t c_type, int64_t ldc,        \
      int64_t m, int64_t n, float alpha, int accumulate, const char *next, int64_t ahead) {                            \
    LT_NAME(tile)(pairs, rows, vectors, a, b, words, width, c, c_type, ldc, m, n, alpha, accumulate, next, ahead);     \
  }
#if LT_VECTORS == 3
#define LT_TILES(name, pairs, rows)                                                                                    \
  LT_TILE(name, pairs, rows, 1) LT_TILE(name, pairs, rows, 2) LT_TILE(name, pairs, rows, 3)
#define LT_TILE_ROW(name, rows) {LT_NAME(name##_##rows##_1), LT_NAME(name##_##rows##_2), LT_NAME(name##_##rows##_3)}
#else
#define LT_TILES(name, pairs, rows) LT_TILE(name, pairs, rows, 1) LT_TILE(name, pairs, rows, 2)
#define LT_TILE_ROW(name, rows) {LT_NAME(name##_##rows##_1), LT_NAME(name##_##rows##_2)}
#endif
#if LT_ROWS == 6
#define LT_TILES_ALL(name, pairs) LT_TILES(name, pairs, 6)
#define LT_TILE_ALL(name) LT_TILE_ROW(name, 6)
#elif LT_ROWS == 8
#define LT_TILES_ALL(name, pairs) LT_TILES(name, pairs, 8)
#define LT_TILE_ALL(name) LT_TILE_ROW(name, 8)
#else
#define LT_TILES_ALL(name, pairs)
#define LT_TILE_ALL(name) LT_TILE_ROW(name, 4)
#endif

/* lt_kernel.tile: the smallest tile function that covers m x n. */
#define LT_CHOOSE(choose, name, pairs)                                                                                 \
  LT_TILES(name, pairs, 1)                                                                                             \
  LT_TILES(name, pairs, 2)                                                                                             \
  LT_TILES(name, pairs, 4)                                                                                             \
  LT_TILES_ALL(name, pairs)                                                                                            \
  static lt_tile *LT_NAME(choose)(int64_t m, int64_t n) {                                                              \
    static lt_tile *const tiles[4][LT_VECTORS] = {LT_TILE_ROW(name, 1), LT_TILE_ROW(name, 2), LT_TILE_ROW(name, 4),    \
                                                  LT_TILE_ALL(name)};                                                  \
    const int rows = m > 4 ? 3 : m > 2 ? 2 : m > 1;                                                                    \
    return tiles[rows][(n - 1) / LT_LANES];                                                                            \
  }
LT_CHOOSE(choose, tile, 0)

#if LT_DEPTH == 1
LT_CHOOSE(choosePairs, pairs, 1)

/* A tile of whole vectors whose left operand lies anywhere. Two pointers reach all rows by scaled indices. */
LT_INLINE void LT_NAME(tileAt)(const int rows, const int vectors, const char *a, int64_t row, int64_t step,
                               const uint32_t *b, int64_t words, int64_t width, float *c, int64_t ldc, int accumulate) {
  enum { NEAR = (LT_ROWS + 1) / 2 };
  const char *far = a + (rows > NEAR ? NEAR * row : 0);
  lt_vector sums[LT_ROWS][LT_VECTORS];
  LT_UNROLL for (int i = 0; i < rows; i++) LT_UNROLL for (int j = 0; j < vectors; j++) sums[i][j] = (lt_vector){0};
  for (int64_t w = 0; w < words; w++) {
    LT_OPERAND right[LT_VECTORS];
    LT_UNROLL for (int j = 0; j < vectors; j++) right[j] = LT_LOAD(b + j * LT_LANES);
    LT_UNROLL for (int i = 0; i < rows; i++) {
      LT_OPERAND left = LT_SPREAD(*(const lt_word *)(i < NEAR ? a + i * row : far + (i - NEAR) * row));
      LT_NEXT(left);
      LT_UNROLL for (int j = 0; j < vectors; j++) sums[i][j] = LT_MULADD(sums[i][j], left, right[j]);
    }
    a += step;
    far += step;
    b += width;
  }
  LT_UNROLL for (int i = 0; i < rows; i++) {
    LT_UNROLL for (int j = 0; j < vectors; j++) {
      lt_loose *place = (lt_loose *)(c + i * ldc + j * LT_LANES);
      *place = accumulate ? (lt_vector)*place + sums[i][j] : sums[i][j];
    }
  }
}

#define LT_TILE_AT(rows, vectors)                                                                                      \
  static __attribute__((noinline)) void LT_NAME(tileAt_##rows##_##vectors)(                                            \
      const char *a, int64_t row, int64_t step, const uint32_t *b, int64_t words, int64_t width, float *c, int64_t ldc, \
      int accumulate) {                                                                                                \
    LT_NAME(tileAt)(rows, vectors, a, row, step, b, words, width, c, ldc, accumulate);                                 \
  }
#if LT_VECTORS == 3
#define LT_TILES_AT(rows) LT_TILE_AT(rows, 1) LT_TILE_AT(rows, 2) LT_TILE_AT(rows, 3)
#define LT_TILE_AT_ROW(rows) {LT_NAME(tileAt_##rows##_1), LT_NAME(tileAt_##rows##_2), LT_NAME(tileAt_##rows##_3)}
#else
#define LT_TILES_AT(rows) LT_TILE_AT(rows, 1) LT_TILE_AT(rows, 2)
#define LT_TILE_AT_ROW(rows) {LT_NAME(tileAt_##rows##_1), LT_NAME(tileAt_##rows##_2)}
#endif
LT_TILES_AT(1)
LT_TILES_AT(2)
LT_TILES_AT(4)
#if LT_ROWS == 6
LT_TILES_AT(6)
#define LT_TILE_AT_ALL LT_TILE_AT_ROW(6)
#elif LT_ROWS == 8
LT_TILES_AT(8)
#define LT_TILE_AT_ALL LT_TILE_AT_ROW(8)
#else
#define LT_TILE_AT_ALL LT_TILE_AT_ROW(4)
#endif

/* lt_kernel.multiply. Only rows that exist are read: an odd number of them takes several tiles. */
static void LT_NAME(multiplyAt)(const lt_word *a, int64_t row, int64_t step, const uint32_t *b, int64_t size,
                                int64_t width, int64_t words, float *c, int64_t ldc, int64_t m, int64_t n,
                                int accumulate) {
  typedef void tile(const char *, int64_t, int64_t, const uint32_t *, int64_t, int64_t, float *, int64_t, int);
  static tile *const tiles[4][LT_VECTORS] = {LT_TILE_AT_ROW(1), LT_TILE_AT_ROW(2), LT_TILE_AT_ROW(4), LT_TILE_AT_ALL};
  for (int64_t j = 0; j < n; j += width, b += size) {
    const int64_t vectors = (n - j < width ? n - j : width) / LT_LANES;
    for (int64_t i = 0, rows; i < m; i += rows) {
      const int which = m - i >= LT_ROWS ? 3 : m - i >= 4 ? 2 : m - i >= 2;
      rows = which == 3 ? LT_ROWS : 1 << which;
      tiles[which][vectors - 1]((const char *)(a + i * row), row * 4, step * 4, b, words, width, c + i * ldc + j, ldc,
                                accumulate);
    }
  }
}
#endif

/* lt_kernel.burn: the tile's inner loop without loads; volatile operands keep equal sums from merging. */
static float LT_NAME(burn)(int64_t rounds) {
  lt_vector sums[LT_ROWS][LT_VECTORS];
  volatile uint32_t zero = 0;
  const LT_OPERAND left = LT_SPREAD(zero), right = LT_SPREAD(zero);
  LT_UNROLL for (int i = 0; i < LT_ROWS; i++) LT_UNROLL for (int j = 0; j < LT_VECTORS; j++)
    sums[i][j] = (lt_vector){0} + lt_from_bits(zero);
  for (int64_t round = 0; round < rounds; round++) {
    LT_UNROLL for (int i = 0; i < LT_ROWS; i++) LT_UNROLL for (int j = 0; j < LT_VECTORS; j++)
      sums[i][j] = LT_MULADD(sums[i][j], left, right);
  }
  lt_vector total = {0};
  LT_UNROLL for (int i = 0; i < LT_ROWS; i++) LT_UNROLL for (int j = 0; j < LT_VECTORS; j++) total += sums[i][j];
  return total[0];
}

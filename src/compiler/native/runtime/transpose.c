/* transpose.c: matrices of words, whatever these hold, in the other order of their axes. */
#include "luthier.h"

typedef uint32_t words __attribute__((vector_size(16)));
typedef uint16_t halves __attribute__((vector_size(16)));
/* The same in memory, where they need not be aligned. */
typedef words looseWords __attribute__((aligned(4), may_alias));
typedef halves looseHalves __attribute__((aligned(2), may_alias));

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")

/* Rows and columns of a tile: with 4 bytes a word, whole lines of the cache on both sides. */
enum { TILE = 16 };

/* The lower and the upper halves of two vectors, element by element in turn. */
#ifdef __clang__
#define LOWER_WORDS(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define UPPER_WORDS(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#define LOWER_HALVES(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define UPPER_HALVES(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#else
#define LOWER_WORDS(a, b) __builtin_shuffle(a, b, (words){0, 4, 1, 5})
#define UPPER_WORDS(a, b) __builtin_shuffle(a, b, (words){2, 6, 3, 7})
#define LOWER_HALVES(a, b) __builtin_shuffle(a, b, (halves){0, 8, 1, 9, 2, 10, 3, 11})
#define UPPER_HALVES(a, b) __builtin_shuffle(a, b, (halves){4, 12, 5, 13, 6, 14, 7, 15})
#endif

/* A square that vectors hold. Rows i and i + n / 2 of n, in turn, make rows 2 i and 2 i + 1: after log2(n) times, row i is
   what was column i. */
#define SQUARE(NAME, ELEMENT, VECTOR, LOOSE, SIDE, ROUNDS, LOWER, UPPER)                                    \
  INLINE void NAME(ELEMENT *to, int64_t width, const ELEMENT *from, int64_t between) {                      \
    VECTOR rows[SIDE], next[SIDE];                                                                          \
    UNROLL for (int i = 0; i < SIDE; i++) rows[i] = *(const LOOSE *)(from + i * between);                   \
    UNROLL for (int round = 0; round < ROUNDS; round++) {                                                   \
      UNROLL for (int i = 0; i < SIDE / 2; i++) {                                                           \
        next[2 * i] = LOWER(rows[i], rows[i + SIDE / 2]);                                                   \
        next[2 * i + 1] = UPPER(rows[i], rows[i + SIDE / 2]);                                               \
      }                                                                                                     \
      UNROLL for (int i = 0; i < SIDE; i++) rows[i] = next[i];                                              \
    }                                                                                                       \
    UNROLL for (int i = 0; i < SIDE; i++) *(LOOSE *)(to + i * width) = rows[i];                             \
  }

SQUARE(squareOfWords, uint32_t, words, looseWords, 4, 2, LOWER_WORDS, UPPER_WORDS)
SQUARE(squareOfHalves, uint16_t, halves, looseHalves, 8, 3, LOWER_HALVES, UPPER_HALVES)

/* to[row * columns + column] = from[row + column * between], tile by tile along the rows, which `from` has side by side. */
#define TRANSPOSE(NAME, ELEMENT, SIDE, SQUARE_OF)                                                           \
  static void NAME(ELEMENT *to, const ELEMENT *from, int64_t rows, int64_t columns, int64_t between) {      \
    for (int64_t left = 0; left < columns; left += TILE)                                                    \
      for (int64_t top = 0; top < rows; top += TILE) {                                                      \
        const int64_t right = left + TILE < columns ? left + TILE : columns;                                \
        const int64_t bottom = top + TILE < rows ? top + TILE : rows;                                       \
        if (SIDE > 1 && right - left == TILE && bottom - top == TILE) {                                     \
          for (int64_t i = top; i < bottom; i += SIDE)                                                      \
            for (int64_t j = left; j < right; j += SIDE)                                                    \
              SQUARE_OF(to + i * columns + j, columns, from + i + j * between, between);                    \
          continue;                                                                                         \
        }                                                                                                   \
        for (int64_t i = top; i < bottom; i++)                                                              \
          for (int64_t j = left; j < right; j++) to[i * columns + j] = from[i + j * between];               \
      }                                                                                                     \
  }

#define NO_SQUARE(to, width, from, between) (void)0

TRANSPOSE(transposeBytes, uint8_t, 1, NO_SQUARE)
TRANSPOSE(transposeHalves, uint16_t, 8, squareOfHalves)
TRANSPOSE(transposeWords, uint32_t, 4, squareOfWords)
TRANSPOSE(transposeLongs, uint64_t, 1, NO_SQUARE)

void lt_transpose(void *to, const void *from, int64_t rows, int64_t columns, int64_t between, int bytes) {
  switch (bytes) {
    case 1: return transposeBytes(to, from, rows, columns, between);
    case 2: return transposeHalves(to, from, rows, columns, between);
    case 4: return transposeWords(to, from, rows, columns, between);
    default: return transposeLongs(to, from, rows, columns, between);
  }
}

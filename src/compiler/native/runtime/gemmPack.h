/* gemmPack.h: packing into words that hold one float32 each (depth 1); included after gemmKernel.h.

   LT_GROUP         vectors transposed at once
   LT_TRANSPOSE(to, width, stored, rows)   to[w * width + i] = rows[i][w] for i < stored <= LT_GROUP, w < LT_LANES     */

typedef uint32_t lt_loosewords __attribute__((vector_size(4 * LT_LANES), aligned(4), may_alias));

/* One element as a word. */
LT_INLINE uint32_t LT_NAME(word)(const int rounding, const int32_t type, const void *from, int64_t index) {
  if (type == LT_BFLOAT16) return (uint32_t)((const bf16 *)from)[index] << 16;
  const float x = ((const float *)from)[index];
  uint32_t u;
  __builtin_memcpy(&u, &x, 4);
  return rounding ? (uint32_t)lt_to_bf16(x) << 16 : u;
}

/* LT_LANES neighbours as words. */
LT_INLINE lt_wordv LT_NAME(wordsAt)(const int rounding, const int32_t type, const void *from, int64_t index) {
  if (type == LT_BFLOAT16) {
    const lt_halves halves = *(const lt_loosehalves *)((const bf16 *)from + index);
    return __builtin_convertvector(halves, lt_wordv) << 16;
  }
  const lt_wordv u = *(const lt_loosewords *)((const float *)from + index);
  return rounding ? LT_NAME(rounded)(u) & 0xffff0000u : u;
}

/* Panels of arbitrary vectors, one element at a time. */
LT_INLINE void LT_NAME(packLoose)(const int rounding, const int32_t type, uint32_t *to, int64_t size, int64_t width,
                                  const void *from, int64_t across, int64_t along, int64_t vectors, int64_t k) {
  for (int64_t j = 0; j < vectors; j += width, to += size) {
    const int64_t valid = vectors - j < width ? vectors - j : width;
    for (int64_t d = 0; d < k; d++) {
      uint32_t *row = to + d * width;
      for (int64_t i = 0; i < valid; i++) row[i] = LT_NAME(word)(rounding, type, from, (j + i) * across + d * along);
      for (int64_t i = valid; i < width; i++) row[i] = 0;
    }
  }
}

/* How far ahead of what is packed memory is prefetched, at least, where the operand is contiguous: main memory takes
   100 ns, in which 4 kB are packed. */
enum { LT_NAME(AHEAD) = 16384 };
LT_INLINE int64_t LT_NAME(blocksAhead)(int64_t bytes) { return bytes > 0 ? (LT_NAME(AHEAD) + bytes - 1) / bytes : 0; }

/* Rows of a panel, of whose `width` neighbours `valid` exist; prefetches as many, `ahead` bytes on, at line boundaries. */
LT_INLINE void LT_NAME(packBlock)(const int rounding, const int32_t type, const int rows, uint32_t *to, int64_t width,
                                  const char *from, int64_t stride, int64_t valid, int64_t ahead) {
  const int64_t bytes = valid * (type == LT_BFLOAT16 ? 2 : 4), whole = valid - valid % LT_LANES;
  for (int64_t b = ((uintptr_t)-(intptr_t)from) % 64; b < bytes; b += 64)
    LT_UNROLL for (int r = 0; r < rows; r++) __builtin_prefetch(from + ahead + r * stride + b, 0, 2);
  if (LT_ROWS % LT_LANES && width == LT_ROWS && valid == LT_ROWS) {
    for (int r = 0; r < rows; r++)
      LT_UNROLL for (int i = 0; i < LT_ROWS; i++)
        to[r * LT_ROWS + i] = LT_NAME(word)(rounding, type, from + r * stride, i);
    return;
  }
  for (int64_t c = 0; c < whole; c += LT_LANES)
    LT_UNROLL for (int r = 0; r < rows; r++)
      *(lt_loosewords *)(to + r * width + c) = LT_NAME(wordsAt)(rounding, type, from + r * stride, c);
  for (int r = 0; r < rows && whole < width; r++)
    for (int64_t c = whole; c < width; c++)
      to[r * width + c] = c < valid ? LT_NAME(word)(rounding, type, from + r * stride, c) : 0;
}

/* Panels from rows of memory, a few rows at a time in order. */
LT_INLINE void LT_NAME(packAcross)(const int rounding, const int32_t type, uint32_t *to, int64_t size, int64_t width,
                                   const char *from, int64_t along, int64_t vectors, int64_t k) {
  enum { AT_ONCE = 8 };
  const int64_t bytes = type == LT_BFLOAT16 ? 2 : 4;
  const int64_t ahead = LT_NAME(blocksAhead)(AT_ONCE * vectors * bytes) * AT_ONCE * along * bytes;
  for (int64_t d = 0; d < k; d += AT_ONCE, to += AT_ONCE * width, from += AT_ONCE * along * bytes) {
    const int64_t rows = k - d < AT_ONCE ? k - d : AT_ONCE;
    const char *at = from;
    uint32_t *panel = to;
    for (int64_t i = 0; i < vectors; i += width, panel += size, at += width * bytes) {
      const int64_t valid = vectors - i < width ? vectors - i : width;
      if (rows == AT_ONCE)
        LT_NAME(packBlock)(rounding, type, AT_ONCE, panel, width, at, along * bytes, valid, ahead);
      else
        LT_NAME(packLoose)(rounding, type, panel, size, width, at, 1, along, valid, rows);
    }
  }
}

/* LT_GROUP vectors, contiguous in memory, of which `valid` exist. */
LT_INLINE void LT_NAME(packGroup)(const int rounding, const int32_t type, uint32_t *to, int64_t width, const char *from,
                                  int64_t across, int64_t valid, int64_t k, int64_t ahead) {
  const int64_t bytes = type == LT_BFLOAT16 ? 2 : 4;
  for (int64_t d = 0; d < k; d += LT_LANES) {
    LT_UNROLL for (int g = 0; g < LT_GROUP; g++) __builtin_prefetch(from + (g * across + d) * bytes + ahead, 0, 2);
    lt_wordv rows[LT_GROUP];
    if (valid >= LT_GROUP) {
      LT_UNROLL for (int g = 0; g < LT_GROUP; g++) rows[g] = LT_NAME(wordsAt)(rounding, type, from, g * across + d);
    } else {
      LT_UNROLL for (int g = 0; g < LT_GROUP; g++)
        rows[g] = g < valid ? LT_NAME(wordsAt)(rounding, type, from, g * across + d) : (lt_wordv){0};
    }
    LT_TRANSPOSE(to + d * width, width, width < LT_GROUP ? width : LT_GROUP, rows);
  }
}

/* Panels of vectors that are contiguous in memory, a group at a time, in stretches short enough that the panel stays
   in the cache until its other columns are written, and long enough for sequential reads. */
LT_INLINE void LT_NAME(packAlong)(const int rounding, const int32_t type, uint32_t *to, int64_t size, int64_t width,
                                  const char *from, int64_t across, int64_t vectors, int64_t k) {
  enum { AT_ONCE = 256 };
  const int64_t bytes = type == LT_BFLOAT16 ? 2 : 4, whole = k - k % LT_LANES;
  const int64_t ahead = LT_NAME(blocksAhead)(LT_GROUP * k * bytes) * LT_GROUP * across * bytes;
  for (int64_t j = 0; j < vectors; j += width, to += size) {
    const char *at = from + j * across * bytes;
    for (int64_t d = 0; d < whole; d += AT_ONCE)
      for (int64_t i = 0; i < width; i += LT_GROUP)
        LT_NAME(packGroup)(rounding, type, to + d * width + i, width, at + (i * across + d) * bytes, across,
                           vectors - j - i, whole - d < AT_ONCE ? whole - d : AT_ONCE, ahead);
    LT_NAME(packLoose)(rounding, type, to + whole * width, size, width, at + whole * bytes, across, 1,
                       vectors - j < width ? vectors - j : width, k - whole);
  }
}

LT_INLINE void LT_NAME(packAs)(const int rounding, const int32_t type, uint32_t *to, int64_t size, int64_t width,
                               const void *from, int64_t across, int64_t along, int64_t vectors, int64_t k) {
  if (along == 1)
    LT_NAME(packAlong)(rounding, type, to, size, width, from, across, vectors, k);
  else if (across == 1)
    LT_NAME(packAcross)(rounding, type, to, size, width, from, along, vectors, k);
  else
    LT_NAME(packLoose)(rounding, type, to, size, width, from, across, along, vectors, k);
}

/* Defines lt_kernel.pack for a precision. */
#define LT_PACK(name, rounding)                                                                                        \
  static void LT_NAME(name)(uint32_t *to, int64_t size, int64_t width, const void *from, int32_t type, int64_t across, \
                            int64_t along, int64_t vectors, int64_t k) {                                               \
    if (type == LT_BFLOAT16)                                                                                           \
      LT_NAME(packAs)(0, LT_BFLOAT16, to, size, width, from, across, along, vectors, k);                               \
    else                                                                                                               \
      LT_NAME(packAs)(rounding, LT_FLOAT32, to, size, width, from, across, along, vectors, k);                         \
  }
LT_PACK(packFloat32, 0)
LT_PACK(packBfloat16, 1)

/* lt_kernel.pack_pairs: an operand that is packed once and multiplied many times. */
static void LT_NAME(packPairs)(uint32_t *to, int64_t size, int64_t width, const void *from, int32_t type, int64_t across,
                               int64_t along, int64_t vectors, int64_t k) {
  for (int64_t j = 0; j < vectors; j += width, to += size) {
    const int64_t valid = vectors - j < width ? vectors - j : width;
    for (int64_t d = 0; d < k; d += 2) {
      uint32_t *row = to + d / 2 * width;
      for (int64_t i = 0; i < valid; i++) {
        const int64_t at = (j + i) * across + d * along;
        const uint32_t odd = d + 1 < k ? LT_NAME(word)(1, type, from, at + along) : 0;
        row[i] = odd | LT_NAME(word)(1, type, from, at) >> 16;
      }
      for (int64_t i = valid; i < width; i++) row[i] = 0;
    }
  }
}

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

LT_INLINE void LT_NAME(packAs)(const int rounding, const int32_t type, uint32_t *to, int64_t width, const void *from,
                               int64_t across, int64_t along, int64_t valid, int64_t k) {
  if (across == 1 && valid == width && width % LT_LANES == 0) {
    for (int64_t d = 0; d < k; d++)
      for (int64_t i = 0; i < width; i += LT_LANES)
        *(lt_loosewords *)(to + d * width + i) = LT_NAME(wordsAt)(rounding, type, from, d * along + i);
    return;
  }
  if (across == 1 && valid == width && width == LT_ROWS) {
    for (int64_t d = 0; d < k; d++)
      LT_UNROLL for (int i = 0; i < LT_ROWS; i++) to[d * LT_ROWS + i] = LT_NAME(word)(rounding, type, from, d * along + i);
    return;
  }
  int64_t done = 0;
  if (along == 1) {
    for (; done + LT_LANES <= k; done += LT_LANES) {
      for (int64_t i = 0; i < width; i += LT_GROUP) {
        lt_wordv rows[LT_GROUP];
        LT_UNROLL for (int g = 0; g < LT_GROUP; g++)
          rows[g] = i + g < valid ? LT_NAME(wordsAt)(rounding, type, from, (i + g) * across + done) : (lt_wordv){0};
        LT_TRANSPOSE(to + done * width + i, width, width - i < LT_GROUP ? width - i : LT_GROUP, rows);
      }
    }
  }
  for (int64_t d = done; d < k; d++) {
    uint32_t *row = to + d * width;
    for (int64_t i = 0; i < valid; i++) row[i] = LT_NAME(word)(rounding, type, from, i * across + d * along);
    for (int64_t i = valid; i < width; i++) row[i] = 0;
  }
}

/* lt_kernel.pack for each precision. */
LT_INLINE void LT_NAME(packPanels)(const int rounding, const int32_t type, uint32_t *to, int64_t size, int64_t width,
                                   const void *from, int64_t across, int64_t along, int64_t vectors, int64_t k) {
  const int64_t bytes = type == LT_BFLOAT16 ? 2 : 4, rows = across == 1 && along != 1 ? 16 : k;
  for (int64_t d = 0; d < k; d += rows)
    for (int64_t i = 0; i < vectors; i += width)
      LT_NAME(packAs)(rounding, type, to + i / width * size + d * width, width,
                      (const char *)from + (i * across + d * along) * bytes, across, along,
                      vectors - i < width ? vectors - i : width, k - d < rows ? k - d : rows);
}

#define LT_PACK(name, rounding)                                                                                        \
  static void LT_NAME(name)(uint32_t *to, int64_t size, int64_t width, const void *from, int32_t type, int64_t across, \
                            int64_t along, int64_t vectors, int64_t k) {                                               \
    if (type == LT_BFLOAT16)                                                                                           \
      LT_NAME(packPanels)(0, LT_BFLOAT16, to, size, width, from, across, along, vectors, k);                           \
    else                                                                                                               \
      LT_NAME(packPanels)(rounding, LT_FLOAT32, to, size, width, from, across, along, vectors, k);                     \
  }
LT_PACK(packFloat32, 0)
LT_PACK(packBfloat16, 1)

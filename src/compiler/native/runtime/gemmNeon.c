/* gemmNeon.c: the microkernel in NEON. Of 32 registers, 24 hold sums, 3 words of b, and 2 words of a. */
/* flags: -O3 -march=armv8-a */
#include <arm_neon.h>

#include "kernels.h"

#define LT_NAME(x) x
#define LT_ROWS 8
#define LT_VECTORS 3
#define LT_LANES 4
#define LT_DEPTH 1
#define LT_OPERAND lt_vector
#define LT_LOAD(p) vld1q_f32((const float *)(p))
#define LT_SPREAD(w) vreinterpretq_f32_u32(vdupq_n_u32(w))
#define LT_MULADD(c, a, b) vfmaq_f32(c, a, b)

/* Multiply-adds take a lane of a vector. Compilers that saw the loads would load each word into a register of its own,
   for which there are not enough. */
#define LT_LEFTS(a, rows)                                                                                              \
  float32x4_t lefts[2];                                                                                                \
  lefts[0] = vld1q_f32((const float *)(a));                                                                            \
  __asm__("" : "+w"(lefts[0]));                                                                                        \
  if (rows > 4) {                                                                                                      \
    lefts[1] = vld1q_f32((const float *)(a) + 4);                                                                      \
    __asm__("" : "+w"(lefts[1]));                                                                                      \
  }
#define LT_LEFT(a, i) (lt_vector){lefts[(i) / 4][(i) % 4], lefts[(i) / 4][(i) % 4], lefts[(i) / 4][(i) % 4], lefts[(i) / 4][(i) % 4]}

/* For the same reason. */
#define LT_NEXT(left) __asm__ volatile("" : "+w"(left) : : "memory")

#include "gemmKernel.h"

/* to[q * width + i] = rows[i][q] for four rows. */
LT_INLINE void transpose(uint32_t *to, int64_t width, const lt_wordv *rows) {
  const uint32x4x2_t low = vzipq_u32(rows[0], rows[2]), high = vzipq_u32(rows[1], rows[3]);
  const uint32x4x2_t first = vzipq_u32(low.val[0], high.val[0]), second = vzipq_u32(low.val[1], high.val[1]);
  vst1q_u32(to, first.val[0]);
  vst1q_u32(to + width, first.val[1]);
  vst1q_u32(to + 2 * width, second.val[0]);
  vst1q_u32(to + 3 * width, second.val[1]);
}

#define LT_GROUP 4
#define LT_TRANSPOSE(to, width, stored, rows) transpose(to, width, rows)
#include "gemmPack.h"

const lt_kernel lt_neon_float32 = {
    "neon", LT_ROWS, LT_LANES, LT_LANES * LT_VECTORS, 1, packFloat32, choose, multiplyAt, burn, NULL, NULL, 2};
const lt_kernel lt_neon_bfloat16 = {
    "neon", LT_ROWS, LT_LANES, LT_LANES * LT_VECTORS, 1, packBfloat16, choose, multiplyAt, burn, NULL, NULL, 2};
const lt_kernel lt_neon_kept = {
    "neon", LT_ROWS, LT_LANES, LT_LANES * LT_VECTORS, 1, packBfloat16, choosePairs, NULL, burn, packPairs, NULL, 2};

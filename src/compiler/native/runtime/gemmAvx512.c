/* gemmAvx512.c: the microkernel for AVX-512 without bf16 instructions. */
/* flags: -O3 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mfma -mprfchw -mprefer-vector-width=512 */
#include "gemmAvx512.h"

#define LT_NAME(x) x
#define LT_DEPTH 1
#define LT_OPERAND __m512
#define LT_LOAD(p) _mm512_loadu_ps((const float *)(p))
#define LT_SPREAD(w) _mm512_castsi512_ps(_mm512_set1_epi32((int)(w)))
#define LT_MULADD(c, a, b) _mm512_fmadd_ps(a, b, c)
#include "gemmKernel.h"

#define LT_TRANSPOSE(to, width, stored, rows) lt_transpose512(to, width, (const __m512i *)(rows), 16)
#include "gemmPack.h"

const lt_kernel lt_avx512_float32 = {
    "avx512", LT_ROWS, LT_LANES, LT_LANES * LT_VECTORS, 1, packFloat32, choose, multiplyAt, burn, NULL, NULL, 2};
const lt_kernel lt_avx512_bfloat16 = {
    "avx512", LT_ROWS, LT_LANES, LT_LANES * LT_VECTORS, 1, packBfloat16, choose, multiplyAt, burn, NULL, NULL, 2};
const lt_kernel lt_avx512_kept = {
    "avx512", LT_ROWS, LT_LANES, LT_LANES * LT_VECTORS, 1, packBfloat16, choosePairs, NULL, burn, packPairs, NULL, 2};

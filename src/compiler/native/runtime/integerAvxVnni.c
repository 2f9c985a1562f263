/* integerAvxVnni.c: integer products of rounded rows by weights of few bits in AVX2 with VNNI. */
/* flags: -O3 -mavx2 -mfma -mavxvnni -ffp-contract=off */
#include "integerAvx2.h"

#define LT_DOT(bits, sums, w, x) (lt_ints) _mm256_dpbusd_avx_epi32((__m256i)(sums), (__m256i)(w), _mm256_set1_epi32(x))
#include "integerKernel.h"

const lt_quantized_kernel lt_integer_avxvnni = LT_INTEGER_KERNEL;

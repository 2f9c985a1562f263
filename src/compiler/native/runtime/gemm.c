/* gemm.c: microkernel selection, and packing of operands for products. */
/* flags: -O2 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif
#if defined(LT_HAVE_GEMMAMX) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "kernels.h"
#include "quantized.h"

/* ---- Microkernel selection --------------------------------------------------------------------------------------- */
/* LT_HAVE_X means that the compiler accepted the flags of that file. */

extern const lt_kernel lt_amx_bfloat16, lt_avx512bf16_bfloat16, lt_avx512_float32, lt_avx512_bfloat16, lt_avx2_float32, lt_avx2_bfloat16,
    lt_neon_float32, lt_neon_bfloat16, lt_portable_float32, lt_portable_bfloat16;
extern const lt_kernel lt_avx512_kept, lt_avx2_kept, lt_neon_kept, lt_portable_kept;
extern const lt_quantized_kernel lt_quantized_avx512, lt_quantized_avx2, lt_quantized_portable;
extern const lt_quantized_kernel lt_integer_avx512vnni, lt_integer_avxvnni, lt_integer_avx2, lt_integer_portable;

typedef struct {
  const char *name;
  const lt_kernel *of[4]; /* by precision */
  const lt_kernel *attention; /* of bfloat16, if another */
  const lt_quantized_kernel *integers;
} choice;

#ifdef LT_HAVE_GEMMAVX512BF16
static int runsAvx512Bf16(void) {
  return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq");
}
#endif
#ifdef LT_HAVE_GEMMAMX
/* Linux gives a process tiles when it asks for them. */
static int runsAmx(void) {
#if defined(LT_EMULATED_TILES)
  return runsAvx512Bf16();
#elif defined(__linux__)
  enum { LEAF = 7, BF16 = 1 << 22, TILE = 1 << 24, ASK = 0x1023, TILES = 18 };
  unsigned a, b, c, d;
  if (!runsAvx512Bf16() || !__get_cpuid_count(LEAF, 0, &a, &b, &c, &d)) return 0;
  return (d & BF16) && (d & TILE) && syscall(SYS_arch_prctl, ASK, TILES) == 0;
#else
  return 0;
#endif
}
#endif
#ifdef LT_HAVE_GEMMAVX512
static int runsAvx512(void) {
  return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}
#endif
#ifdef LT_HAVE_INTEGERAVX512VNNI
static int runsAvx512Vnni(void) { return runsAvx512() && __builtin_cpu_supports("avx512vnni"); }
#endif
#ifdef LT_HAVE_GEMMAVX2
static int runsAvx2(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
#endif
#ifdef LT_HAVE_INTEGERAVXVNNI
/* Compilers that know the instructions may have no name for the question. */
static int runsAvxVnni(void) {
  enum { LEAF = 7, PART = 1, VNNI = 1 << 4 };
  unsigned a, b, c, d;
  return runsAvx2() && __get_cpuid_count(LEAF, PART, &a, &b, &c, &d) && (a & VNNI);
}
#endif
static int runsAlways(void) { return 1; }

#ifdef LT_HAVE_INTEGERAVX2
#define LT_INTEGERS_AVX2 &lt_integer_avx2
#else
#define LT_INTEGERS_AVX2 &lt_integer_portable
#endif
#ifdef LT_HAVE_INTEGERAVX512VNNI
#define LT_INTEGERS_AVX512 &lt_integer_avx512vnni
#else
#define LT_INTEGERS_AVX512 LT_INTEGERS_AVX2
#endif

/* The CPUs of bf16 instructions have those of VNNI. */
static const struct {
  int (*runs)(void);
  choice choice;
} known[] = {
#if defined(LT_HAVE_GEMMAMX) && defined(LT_HAVE_GEMMAVX512BF16) && defined(LT_HAVE_GEMMAVX512)
    {runsAmx, {"amx", {&lt_avx512_float32, &lt_amx_bfloat16, &lt_avx512_bfloat16, &lt_avx512_kept}, &lt_avx512_bfloat16, LT_INTEGERS_AVX512}},
#endif
#if defined(LT_HAVE_GEMMAVX512BF16) && defined(LT_HAVE_GEMMAVX512)
    {runsAvx512Bf16, {"avx512bf16", {&lt_avx512_float32, &lt_avx512bf16_bfloat16, &lt_avx512_bfloat16, &lt_avx512_kept}, NULL, LT_INTEGERS_AVX512}},
#endif
#if defined(LT_HAVE_INTEGERAVX512VNNI) && defined(LT_HAVE_GEMMAVX512)
    {runsAvx512Vnni, {"avx512vnni", {&lt_avx512_float32, &lt_avx512_bfloat16, &lt_avx512_bfloat16, &lt_avx512_kept}, NULL, LT_INTEGERS_AVX512}},
#endif
#ifdef LT_HAVE_GEMMAVX512
    {runsAvx512, {"avx512", {&lt_avx512_float32, &lt_avx512_bfloat16, &lt_avx512_bfloat16, &lt_avx512_kept}, NULL, LT_INTEGERS_AVX2}},
#endif
#if defined(LT_HAVE_INTEGERAVXVNNI) && defined(LT_HAVE_GEMMAVX2)
    {runsAvxVnni, {"avxvnni", {&lt_avx2_float32, &lt_avx2_bfloat16, &lt_avx2_bfloat16, &lt_avx2_kept}, NULL, &lt_integer_avxvnni}},
#endif
#ifdef LT_HAVE_GEMMAVX2
    {runsAvx2, {"avx2", {&lt_avx2_float32, &lt_avx2_bfloat16, &lt_avx2_bfloat16, &lt_avx2_kept}, NULL, LT_INTEGERS_AVX2}},
#endif
#ifdef LT_HAVE_GEMMNEON
    {runsAlways, {"neon", {&lt_neon_float32, &lt_neon_bfloat16, &lt_neon_bfloat16, &lt_neon_kept}, NULL, &lt_integer_portable}},
#endif
    {runsAlways, {"portable", {&lt_portable_float32, &lt_portable_bfloat16, &lt_portable_bfloat16, &lt_portable_kept}, NULL, &lt_integer_portable}},
};

static const choice *chosen;

const lt_quantized_kernel *lt_quantized_kernel_of(int32_t row_bits) {
  if (row_bits) return chosen->integers;
#ifdef LT_HAVE_QUANTIZEDAVX512
  if (chosen->of[LT_FLOAT32] == &lt_avx512_float32) return &lt_quantized_avx512;
#endif
#ifdef LT_HAVE_QUANTIZEDAVX2
  if (chosen->of[LT_FLOAT32] == &lt_avx2_float32) return &lt_quantized_avx2;
#endif
  return &lt_quantized_portable;
}

int lt_gemm_force(const char *name) {
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    if (strcmp(name, "auto") && strcmp(name, known[i].choice.name)) continue;
    if (!known[i].runs()) continue;
    chosen = &known[i].choice;
    return 1;
  }
  return 0;
}

__attribute__((constructor)) static void choose(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_cpu_init();
#endif
  const char *wish = getenv("LUTHIER_KERNEL");
  if (!wish || !lt_gemm_force(wish)) lt_gemm_force("auto");
}

const lt_kernel *lt_kernel_of(int p) { return chosen->of[p]; }
const lt_kernel *lt_attention_kernel_of(int p) {
  return p == LT_BFLOAT16 && chosen->attention ? chosen->attention : lt_kernel_of(p);
}
const char *lt_gemm_kernel(int p) { return lt_kernel_of(p)->name; }

const char *lt_kernels(int p) {
  static char text[96];
  const char *few = "";
#if defined(LT_HAVE_ATTENTIONFEWAVX512BF16) && defined(LT_HAVE_GEMMAVX512BF16)
  if (chosen->of[p] == &lt_avx512bf16_bfloat16) few = ", few queries";
#endif
  snprintf(text, sizeof text, "%s (float32), %s (bfloat16%s)", chosen->of[0]->name, chosen->of[p]->name, few);
  return text;
}

/* ---- Packed operands ------------------------------------------------------------------------------------------ */

static int64_t ceilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Panels have the tile's width; narrower ones are used if they fit evenly where the last would have a single vector. */
int64_t lt_panel_width(const lt_kernel *kernel, int64_t n) {
  const int64_t narrow = kernel->columns - kernel->lanes;
  if (n <= kernel->columns) return ceilDivide(n, kernel->lanes) * kernel->lanes;
  const int64_t rest = n % kernel->columns;
  return rest > 0 && rest <= kernel->lanes && n % narrow == 0 && n <= 8 * narrow ? narrow : kernel->columns;
}

int64_t lt_panels(int p, int64_t n) { return n > 0 ? ceilDivide(n, lt_panel_width(lt_kernel_of(p), n)) : 0; }

static int64_t bytesOf(int64_t panels, int64_t width, int64_t words) { return ceilDivide(panels * width * words * 4, 64) * 64; }

static void packRight(const lt_kernel *kernel, uint32_t *to, int64_t size, int64_t width, const void *from, lt_matrix b,
                      int64_t vectors, int64_t k) {
  (kernel->pack_pairs ? kernel->pack_pairs : kernel->pack)(to, size, width, from, b.type, b.cs, b.rs, vectors, k);
}

int64_t lt_packed_bytes(int p, int64_t k, int64_t n) {
  const lt_kernel *kernel = lt_kernel_of(p);
  return n > 0 ? bytesOf(lt_panels(p, n), lt_panel_width(kernel, n), lt_right_words(kernel, k)) : 0;
}

int64_t lt_packed_left_bytes(int p, int64_t m, int64_t k) {
  const lt_kernel *kernel = lt_kernel_of(p);
  return bytesOf(ceilDivide(m, kernel->rows), kernel->rows, lt_words(kernel, k));
}

void lt_pack_panels(int p, void *packed, lt_matrix b, int64_t k, int64_t n, int64_t first, int64_t last) {
  const lt_kernel *kernel = lt_kernel_of(p);
  const int64_t width = lt_panel_width(kernel, n), size = width * lt_right_words(kernel, k);
  const int64_t end = least(n, last * width);
  if (first < last)
    packRight(kernel, (uint32_t *)packed + first * size, size, width, lt_element(b, 0, first * width), b, end - first * width, k);
}

void lt_pack_slab(int p, void *packed, lt_matrix b, int64_t k, int64_t n, int64_t k0, int64_t k1) {
  const lt_kernel *kernel = lt_kernel_of(p);
  const int64_t width = lt_panel_width(kernel, n);
  packRight(kernel, (uint32_t *)packed + k0 / lt_right_depth(kernel) * width, width * lt_right_words(kernel, k), width,
            lt_element(b, k0, 0), b, n, k1 - k0);
}

void lt_pack_left(int p, void *packed, lt_matrix a, int64_t m, int64_t k, int64_t first, int64_t last) {
  const lt_kernel *kernel = lt_kernel_of(p);
  const int64_t width = kernel->rows, size = width * lt_words(kernel, k), end = least(m, last * width);
  if (first < last)
    lt_left_pack(kernel)((uint32_t *)packed + first * size, size, width, lt_element(a, first * width, 0), a.type, a.rs, a.cs,
                         end - first * width, k);
}

/* program.h: parts of every generated program: memory, steps that all threads take, and the barriers between. */
#ifndef LUTHIER_PROGRAM_H
#define LUTHIER_PROGRAM_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "luthier.h"

/* A function of a program, compiled as it is written: gcc 12 forgets that a loop is to be vectorised where it knows from
   the only call that the loop around it runs once. */
#if defined(__GNUC__) && !defined(__clang__)
#define LT_ALONE __attribute__((noipa))
#else
#define LT_ALONE __attribute__((noinline))
#endif

/* Large programs are compiled in two parts at the same time: the loops, and all else. */
#if defined(LT_LOOPS) || defined(LT_STEPS)
#define LT_FUNCTION void LT_ALONE __attribute__((visibility("hidden")))
#else
#define LT_LOOPS
#define LT_STEPS
#define LT_FUNCTION static void LT_ALONE
#endif

/* What a thread did from one moment to another, in seconds of the system's clock. */
typedef struct {
  double from, to;
  int32_t step, part; /* part -1: waiting for the others before the step */
} lt_span;

/* The spans of a thread in the last run of a program that is compiled with LUTHIER_PROFILE. */
typedef struct {
  lt_span *spans;
  int64_t count, room;
  double last; /* the end of the last one */
  int32_t step;
} lt_timeline;

/* What a thread has to itself during a run. */
typedef struct {
  char *scratch;      /* values of a chain's block of rows */
  char *row;          /* values of one row that a later pass over it reads */
  char *work;         /* what products and attention of the runtime ask for */
  char *accumulators; /* this thread's parts of sums over rows */
  int64_t accumulator_stride; /* bytes to the next thread's */
  lt_timeline *timeline;      /* NULL where nothing is timed */
  int32_t bad_index;
  int thread, threads;
} lt_frame;

/* Where a pointer of a step points to. */
enum { LT_ARENA, LT_INPUT, LT_OUTPUT, LT_CONSTANT, LT_PACKED, LT_WORKSPACE, LT_OFFSET };
typedef struct {
  int32_t space;
  int32_t index;
  int64_t offset; /* bytes; LT_OFFSET: the pointer is this number */
} lt_place;

typedef struct {
  void (*run)(void *const *p, lt_frame *frame);
  int32_t first; /* of its pointers among the places */
  int32_t waits; /* whether all threads meet before it */
} lt_step;

/* An operand that is packed for products. */
typedef struct {
  int32_t precision;
  int64_t k, n;
} lt_packing;

/* All of a program but its code. */
typedef struct {
  const lt_place *places;
  const lt_step *steps;
  const lt_packing *packings;
  int64_t place_count, step_count, packing_count;
  int64_t arena_bytes, scratch_bytes, row_bytes, accumulator_bytes;
  int64_t once_steps, once_places; /* the first so many: of steps that run only when what they read has changed */
  int64_t (*work_bytes)(void);
  int64_t (*workspace_bytes)(void);
  int32_t profiled; /* whether its code has marks */
} lt_program_text;

/* A part of a step ends here: a unit of a chain, or all of it. */
#ifdef LUTHIER_PROFILE
enum { LT_PROFILED = 1 };
#define LT_MARK(part) lt_mark(frame->timeline, part)
#else
enum { LT_PROFILED = 0 };
#define LT_MARK(part) ((void)0)
#endif
void lt_mark(lt_timeline *timeline, int32_t part);

static inline int64_t lt_align(int64_t bytes) { return (bytes + 63) & ~(int64_t)63; }
static inline int64_t lt_larger(int64_t a, int64_t b) { return a > b ? a : b; }

static inline int64_t lt_between(int64_t low, int64_t x, int64_t high) { return x > high ? high : x < low ? low : x; }

/* A thread's share of n items: [lt_from(n), lt_to(n)). */
#define LT_FROM(n) ((int64_t)(n) * frame->thread / frame->threads)
#define LT_TO(n) ((int64_t)(n) * (frame->thread + 1) / frame->threads)

/* An index into n rows; a wrong one is noted, and stands for the nearest right one. */
static inline int64_t lt_index_clamped(int32_t i, int32_t n) { return i < 0 ? 0 : i >= n ? n - 1 : i; }
#define lt_index(i, n, bad) (*(bad) |= (uint32_t)(i) >= (uint32_t)(n), lt_index_clamped(i, n))

static inline void lt_fill_f32(void *x, int64_t n, float value) {
  for (int64_t i = 0; i < n; i++) ((float *)x)[i] = value;
}
static inline void lt_fill_i32(void *x, int64_t n, int32_t value) {
  for (int64_t i = 0; i < n; i++) ((int32_t *)x)[i] = value;
}

/* A tensor along two of its axes, strides in elements: of an axis that is sliced, and of one that is not. */
typedef struct {
  void *data;
  int32_t type; /* LT_FLOAT32: or any other elements of four bytes */
  int64_t row, column;
} lt_line;

typedef uint32_t lt_word __attribute__((may_alias));

static inline void lt_move_rows(lt_line to, int64_t first, lt_line from, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; r++) {
    const int64_t at = (first + r) * to.row;
    if (to.type == LT_BFLOAT16 && from.type == LT_BFLOAT16)
      for (int64_t c = 0; c < columns; c++)
        ((bf16 *)to.data)[at + c * to.column] = ((const bf16 *)from.data)[r * from.row + c * from.column];
    else if (to.type == LT_BFLOAT16)
      for (int64_t c = 0; c < columns; c++)
        ((bf16 *)to.data)[at + c * to.column] = lt_to_bf16(((const float *)from.data)[r * from.row + c * from.column]);
    else if (from.type == LT_BFLOAT16)
      for (int64_t c = 0; c < columns; c++)
        ((float *)to.data)[at + c * to.column] = lt_from_bf16(((const bf16 *)from.data)[r * from.row + c * from.column]);
    else
      for (int64_t c = 0; c < columns; c++)
        ((lt_word *)to.data)[at + c * to.column] = ((const lt_word *)from.data)[r * from.row + c * from.column];
  }
}

/* out = x, `size` rows, with `count` other rows from row `at` on. What lies on x already stays. */
static inline void lt_update_slice(lt_line out, lt_line x, lt_line rows, int64_t size, int64_t at, int64_t count,
                                   int64_t columns) {
  if (out.data != x.data) lt_move_rows(out, 0, x, size, columns);
  lt_move_rows(out, at, rows, count, columns);
}

/* A thread's share of packing a right operand: slabs of rows where rows are contiguous, panels of columns elsewhere. */
void lt_pack_share(int p, void *packed, lt_matrix b, int64_t k, int64_t n, const lt_frame *frame);

/* Memory that starts at zero, in large pages where the system has them; NULL when there is none. */
void *lt_allocate(int64_t bytes);
void lt_release(void *memory, int64_t bytes);
/* Asks for large pages in memory of somebody else, for as far as it has not been touched yet. */
void lt_prefer_large_pages(void *memory, int64_t bytes);

/* How often a program runs. */
typedef struct {
  int64_t times;
  int64_t stale; /* whether what is kept from run to run has to be worked out again */
  /* Bytes from the part of an array that one run works on to the next one's, 0 where all work on the same; NULL where
     all arrays are so. */
  const int64_t *input_strides, *output_strides;
  int64_t carry_count;
  struct {
    int64_t output, input, bytes;
  } carries[]; /* outputs that are copied to inputs after each run */
} lt_request;

/* The exported functions of a program (runtime/program.c). Where the environment has LUTHIER_GUARD_PAGES, each region of a
   program's memory ends at a page that nothing may touch: what reaches beyond is killed. */
void *lt_open(const lt_program_text *text, int threads, const void *const *constants);
int lt_run(void *program, void *const *inputs, void *const *outputs, const lt_request *request);
void lt_close(void *program);
/* The spans of the last run, up to `capacity` of them, as thread, step, part, from, to; returns how many there are. */
int64_t lt_spans(void *program, double *spans, int64_t capacity);

#endif

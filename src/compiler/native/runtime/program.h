/* program.h: common parts of generated programs: memory, steps that all threads run, and barriers. */
#ifndef LUTHIER_PROGRAM_H
#define LUTHIER_PROGRAM_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "collectives.h"
#include "luthier.h"

/* A function that must not be specialised: gcc 12 stops vectorising a loop once it knows from the only call that the
   surrounding loop runs once. */
#if defined(__GNUC__) && !defined(__clang__)
#define LT_ALONE __attribute__((noipa))
#else
#define LT_ALONE __attribute__((noinline))
#endif

/* Large programs are compiled in two sections in parallel: the loops, and the rest. */
#if defined(LT_LOOPS) || defined(LT_STEPS)
#define LT_FUNCTION void LT_ALONE __attribute__((visibility("hidden")))
#else
#define LT_LOOPS
#define LT_STEPS
#define LT_FUNCTION static void LT_ALONE
#endif

/* How all of this program's products multiply bfloat16, since it changes the order of their sums. */
#ifdef LT_BY_FLOATS
enum { LT_HALVES = LT_ROUNDED, LT_HALVES_KEPT = LT_ROUNDED_KEPT };
#else
enum { LT_HALVES = LT_BFLOAT16, LT_HALVES_KEPT = LT_BFLOAT16 };
#endif

/* A thread's activity between two times, in seconds of the system clock. */
typedef struct {
  double from, to;
  int32_t step, part; /* part -1: waiting before the step */
} lt_span;

/* A thread's spans in the last run of a program compiled with LUTHIER_PROFILE. */
typedef struct {
  lt_span *spans;
  int64_t count, room;
  double last; /* end of the last span */
  int32_t step;
} lt_timeline;

/* A thread's private memory during a run. */
typedef struct {
  char *scratch; /* a chain's values for one block of rows */
  char *row;     /* values of a row that a later pass reads */
  char *work;    /* scratch of the runtime's products and attention */
  lt_timeline *timeline; /* NULL without profiling */
  int32_t bad_index; /* or any other reason to end the run */
  int thread, threads;
  lt_ranks *ranks;
} lt_frame;

/* Memory that a step's pointer refers to. */
enum { LT_ARENA, LT_INPUT, LT_OUTPUT, LT_CONSTANT, LT_PACKED, LT_WORKSPACE };
typedef struct {
  int32_t space;
  int32_t index;
  int64_t offset; /* bytes */
} lt_place;

typedef struct {
  void (*run)(void *const *p, lt_frame *frame);
  int32_t first; /* of its pointers among the places */
  int32_t waits; /* whether a barrier precedes it */
} lt_step;

/* Steps [first, end) that are repeated `length` times or, with a predicate, done once if that bool is `holds`. */
typedef struct {
  int32_t first, end;
  int64_t length;
  int32_t predicate; /* its number among the places; -1 for none */
  int32_t holds;
  int32_t first_term, end_term; /* of the pointers that move within the loop */
} lt_loop;

/* What a turn adds to a pointer: (turn + shift) * step bytes, with turns modulo period, unless that is 0. */
typedef struct {
  int32_t place, loop;
  int32_t shift, period;
  int64_t step;
} lt_term;

/* A packed operand of products. */
typedef struct {
  int32_t precision;
  int64_t k, n;
  int64_t region; /* which other ones lie in too, at other times */
  /* Where it persists between runs and is packed from an input: that input, so that programs can share it. */
  int32_t shared;
  int32_t input, type;
  int64_t offset, rs, cs; /* bytes, elements */
} lt_packing;

/* A program's data, without its code. */
typedef struct {
  const lt_place *places;
  const lt_step *steps;
  const lt_packing *packings;
  const lt_loop *loops; /* outer ones before those within them */
  const lt_term *terms; /* by place */
  int64_t place_count, step_count, packing_count, loop_count;
  int64_t arena_bytes, scratch_bytes, row_bytes;
  int64_t once_steps, once_places; /* numbers of leading steps, and of their places, that run only when their inputs have changed */
  int64_t (*work_bytes)(void);
  int64_t (*workspace_bytes)(void);
  int32_t profiled; /* whether its code has timing marks */
} lt_program_text;

/* End of a profiled part: a unit of a chain, or a whole step. */
#ifdef LUTHIER_PROFILE
enum { LT_PROFILED = 1 };
#define LT_MARK(part) lt_mark(frame->timeline, part)
#else
enum { LT_PROFILED = 0 };
#define LT_MARK(part) ((void)0)
#endif
void lt_mark(lt_timeline *timeline, int32_t part);
void lt_restart_timeline(lt_timeline *timeline); /* forgets its spans; the next one begins now */
/* The spans of all threads, up to `capacity`, five numbers each as in lt_spans; returns their total number. */
int64_t lt_copy_spans(const lt_timeline *timelines, int threads, double *spans, int64_t capacity);

static inline int64_t lt_align(int64_t bytes) { return (bytes + 63) & ~(int64_t)63; }
static inline int64_t lt_larger(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t lt_smaller(int64_t a, int64_t b) { return a < b ? a : b; }

static inline int64_t lt_between(int64_t low, int64_t x, int64_t high) { return x > high ? high : x < low ? low : x; }

/* A thread's share of n items: [lt_from(n), lt_to(n)). */
#define LT_FROM(n) ((int64_t)(n) * frame->thread / frame->threads)
#define LT_TO(n) ((int64_t)(n) * (frame->thread + 1) / frame->threads)

/* The tasks of all threads; and shares of n items as tasks, [lt_share(n), lt_share(n) of the next): more than threads, so
   that others take over the shares that a thread which is held up has not begun. */
#define LT_EACH(task, count) LT_TASKS(task, count, frame->thread, frame->threads)
#define LT_SHARES (frame->threads > 1 ? 4 * frame->threads : 1)
#define LT_SHARE(share, n) ((int64_t)(n) * (share) / LT_SHARES)

/* A zero that compilers do not know. Added to an index it keeps gcc 12 from gathering by the result of a comparison, which it
   takes for a mask: other rows would be read. */
static inline int32_t lt_unknown_zero(void) {
  int32_t zero = 0;
  __asm__("" : "+r"(zero));
  return zero;
}

/* An index into n rows; a bad one is noted and clamped. */
static inline int64_t lt_index_clamped(int32_t i, int32_t n) { return i < 0 ? 0 : i >= n ? n - 1 : i; }
#define lt_index(i, n, bad) (*(bad) |= (uint32_t)(i) >= (uint32_t)(n), lt_index_clamped(i, n))

static inline void lt_fill_f32(void *x, int64_t n, float value) {
  for (int64_t i = 0; i < n; i++) ((float *)x)[i] = value;
}
static inline void lt_fill_i32(void *x, int64_t n, int32_t value) {
  for (int64_t i = 0; i < n; i++) ((int32_t *)x)[i] = value;
}

/* A tensor along two axes, strides in elements: the sliced axis, and another. */
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
    else if (to.type == LT_INT8 && from.type == LT_INT8)
      for (int64_t c = 0; c < columns; c++)
        ((int8_t *)to.data)[at + c * to.column] = ((const int8_t *)from.data)[r * from.row + c * from.column];
    else if (to.type == LT_INT8)
      for (int64_t c = 0; c < columns; c++)
        ((int8_t *)to.data)[at + c * to.column] = lt_to_i8(((const int32_t *)from.data)[r * from.row + c * from.column]);
    else if (from.type == LT_INT8)
      for (int64_t c = 0; c < columns; c++)
        ((int32_t *)to.data)[at + c * to.column] = ((const int8_t *)from.data)[r * from.row + c * from.column];
    else
      for (int64_t c = 0; c < columns; c++)
        ((lt_word *)to.data)[at + c * to.column] = ((const lt_word *)from.data)[r * from.row + c * from.column];
  }
}

/* out = x, `size` rows, with `count` rows from row `at` on replaced. Elements of x that are already in place are not
   copied. */
static inline void lt_update_slice(lt_line out, lt_line x, lt_line rows, int64_t size, int64_t at, int64_t count,
                                   int64_t columns) {
  if (out.data != x.data) lt_move_rows(out, 0, x, size, columns);
  lt_move_rows(out, at, rows, count, columns);
}

/* A thread's share of packing a right operand (runtime/packSteps.c). Where the packed one persists between runs,
   lt_pack_kept gives back the memory of what it has read, if a file has it. */
void lt_pack_share(int p, void *packed, lt_matrix b, int64_t k, int64_t n, const lt_frame *frame);
void lt_pack_kept(int p, void *packed, lt_matrix b, int64_t k, int64_t n, const lt_frame *frame);

/* ---- Collectives (collectives.c), steps of all threads; groups by number ----------------------------------------

   Operands and results are row-major: `outer` times the members' parts along a dimension, of `run` elements of four bytes
   for reductions, else of `run` bytes, or the member's own part. The workspace has room for all
   members' blocks, where the call has to lay them out: of all_to_all for those of x and those of the result. */
void lt_all_reduce(lt_frame *frame, int32_t group, void *out, const void *x, int64_t size, int32_t reduction);
void lt_reduce_scatter(lt_frame *frame, int32_t group, void *out, const void *x, int64_t outer, int64_t run,
                       int32_t reduction, void *workspace);
void lt_all_gather(lt_frame *frame, int32_t group, void *out, const void *x, int64_t outer, int64_t run,
                   void *workspace);
/* The parts of x that the members get, and those of the result that come from them. */
typedef struct {
  int64_t from_outer, from_run, to_outer, to_run;
} lt_exchange;
void lt_all_to_all(lt_frame *frame, int32_t group, void *out, const void *x, const lt_exchange *exchange,
                   void *workspace);
void lt_collective_permute(lt_frame *frame, int32_t group, void *out, const void *x, int64_t bytes, int32_t by);
void lt_own_part(const lt_frame *frame, int32_t group, void *out, const void *x, int64_t outer, int64_t run);
void lt_member_index(const lt_frame *frame, int32_t group, void *out); /* int32 */

/* Zeroed memory, in large pages if the system has them; NULL if there is none. */
void *lt_allocate(int64_t bytes);
void lt_release(void *memory, int64_t bytes);
/* Requests large pages for untouched parts of the caller's memory. */
void lt_prefer_large_pages(void *memory, int64_t bytes);
/* Has the caller's memory be taken in the smallest pages, as it is touched. */
void lt_prefer_small_pages(void *memory, int64_t bytes);
/* Gives the whole pages among `count` ranges of the caller's anonymous memory, `step` bytes from begin to begin, back to the
   system, where it takes them: they are then zero. */
void lt_discard(void *memory, int64_t bytes, int64_t count, int64_t step);
/* Makes pages of mapped files that the process has not changed leave its memory until they are read again. All other
   memory stays as it is. */
void lt_give_back(const void *memory, int64_t bytes);

/* A request for runs of a program. */
typedef struct {
  int64_t times;
  int64_t stale; /* whether persistent results must be recomputed */
  /* Bytes between the slices of consecutive runs of each array, 0 for arrays that are not stacked; NULL if none is. */
  const int64_t *input_strides, *output_strides;
  int64_t carry_count;
  struct {
    int64_t output, input, bytes;
  } carries[]; /* outputs copied to inputs after each run */
} lt_request;

/* The exported functions of a program (runtime/program.c). If LUTHIER_GUARD_PAGES is set, each region of a program's
   memory ends at a guard page, so that overruns crash. */
void *lt_open(const lt_program_text *text, int threads, const void *const *constants, const lt_group *groups);
/* 0, or LT_SHORT, LT_BAD_INDEX plus 256 times the number of the run, LT_RANKS_FAILED. */
enum { LT_SHORT = 1, LT_BAD_INDEX = 2, LT_RANKS_FAILED = 3 };
int lt_run(void *program, void *const *inputs, void *const *outputs, const lt_request *request);
/* A run on a thread of its own, of a program of one thread, beside other such runs: what they wait for may be each other.
   lt_begin returns 0 where the system has no thread; lt_await returns what lt_run does. */
int lt_begin(void *program, void *const *inputs, void *const *outputs, const lt_request *request);
int lt_await(void *program);
/* The transport's error of the last run, the operation, the number of its group, its bytes. */
void lt_failed_collective(const void *program, int64_t *words);
void lt_close(void *program);
/* The spans of the last run, up to `capacity` of them, as thread, step, part, from, to; returns their total number. */
int64_t lt_spans(void *program, double *spans, int64_t capacity);
/* Bytes of packed operands that programs share at present (runtime/sharedOperands.c). */
int64_t lt_shared_bytes(void);

#endif

/* programCheck.c: barriers of programs: between steps, turns, branches and rounds. Threads come late by turns, so that a
   barrier that is missing shows at once; run by kernels.test.ts. Silent where all is well. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "program.h"

enum { THREADS = 3, TURNS = 4, ROUNDS = 3 };

static void late(const lt_frame *frame, int thread) {
  if (frame->thread == thread) usleep(3000);
}

/* cells[thread] = in[thread] + thread */
static void begin(void *const *p, lt_frame *frame) {
  late(frame, 1);
  ((float *)p[1])[frame->thread] = ((const float *)p[0])[frame->thread] + (float)frame->thread;
}

/* Each thread adds its number to the sum of all threads' cells, in its place of `next`. */
static void sum(void *const *p, lt_frame *frame) {
  late(frame, 2);
  float total = (float)frame->thread;
  for (int t = 0; t < frame->threads; t++) total += ((const float *)p[0])[t];
  ((float *)p[1])[frame->thread] = total;
  late(frame, 0);
}

/* A turn's step: writes its slice. `row` moves with the turns. */
static void turn(void *const *p, lt_frame *frame) {
  late(frame, 1);
  float total = 0;
  for (int t = 0; t < frame->threads; t++) total += ((const float *)p[0])[t];
  ((float *)p[1])[frame->thread] = total / 4 + (float)frame->thread;
}

/* Where the predicate holds: once. */
static void branch(void *const *p, lt_frame *frame) {
  late(frame, 2);
  ((float *)p[0])[frame->thread] += 100;
}

/* out[thread] = the last row of all threads, and its number */
static void finish(void *const *p, lt_frame *frame) {
  late(frame, 2);
  float total = 0;
  for (int t = 0; t < frame->threads; t++) total += ((const float *)p[0])[t];
  ((float *)p[1])[frame->thread] = total + (float)frame->thread;
  }

/* The predicate of each round, which thread 0 writes late. */
static void decide(void *const *p, lt_frame *frame) {
  if (frame->thread != 0) return;
  usleep(3000);
  *(uint8_t *)p[1] = ((const float *)p[0])[0] > 2;
}

enum { CELLS = 0, ROWS = 64, PREDICATE = 640 };
static const lt_place places[] = {
    {LT_INPUT, 0, 0},        {LT_ARENA, 0, CELLS},     /* begin */
    {LT_INPUT, 0, 0},        {LT_ARENA, 0, PREDICATE}, /* decide */
    {LT_ARENA, 0, CELLS},    {LT_ARENA, 0, ROWS},      /* sum */
    {LT_ARENA, 0, ROWS},     {LT_ARENA, 0, ROWS + 64}, /* turn */
    {LT_ARENA, 0, PREDICATE},
    {LT_ARENA, 0, ROWS + 64 * TURNS},                  /* branch */
    {LT_ARENA, 0, ROWS + 64 * TURNS}, {LT_OUTPUT, 0, 0} /* finish */
};
static const lt_step steps[] = {{begin, 0, 0}, {decide, 2, 0}, {sum, 4, 1}, {turn, 6, 1}, {branch, 9, 1}, {finish, 10, 1}};
static const lt_loop loops[] = {{3, 4, TURNS, -1, 0, 0, 2}, {4, 5, 1, 8, 1, 2, 2}};
static const lt_term terms[] = {{6, 0, 0, 0, 64}, {7, 0, 0, 0, 64}};
static int64_t none(void) { return 0; }
static const lt_program_text text = {places, steps, NULL, loops, terms, 12, 6, 0, 2, 1024, 0, 0, 0, 0, none, none, 0};

/* The same by one thread's loops. */
static void expected(const float *in, float *out) {
  const int isLarge = in[0] > 2;
  float cells[THREADS], next[THREADS];
  for (int t = 0; t < THREADS; t++) cells[t] = in[t] + (float)t;
  for (int t = 0; t < THREADS; t++) next[t] = cells[0] + cells[1] + cells[2] + (float)t;
  for (int i = 0; i < TURNS; i++) {
    memcpy(cells, next, sizeof cells);
    for (int t = 0; t < THREADS; t++) next[t] = (cells[0] + cells[1] + cells[2]) / 4 + (float)t;
  }
  for (int t = 0; t < THREADS; t++) next[t] += isLarge ? 100 : 0;
  for (int t = 0; t < THREADS; t++) out[t] = next[0] + next[1] + next[2] + (float)t;
}

int main(void) {
  void *const program = lt_open(&text, THREADS, NULL, NULL);
  float in[THREADS], out[THREADS], wanted[THREADS];
  lt_request *const request = calloc(1, sizeof *request + 64);
  request->times = ROUNDS, request->stale = 1;
  /* A round begins with what the one before left. */
  request->carry_count = 1, request->carries[0].bytes = sizeof in;
  for (int call = 0; call < 4; call++) {
    for (int t = 0; t < THREADS; t++) wanted[t] = in[t] = (float)(call - 2 + t);
    void *inputs[] = {in}, *outputs[] = {out};
    if (lt_run(program, inputs, outputs, request) != 0) printf("run %d fails\n", call);
    for (int round = 0; round < ROUNDS; round++) expected(wanted, wanted);
    for (int t = 0; t < THREADS; t++)
      if (out[t] != wanted[t]) printf("run %d, thread %d: %g instead of %g\n", call, t, out[t], wanted[t]);
  }
  lt_close(program);
  return 0;
}

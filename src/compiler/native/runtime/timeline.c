/* timeline.c: what each thread of a profiled program did, and when. */
#define _GNU_SOURCE
#include "program.h"

#include <stdlib.h>
#include <time.h>

/* More than any run should need; further spans are dropped. */
enum { MOST_SPANS = 1 << 21 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

void lt_restart_timeline(lt_timeline *line) {
  line->count = 0;
  line->last = now();
}

void lt_mark(lt_timeline *line, int32_t part) {
  const double to = now();
  if (line->count == line->room && line->room < MOST_SPANS) {
    const int64_t room = line->room == 0 ? 1024 : 2 * line->room;
    lt_span *spans = realloc(line->spans, room * sizeof *spans);
    if (spans != NULL) {
      line->spans = spans;
      line->room = room;
    }
  }
  if (line->count < line->room)
    line->spans[line->count++] = (lt_span){.from = line->last, .to = to, .step = line->step, .part = part};
  line->last = to;
}

int64_t lt_copy_spans(const lt_timeline *timelines, int threads, double *spans, int64_t capacity) {
  int64_t count = 0;
  for (int thread = 0; thread < threads; thread++) {
    const lt_timeline *line = &timelines[thread];
    for (int64_t i = 0; i < line->count; i++, count++) {
      if (count >= capacity) continue;
      const lt_span *span = &line->spans[i];
      double *row = spans + 5 * count;
      row[0] = thread, row[1] = span->step, row[2] = span->part, row[3] = span->from, row[4] = span->to;
    }
  }
  return count;
}

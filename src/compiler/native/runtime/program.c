/* program.c: opens generated programs and runs their steps. */
#define _GNU_SOURCE
#include "program.h"

#include "sharedOperands.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST_LOOPS = 64 };

typedef struct {
  int64_t bytes, at;
} region;

typedef struct {
  const lt_program_text *text;
  int threads;
  const void **constants;
  char *memory;
  int64_t memory_bytes;
  int64_t guard; /* size of the guard page behind each region, 0 without guards */
  /* Offsets into the memory block. */
  int64_t arena, workspace, threads_at, thread_bytes, scratch_at, row_at, work_at;
  int64_t *packed;      /* offsets too; of shared operands their numbers */
  region *regions;      /* of packed operands */
  lt_operand *operands; /* the shared ones, as the present run has them */
  lt_shared **shared;
  int64_t shared_count;
  void **pointers; /* in the first turns of all loops */
  void **moved;    /* those of each thread in its present turns; NULL without loops */
  int64_t *turns;  /* of each thread, of each loop */
  lt_timeline *timelines; /* per thread; NULL without profiling */
  int64_t stop_at;   /* the first barrier after a bad index, counted from 1 over all rounds */
  int64_t bad_round; /* its round */
  int32_t stale; /* whether the steps run whose results persist between runs */
  void *const *inputs, *const *outputs;
  const lt_request *request;
  lt_ranks ranks;
  pthread_t own; /* of a run beside others */
  int alone, result;
} program;

static void *abandoned(program *p) {
  lt_close(p);
  return NULL;
}

/* The offset of a region after others; with guards, its end is page-aligned, and the page behind is closed later. */
static int64_t place(const program *p, int64_t *end, int64_t bytes) {
  const int64_t aligned = lt_align(bytes), padding = p->guard ? -aligned & (p->guard - 1) : 0, at = *end + padding;
  *end = at + aligned + p->guard;
  if (p->guard && p->memory != NULL) mprotect(p->memory + at + aligned, p->guard, PROT_NONE);
  return at;
}

/* With guards, every packed operand is a region of the program's own. */
static int is_shared(const program *p, const lt_packing *packing) { return packing->shared && !p->guard; }
static region *region_of(const program *p, int64_t packing) {
  return p->regions + (p->guard ? packing : p->text->packings[packing].region);
}

/* Assigns offsets to packed operands: those of one region lie in it at different times. */
static void lay_out_packed(program *p, int64_t *end) {
  const int64_t count = p->text->packing_count;
  const lt_packing *packings = p->text->packings;
  for (int64_t i = 0; i < count; i++) p->regions[i] = (region){0, 0};
  for (int64_t i = 0; i < count; i++) {
    const int64_t bytes = is_shared(p, packings + i) ? 0 : lt_packed_bytes(packings[i].precision, packings[i].k, packings[i].n);
    region *in = region_of(p, i);
    in->bytes = lt_larger(in->bytes, bytes);
  }
  for (int64_t i = 0; i < count; i++)
    if (p->regions[i].bytes > 0) p->regions[i].at = place(p, end, p->regions[i].bytes);
  for (int64_t i = 0; i < count; i++)
    if (!is_shared(p, packings + i)) p->packed[i] = region_of(p, i)->at;
}

/* Assigns offsets to all regions; returns the total bytes. */
static int64_t lay_out(program *p) {
  const lt_program_text *text = p->text;
  int64_t end = 0;
  p->arena = place(p, &end, text->arena_bytes);
  lay_out_packed(p, &end);
  p->workspace = place(p, &end, text->workspace_bytes());
  p->threads_at = end;
  for (int i = 0; i < p->threads; i++) {
    const int64_t begin = end;
    p->scratch_at = place(p, &end, text->scratch_bytes) - begin;
    p->row_at = place(p, &end, text->row_bytes) - begin;
    p->work_at = place(p, &end, text->work_bytes()) - begin;
    end += p->guard ? 0 : 64;
    p->thread_bytes = end - begin;
  }
  return end;
}

void *lt_open(const lt_program_text *text, int threads, const void *const *constants, const lt_group *groups) {
  program *p = calloc(1, sizeof *p);
  if (p == NULL) return NULL;
  p->text = text;
  p->threads = threads;
  p->ranks.groups = groups;
  p->packed = calloc(text->packing_count + 1, sizeof *p->packed);
  p->regions = calloc(text->packing_count + 1, sizeof *p->regions);
  p->operands = calloc(text->packing_count + 1, sizeof *p->operands);
  p->shared = calloc(text->packing_count + 1, sizeof *p->shared);
  p->pointers = calloc(text->place_count + 1, sizeof *p->pointers);
  if (text->loop_count > 0) {
    p->moved = calloc(threads * text->place_count + 1, sizeof *p->moved);
    p->turns = calloc(threads * text->loop_count, sizeof *p->turns);
    if (!p->moved || !p->turns) return abandoned(p);
  }
  if (text->profiled) p->timelines = calloc(threads, sizeof *p->timelines);
  int64_t constant_count = 0;
  for (int64_t i = 0; i < text->place_count; i++)
    if (text->places[i].space == LT_CONSTANT) constant_count = lt_larger(constant_count, text->places[i].index + 1);
  p->constants = calloc(constant_count + 1, sizeof *p->constants);
  if (!p->packed || !p->regions || !p->operands || !p->shared || !p->pointers || !p->constants || (text->profiled && !p->timelines)) return abandoned(p);
  for (int64_t i = 0; i < constant_count; i++) p->constants[i] = constants[i];
  p->guard = getenv("LUTHIER_GUARD_PAGES") == NULL ? 0 : sysconf(_SC_PAGESIZE);
  for (int64_t i = 0; i < text->packing_count; i++)
    if (is_shared(p, &text->packings[i])) p->packed[i] = p->shared_count++;
  p->memory_bytes = lay_out(p);
  p->memory = lt_allocate(p->memory_bytes);
  p->stale = 1;
  if (p->memory == NULL) return abandoned(p);
  if (p->guard) lay_out(p);
  return p;
}

void lt_close(void *handle) {
  program *p = handle;
  if (p == NULL) return;
  lt_release(p->memory, p->memory_bytes);
  if (p->shared != NULL) lt_unshare(p->shared, p->shared_count);
  free(p->packed);
  free(p->regions);
  free(p->operands);
  free(p->shared);
  free(p->pointers);
  free(p->moved);
  free(p->turns);
  for (int i = 0; p->timelines != NULL && i < p->threads; i++) free(p->timelines[i].spans);
  free(p->timelines);
  free(p->constants);
  free(p);
}

/* The slice of a stacked array that a run uses. */
static char *slice_of(void *const *arrays, const int64_t *strides, int64_t index, int64_t round) {
  return (char *)arrays[index] + (strides == NULL ? 0 : round * strides[index]);
}

/* Finds the shared operands of a request; returns 0 where memory is short. An input that is another one in each run has
   an operand that no other program knows. */
static int share(program *p) {
  const lt_request *request = p->request;
  if (p->shared_count == 0) return 1;
  for (int64_t i = 0; i < p->text->packing_count; i++) {
    const lt_packing *q = &p->text->packings[i];
    if (!is_shared(p, q)) continue;
    const int moves = request->input_strides != NULL && request->input_strides[q->input] != 0;
    const void *data = moves ? (const char *)&p->packed[i] : (const char *)p->inputs[q->input] + q->offset;
    p->operands[p->packed[i]] = (lt_operand){{data, q->type, q->rs, q->cs}, q->precision, q->k, q->n};
  }
  return lt_share(p->shared, p->operands, p->shared_count);
}

static char *packed_operand(const program *p, int64_t index) {
  if (!is_shared(p, &p->text->packings[index])) return p->memory + p->packed[index];
  return lt_shared_data(p->shared[p->packed[index]]);
}

static void resolve(program *p, int64_t round) {
  const lt_request *request = p->request;
  for (int64_t i = 0; i < p->text->place_count; i++) {
    const void *before = p->pointers[i];
    const lt_place *place = &p->text->places[i];
    char *base = NULL;
    switch (place->space) {
      case LT_ARENA: base = p->memory + p->arena; break;
      case LT_INPUT: base = slice_of(p->inputs, request->input_strides, place->index, round); break;
      case LT_OUTPUT: base = slice_of(p->outputs, request->output_strides, place->index, round); break;
      case LT_CONSTANT: base = (char *)p->constants[place->index]; break;
      case LT_PACKED: base = packed_operand(p, place->index); break;
      case LT_WORKSPACE: base = p->memory + p->workspace; break;
      default: break;
    }
    p->pointers[i] = base + place->offset;
    /* Persistent results came from other memory. */
    if (i < p->text->once_places && p->pointers[i] != before) p->stale = 1;
  }
}

/* Points what moves with a loop, and with those within it, to the slices of a turn, for one thread. */
static void turn_to(const program *p, void **moved, int64_t *turns, int64_t loop, int64_t turn) {
  const lt_loop *l = &p->text->loops[loop];
  turns[loop] = turn;
  for (int64_t i = l->first_term; i < l->end_term; i++) {
    const lt_term *term = &p->text->terms[i];
    int64_t at = turns[term->loop] + term->shift;
    if (term->period) at %= term->period;
    void *const *from = i > l->first_term && term[-1].place == term->place ? moved : p->pointers;
    moved[term->place] = (char *)from[term->place] + at * term->step;
  }
}

static void carry(const program *p) {
  for (int64_t i = 0; i < p->request->carry_count; i++)
    memcpy(p->inputs[p->request->carries[i].input], p->outputs[p->request->carries[i].output],
           p->request->carries[i].bytes);
}

/* The work of one thread between two runs. */
static void go_on(program *p, int64_t round) {
  p->stale = 0;
  carry(p);
  if (p->request->input_strides != NULL) resolve(p, round);
}

/* Tells the other threads, at the barrier of this number, that this one has met a bad index. */
static void note(program *p, const lt_frame *frame, int64_t barrier) {
  int64_t known = __atomic_load_n(&p->stop_at, __ATOMIC_RELAXED);
  if (!frame->bad_index) return;
  while (barrier < known)
    if (__atomic_compare_exchange_n(&p->stop_at, &known, barrier, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) return;
}

/* Passes the next barrier; returns whether any thread met a bad index before it, so that the run ends before any
   update. All threads agree: what a faster one finds next belongs to a later barrier. */
static int stops(program *p, const lt_frame *frame, int64_t *barrier, int64_t round) {
  note(p, frame, ++*barrier);
  lt_barrier();
  if (__atomic_load_n(&p->stop_at, __ATOMIC_RELAXED) > *barrier) return 0;
  if (frame->thread == 0) p->bad_round = round;
  return 1;
}

static void take_steps(void *argument, int thread, int threads) {
  program *p = argument;
  char *own = p->memory + p->threads_at + thread * p->thread_bytes;
  lt_frame frame = {.scratch = own + p->scratch_at,
                    .row = own + p->row_at,
                    .work = own + p->work_at,
                    .timeline = p->timelines == NULL ? NULL : &p->timelines[thread],
                    .thread = thread,
                    .threads = threads,
                    .ranks = &p->ranks};
  if (frame.timeline != NULL) lt_restart_timeline(frame.timeline);
  const lt_program_text *const text = p->text;
  const lt_loop *const loops = text->loops;
  void **const moved = p->moved == NULL ? NULL : p->moved + thread * text->place_count;
  int64_t *const turns = p->moved == NULL ? NULL : p->turns + thread * text->loop_count;
  void *const *const pointers = moved == NULL ? p->pointers : moved;
  int64_t barrier = 0;
  int64_t open[MOST_LOOPS]; /* the loops that the next step is in */
  for (int64_t round = 0; round < p->request->times; round++) {
    if (round > 0) {
      if (stops(p, &frame, &barrier, round - 1)) return;
      if (thread == 0) go_on(p, round);
      lt_barrier();
      if (frame.timeline != NULL) lt_mark(frame.timeline, -1);
    }
    const int64_t first = p->stale ? 0 : p->text->once_steps;
    if (moved != NULL) memcpy(moved, p->pointers, text->place_count * sizeof *moved);
    int64_t depth = 0, next = 0; /* `next`: the first loop that begins at step i or later */
    int met = 1;                 /* whether all threads have just met */
    for (int64_t i = first;;) {
      const int goes_on = depth > 0 && i == loops[open[depth - 1]].end;
      const int begins = !goes_on && next < p->text->loop_count && i == loops[next].first;
      if (goes_on || begins) {
        if (begins) open[depth++] = next;
        const int64_t loop = open[depth - 1], turn = begins ? 0 : turns[loop] + 1;
        if (goes_on && (turn == loops[loop].length || loops[loop].predicate >= 0)) {
          depth--;
          continue;
        }
        /* What a turn reads, the one before has written. */
        if (stops(p, &frame, &barrier, round)) return;
        if (frame.timeline != NULL) lt_mark(frame.timeline, -1);
        if (begins && loops[loop].predicate >= 0 &&
            (*(const uint8_t *)pointers[loops[loop].predicate] != 0) != loops[loop].holds) {
          i = loops[loop].end;
          depth--;
          while (next < p->text->loop_count && loops[next].first < i) next++;
          lt_barrier();
          met = 1;
          continue;
        }
        /* Nothing of a branch may be written before all threads have read whether it is taken. */
        if (loops[loop].predicate >= 0) lt_barrier();
        turn_to(p, moved, turns, loop, turn);
        i = loops[loop].first;
        next = loop + 1;
        met = 1;
        continue;
      }
      if (i == p->text->step_count) break;
      const lt_step *step = &p->text->steps[i];
      if (frame.timeline != NULL) frame.timeline->step = (int32_t)i;
      if (step->waits && !met) {
        if (stops(p, &frame, &barrier, round)) return;
        if (frame.timeline != NULL) lt_mark(frame.timeline, -1);
      }
      met = 0;
      step->run(pointers + step->first, &frame);
      i++;
    }
  }
  note(p, &frame, barrier + 1);
}

int lt_run(void *handle, void *const *inputs, void *const *outputs, const lt_request *request) {
  program *p = handle;
  p->stop_at = INT64_MAX;
  p->bad_round = request->times - 1;
  if (request->stale) p->stale = 1;
  p->inputs = inputs;
  p->outputs = outputs;
  p->request = request;
  p->ranks.error = 0;
  if (!share(p)) {
    p->stale = 1;
    return LT_SHORT;
  }
  resolve(p, 0);
  if (request->times < 1) return 0;
  if (p->alone) lt_run_alone(take_steps, p);
  else lt_team_run(p->threads, take_steps, p);
  if (p->ranks.error != 0) return LT_RANKS_FAILED;
  if (p->stop_at != INT64_MAX) return (int)(p->bad_round * 256 + LT_BAD_INDEX);
  p->stale = 0;
  carry(p);
  return 0;
}

static void *run_alone(void *handle) {
  program *p = handle;
  p->result = lt_run(p, p->inputs, p->outputs, p->request);
  return NULL;
}

int lt_begin(void *handle, void *const *inputs, void *const *outputs, const lt_request *request) {
  program *p = handle;
  p->alone = 1;
  p->inputs = inputs;
  p->outputs = outputs;
  p->request = request;
  return lt_start_thread(&p->own, run_alone, p);
}

int lt_await(void *handle) {
  program *p = handle;
  pthread_join(p->own, NULL);
  return p->result;
}

void lt_failed_collective(const void *handle, int64_t *words) {
  const lt_ranks *ranks = &((const program *)handle)->ranks;
  words[0] = ranks->error;
  words[1] = ranks->operation;
  words[2] = ranks->group;
  words[3] = ranks->bytes;
}

int64_t lt_spans(void *handle, double *spans, int64_t capacity) {
  const program *p = handle;
  return p->timelines == NULL ? 0 : lt_copy_spans(p->timelines, p->threads, spans, capacity);
}

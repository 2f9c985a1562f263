/* threadRanks.c: collectives of ranks that are threads of one process, by the memory that they share. */
/* flags: machine -O2 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "collectives.h"

enum { MOST_MEMBERS = 64, PIECE = 256 };

/* Errors: another rank has ended, or asks for something else. */
enum { LT_RANK_ENDED = 1, LT_RANKS_DIFFER = 2 };

typedef struct meeting meeting;

/* The ranks of a process. `changed` is for whatever any of them waits for: they sleep rather than spin. */
typedef struct {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  int ended;
  meeting *first;
} world;

/* A member's call. */
typedef struct {
  void *data;
  const void *from;
  int64_t size;
  int32_t operation, reduction;
} request;

typedef struct {
  meeting *at;
  int64_t number;
} member;

/* A group of ranks. */
struct meeting {
  world *of;
  meeting *next;
  int64_t members, arrived, turn;
  request requests[MOST_MEMBERS];
  member places[MOST_MEMBERS];
};

/* Waits for all members; fails once any rank of the process has ended, unless all had arrived. */
static int meet(meeting *m) {
  world *w = m->of;
  pthread_mutex_lock(&w->mutex);
  const int64_t turn = m->turn;
  if (!w->ended && ++m->arrived == m->members) {
    m->arrived = 0;
    m->turn++;
    pthread_cond_broadcast(&w->changed);
  }
  while (m->turn == turn && !w->ended) pthread_cond_wait(&w->changed, &w->mutex);
  const int error = m->turn == turn ? LT_RANK_ENDED : 0;
  pthread_mutex_unlock(&w->mutex);
  return error;
}

/* Tells the others what this member asks for, and checks that they ask for the same. */
static int begin(member *self, request own) {
  meeting *m = self->at;
  m->requests[self->number] = own;
  const int error = meet(m);
  if (error) return error;
  for (int64_t i = 0; i < m->members; i++) {
    const request *other = &m->requests[i];
    if (other->operation != own.operation || other->size != own.size || other->reduction != own.reduction)
      return LT_RANKS_DIFFER;
  }
  return 0;
}

/* Elements [from, to) of all members' data as one, in that of `self`. The tree of pairs at distance 1, then 2, 4 … */
static void reduce(const member *self, int64_t from, int64_t to, int32_t reduction) {
  const meeting *m = self->at;
  int32_t parts[MOST_MEMBERS][PIECE];
  for (int64_t at = from; at < to; at += PIECE) {
    const int64_t size = to - at < PIECE ? to - at : PIECE;
    for (int64_t i = 0; i < m->members; i++) memcpy(parts[i], (int32_t *)m->requests[i].data + at, 4 * size);
    for (int64_t distance = 1; distance < m->members; distance *= 2)
      for (int64_t i = 0; i + distance < m->members; i += 2 * distance)
        lt_reduce_pair(reduction, parts[i], parts[i], parts[i + distance], size);
    memcpy((int32_t *)m->requests[self->number].data + at, parts[0], 4 * size);
  }
}

static int all_reduce(void *group, void *data, int64_t size, int32_t reduction) {
  member *self = group;
  const meeting *m = self->at;
  int error = begin(self, (request){data, NULL, size, LT_ALL_REDUCE, reduction});
  if (error) return error;
  reduce(self, size * self->number / m->members, size * (self->number + 1) / m->members, reduction);
  if ((error = meet(self->at))) return error;
  for (int64_t i = 0; i < m->members; i++) {
    const int64_t first = size * i / m->members, end = size * (i + 1) / m->members;
    if (i != self->number) memcpy((int32_t *)data + first, (int32_t *)m->requests[i].data + first, 4 * (end - first));
  }
  return meet(self->at);
}

static int reduce_scatter(void *group, void *data, int64_t size, int32_t reduction) {
  member *self = group;
  const int error = begin(self, (request){data, NULL, size, LT_REDUCE_SCATTER, reduction});
  if (error) return error;
  reduce(self, size * self->number, size * (self->number + 1), reduction);
  return meet(self->at);
}

static int all_gather(void *group, void *data, int64_t bytes) {
  member *self = group;
  const meeting *m = self->at;
  const int error = begin(self, (request){data, NULL, bytes, LT_ALL_GATHER, 0});
  if (error) return error;
  for (int64_t i = 0; i < m->members; i++)
    if (i != self->number) memcpy((char *)data + bytes * i, (char *)m->requests[i].data + bytes * i, bytes);
  return meet(self->at);
}

static int all_to_all(void *group, const void *from, void *to, int64_t bytes) {
  member *self = group;
  const meeting *m = self->at;
  const int error = begin(self, (request){NULL, from, bytes, LT_ALL_TO_ALL, 0});
  if (error) return error;
  for (int64_t i = 0; i < m->members; i++)
    memcpy((char *)to + bytes * i, (const char *)m->requests[i].from + bytes * self->number, bytes);
  return meet(self->at);
}

static int permute(void *group, const void *from, void *to, int64_t bytes, int32_t by) {
  member *self = group;
  const meeting *m = self->at;
  const int error = begin(self, (request){NULL, from, bytes, LT_PERMUTE, by});
  if (error) return error;
  memcpy(to, m->requests[(self->number - by + m->members) % m->members].from, bytes);
  return meet(self->at);
}

static const lt_transport transport = {all_reduce, reduce_scatter, all_gather, all_to_all, permute};
const void *lt_thread_transport(void) { return &transport; }

/* NULL where memory is short, as the next. */
void *lt_thread_world(void) {
  world *w = calloc(1, sizeof *w);
  if (w == NULL) return NULL;
  pthread_mutex_init(&w->mutex, NULL);
  pthread_cond_init(&w->changed, NULL);
  return w;
}

void *lt_thread_group(void *handle, int64_t members) {
  world *w = handle;
  meeting *m = members > MOST_MEMBERS ? NULL : calloc(1, sizeof *m);
  if (m == NULL) return NULL;
  *m = (meeting){.of = w, .next = w->first, .members = members};
  for (int64_t i = 0; i < members; i++) m->places[i] = (member){m, i};
  w->first = m;
  return m;
}

void *lt_thread_member(void *group, int64_t number) { return &((meeting *)group)->places[number]; }

/* Tells all ranks that one has ended. */
void lt_thread_end(void *handle) {
  world *w = handle;
  pthread_mutex_lock(&w->mutex);
  w->ended = 1;
  pthread_cond_broadcast(&w->changed);
  pthread_mutex_unlock(&w->mutex);
}

/* Frees a world that no program uses any more. */
void lt_thread_close(void *handle) {
  world *w = handle;
  for (meeting *m = w->first, *next; m != NULL; m = next) {
    next = m->next;
    free(m);
  }
  pthread_mutex_destroy(&w->mutex);
  pthread_cond_destroy(&w->changed);
  free(w);
}

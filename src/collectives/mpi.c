/* mpi.c: collectives of ranks, over the MPI whose mpicc compiles this: those that programs have in their steps, and those of
   all ranks. Reductions follow one tree of pairs, ((0 1)(2 3)), so that their bits are those of the same parts in one
   process, whatever the number of ranks. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "collectives.h"

/* Most bytes of one call: counts are ints. */
#define MOST (1 << 30)
#define TAG 1

/* Errors besides MPI's, which are positive. */
enum { SHORT_OF_MEMORY = -1, BUSY = -2 };

typedef struct group {
  MPI_Comm comm;
  int rank, count;
  struct group *next;
} group;

/* The group of all ranks; those of programs follow it. */
static group all;

/* ---- Notes --------------------------------------------------------------------------------------------------- */

/* Operations that programs do not have. */
enum { BROADCAST = LT_PERMUTE + 1, COMBINE };
enum { REMEMBERED = 1000 };

typedef struct {
  double operation, members, bytes, begin, end; /* milliseconds since the epoch; end 0: not over */
} note;
static note notes[REMEMBERED];
static int64_t noted;
static int busy;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return t.tv_sec * 1e3 + t.tv_nsec * 1e-6;
}

/* MPI is started for one caller at a time. A call that meets another fails: ranks would take them in different orders. */
static int begin(const group *g, int operation, int64_t bytes) {
  if (__atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE)) return BUSY;
  notes[noted++ % REMEMBERED] = (note){operation, g->count, bytes, now(), 0};
  return 0;
}

static int end(int error) {
  notes[(noted - 1) % REMEMBERED].end = now();
  __atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
  return error;
}

/* Copies the last notes, up to 1,000, oldest first; returns how many. One that is under way may change meanwhile. */
int32_t lt_mpi_notes(void *to) {
  const int64_t last = noted, count = last < REMEMBERED ? last : REMEMBERED;
  for (int64_t i = 0; i < count; i++) ((note *)to)[i] = notes[(last - count + i) % REMEMBERED];
  return (int32_t)count;
}

/* ---- Parts of collectives -------------------------------------------------------------------------------------- */

/* Memory for the elements of another rank. */
static char *room;
static int64_t room_bytes;

static int ready(int64_t bytes) {
  if (bytes <= room_bytes) return 1;
  char *larger = realloc(room, (size_t)bytes);
  if (larger == NULL) return 0;
  room = larger;
  room_bytes = bytes;
  return 1;
}

static int least(int64_t a, int64_t b) { return (int)(a < b ? a : b); }

/* Sends bytes to one member and gets others from one. */
static int exchange(const group *g, const void *sent, int64_t sent_bytes, int to, void *got, int64_t got_bytes, int from) {
  int64_t at = 0;
  do {
    const int out = sent_bytes > at ? least(sent_bytes - at, MOST) : 0, in = got_bytes > at ? least(got_bytes - at, MOST) : 0;
    const int error = MPI_Sendrecv((const char *)sent + (out ? at : 0), out, MPI_BYTE, to, TAG, (char *)got + (in ? at : 0), in,
                                   MPI_BYTE, from, TAG, g->comm, MPI_STATUS_IGNORE);
    if (error != MPI_SUCCESS) return error;
    at += MOST;
  } while (at < sent_bytes || at < got_bytes);
  return 0;
}

static int broadcast(const group *g, void *data, int64_t bytes, int root) {
  for (int64_t at = 0; at < bytes; at += MOST) {
    const int error = MPI_Bcast((char *)data + at, least(bytes - at, MOST), MPI_BYTE, root, g->comm);
    if (error != MPI_SUCCESS) return error;
  }
  return 0;
}

/* The bitwise or of all members' bytes, on the root. */
static int combine(const group *g, void *data, int64_t bytes, int root) {
  for (int64_t at = 0; at < bytes; at += MOST) {
    char *part = (char *)data + at;
    const int error = MPI_Reduce(g->rank == root ? MPI_IN_PLACE : part, part, least(bytes - at, MOST), MPI_BYTE, MPI_BOR,
                                 root, g->comm);
    if (error != MPI_SUCCESS) return error;
  }
  return 0;
}

/* Sends some elements to the partner, and reduces others with those that it sends. */
static int reduce_with(const group *g, const int32_t *sent, int64_t sent_size, int32_t *kept, int64_t size, int partner,
                       int32_t reduction) {
  const int error = exchange(g, sent, 4 * sent_size, partner, room, 4 * size, partner);
  if (error) return error;
  if (partner > g->rank) lt_reduce_pair(reduction, kept, kept, room, size);
  else lt_reduce_pair(reduction, kept, room, kept, size);
  return 0;
}

static int is_even(const group *g) { return (g->count & (g->count - 1)) == 0; }

/* Halves: pairs at distance 1, then 2, 4 …, each rank keeping the half of its bit; then the same way back. */
static int reduce_by_halves(const group *g, int32_t *data, int64_t size, int32_t reduction) {
  int64_t begins[32], ends[32];
  int64_t first = 0, last = size;
  int level = 0;
  for (int distance = 1; distance < g->count; distance *= 2, level++) {
    begins[level] = first;
    ends[level] = last;
    const int64_t middle = first + (last - first) / 2;
    const int upper = (g->rank & distance) != 0;
    const int64_t sent = upper ? first : middle, sent_end = upper ? middle : last;
    if (upper) first = middle;
    else last = middle;
    const int error =
        reduce_with(g, data + sent, sent_end - sent, data + first, last - first, g->rank ^ distance, reduction);
    if (error) return error;
  }
  for (int distance = g->count / 2; distance >= 1; distance /= 2) {
    level--;
    const int64_t middle = begins[level] + (ends[level] - begins[level]) / 2;
    const int upper = (g->rank & distance) != 0, partner = g->rank ^ distance;
    const int64_t other = upper ? begins[level] : middle, other_end = upper ? middle : ends[level];
    const int error = exchange(g, data + first, 4 * (last - first), partner, data + other, 4 * (other_end - other), partner);
    if (error) return error;
    first = begins[level];
    last = ends[level];
  }
  return 0;
}

/* Rank i takes what i + distance has, where there is such a rank: rank 0 has the reduction. */
static int reduce_to_first(const group *g, int32_t *data, int64_t size, int32_t reduction) {
  for (int distance = 1; distance < g->count; distance *= 2) {
    const int at = g->rank % (2 * distance);
    int error = 0;
    if (at == 0 && g->rank + distance < g->count) error = reduce_with(g, NULL, 0, data, size, g->rank + distance, reduction);
    else if (at == distance) error = exchange(g, data, 4 * size, g->rank - distance, NULL, 0, g->rank - distance);
    if (error) return error;
  }
  return 0;
}

/* Blocks by the bits of their numbers: at distance 1, then 2, 4 …, a rank keeps those that have its own bit. */
static int scatter_by_bits(const group *g, int32_t *data, int64_t size, int32_t reduction) {
  for (int distance = 1; distance < g->count; distance *= 2) {
    const int partner = g->rank ^ distance, first = g->rank & (2 * distance - 1);
    for (int kept = first; kept < g->count; kept += 2 * distance) {
      const int error = reduce_with(g, data + (kept ^ distance) * size, size, data + kept * size, size, partner, reduction);
      if (error) return error;
    }
  }
  return 0;
}

/* ---- Collectives of a group ------------------------------------------------------------------------------------ */

static int all_reduce(const group *g, int32_t *data, int64_t size, int32_t reduction) {
  const int even = is_even(g);
  if (!ready(4 * (even ? size / 2 + 1 : size))) return SHORT_OF_MEMORY;
  if (even) return reduce_by_halves(g, data, size, reduction);
  const int error = reduce_to_first(g, data, size, reduction);
  return error ? error : broadcast(g, data, 4 * size, 0);
}

static int reduce_scatter(const group *g, int32_t *data, int64_t size, int32_t reduction) {
  const int even = is_even(g);
  if (!ready(4 * size * (even ? 1 : g->count))) return SHORT_OF_MEMORY;
  if (even) return scatter_by_bits(g, data, size, reduction);
  int error = reduce_to_first(g, data, size * g->count, reduction);
  for (int i = 1; i < g->count && !error; i++)
    if (g->rank == 0) error = exchange(g, data + size * i, 4 * size, i, NULL, 0, i);
    else if (g->rank == i) error = exchange(g, NULL, 0, 0, data + size * i, 4 * size, 0);
  return error;
}

static int all_gather(const group *g, char *data, int64_t bytes) {
  if (bytes <= MOST) return MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data, (int)bytes, MPI_BYTE, g->comm);
  int error = 0;
  for (int root = 0; root < g->count && !error; root++) error = broadcast(g, data + root * bytes, bytes, root);
  return error;
}

static int all_to_all(const group *g, const char *from, char *to, int64_t bytes) {
  if (bytes <= MOST) return MPI_Alltoall(from, (int)bytes, MPI_BYTE, to, (int)bytes, MPI_BYTE, g->comm);
  int error = 0;
  for (int step = 0; step < g->count && !error; step++) {
    const int next = (g->rank + step) % g->count, before = (g->rank - step + g->count) % g->count;
    error = exchange(g, from + next * bytes, bytes, next, to + before * bytes, bytes, before);
  }
  return error;
}

/* ---- The transport of steps ------------------------------------------------------------------------------------ */

static int step_all_reduce(void *of, void *data, int64_t size, int32_t reduction) {
  const int error = begin(of, LT_ALL_REDUCE, 4 * size);
  return error ? error : end(all_reduce(of, data, size, reduction));
}

static int step_reduce_scatter(void *of, void *data, int64_t size, int32_t reduction) {
  const int error = begin(of, LT_REDUCE_SCATTER, 4 * size * ((group *)of)->count);
  return error ? error : end(reduce_scatter(of, data, size, reduction));
}

static int step_all_gather(void *of, void *data, int64_t bytes) {
  const int error = begin(of, LT_ALL_GATHER, bytes * ((group *)of)->count);
  return error ? error : end(all_gather(of, data, bytes));
}

static int step_all_to_all(void *of, const void *from, void *to, int64_t bytes) {
  const int error = begin(of, LT_ALL_TO_ALL, bytes * ((group *)of)->count);
  return error ? error : end(all_to_all(of, from, to, bytes));
}

static int step_permute(void *of, const void *from, void *to, int64_t bytes, int32_t by) {
  const group *g = of;
  const int error = begin(of, LT_PERMUTE, bytes);
  if (error) return error;
  return end(exchange(g, from, bytes, (g->rank + by + g->count) % g->count, to, bytes, (g->rank - by + g->count) % g->count));
}

static const lt_transport transport = {step_all_reduce, step_reduce_scatter, step_all_gather, step_all_to_all, step_permute};
const void *lt_mpi_transport(void) { return &transport; }

/* The ranks of one colour as a group, numbered by `number`; NULL where memory is short, or MPI fails. All ranks call it. */
void *lt_mpi_group(int32_t colour, int32_t number) {
  group *g = calloc(1, sizeof *g);
  if (g == NULL) return NULL;
  if (MPI_Comm_split(all.comm, colour, number, &g->comm) != MPI_SUCCESS) {
    free(g);
    return NULL;
  }
  /* Errors end the step with a message that names it. */
  MPI_Comm_set_errhandler(g->comm, MPI_ERRORS_RETURN);
  MPI_Comm_rank(g->comm, &g->rank);
  MPI_Comm_size(g->comm, &g->count);
  g->next = all.next;
  all.next = g;
  return g;
}

/* ---- All ranks --------------------------------------------------------------------------------------------------- */

/* Facts: rank, ranks, the level of threads that is granted. Returns 0, or MPI's error. */
int lt_mpi_start(int32_t *facts) {
  int done = 0, level = 0;
  MPI_Initialized(&done);
  if (!done) {
    int error = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level);
    if (error != MPI_SUCCESS) return error;
  } else {
    MPI_Query_thread(&level);
  }
  all.comm = MPI_COMM_WORLD;
  MPI_Comm_rank(all.comm, &all.rank);
  MPI_Comm_size(all.comm, &all.count);
  facts[0] = all.rank;
  facts[1] = all.count;
  facts[2] = level >= MPI_THREAD_SERIALIZED;
  return 0;
}

static void cut(char *text, int32_t size, const char *whole, int length) {
  if (length >= size) length = size - 1;
  memcpy(text, whole, (size_t)length);
  text[length] = 0;
}

/* Name and version of the library, cut to `size`. */
void lt_mpi_version(char *text, int32_t size) {
  char whole[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(whole, &length);
  cut(text, size, whole, length);
}

/* MPI's text of an error, cut to `size`. */
void lt_mpi_reason(int32_t error, char *text, int32_t size) {
  char whole[MPI_MAX_ERROR_STRING];
  int length = 0;
  if (MPI_Error_string(error, whole, &length) != MPI_SUCCESS) length = 0;
  cut(text, size, whole, length);
}

/* The sum over all ranks, in place. These return 0, SHORT_OF_MEMORY, BUSY, or MPI's error. */
int lt_mpi_all_reduce(float *sums, int64_t size) {
  if (all.count == 1 || size == 0) return 0;
  const int error = begin(&all, LT_ALL_REDUCE, 4 * size);
  return error ? error : end(all_reduce(&all, (int32_t *)sums, size, LT_SUM));
}

/* The blocks of all ranks, of which each has put its own at its place. */
int lt_mpi_all_gather(void *data, int64_t block) {
  const int error = begin(&all, LT_ALL_GATHER, block * all.count);
  return error ? error : end(all_gather(&all, data, block));
}

int lt_mpi_broadcast(void *data, int64_t bytes, int32_t root) {
  const int error = begin(&all, BROADCAST, bytes);
  return error ? error : end(broadcast(&all, data, bytes, root));
}

int lt_mpi_combine(void *data, int64_t bytes, int32_t root) {
  const int error = begin(&all, COMBINE, bytes);
  return error ? error : end(combine(&all, data, bytes, root));
}

int lt_mpi_finish(void) {
  for (group *g = all.next, *next; g != NULL; g = next) {
    next = g->next;
    MPI_Comm_free(&g->comm);
    free(g);
  }
  all.next = NULL;
  free(room);
  room = NULL;
  room_bytes = 0;
  return MPI_Finalize();
}

/* Ends every rank. */
void lt_mpi_abort(int32_t code) { MPI_Abort(MPI_COMM_WORLD, code); }

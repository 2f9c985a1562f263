/* mpi.c: what ranks do together, over the MPI whose mpicc compiles this. Sums follow one tree of pairs, ((0 1)(2 3)), so
   that their bits are those of the same parts in one process, whatever the number of ranks. */
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Most bytes of one call: counts are ints. */
#define MOST (1 << 30)
#define TAG 1

static int rank, count;
/* Elements of the other half, or of a whole where the ranks are no power of two. */
static float *room;
static int64_t room_size;

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
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &count);
  facts[0] = rank;
  facts[1] = count;
  facts[2] = level >= MPI_THREAD_SERIALIZED;
  return 0;
}

/* Name and version of the library, cut to `size`. */
void lt_mpi_version(char *text, int32_t size) {
  char whole[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(whole, &length);
  if (length >= size) length = size - 1;
  memcpy(text, whole, (size_t)length);
  text[length] = 0;
}

static void add(float *restrict sums, const float *restrict others, int64_t size) {
  for (int64_t i = 0; i < size; i++) sums[i] += others[i];
}

static int ready(int64_t size) {
  if (size <= room_size) return 1;
  float *larger = realloc(room, (size_t)size * sizeof(float));
  if (larger == NULL) return 0;
  room = larger;
  room_size = size;
  return 1;
}

static int exchange(float *sent, int64_t sent_size, float *got, int64_t got_size, int partner) {
  const int64_t most = MOST / (int64_t)sizeof(float);
  int64_t at = 0;
  do {
    int64_t out = sent_size - at < most ? sent_size - at : most;
    int64_t in = got_size - at < most ? got_size - at : most;
    if (out < 0) out = 0;
    if (in < 0) in = 0;
    int error = MPI_Sendrecv(sent + (out ? at : 0), (int)out, MPI_FLOAT, partner, TAG, got + (in ? at : 0), (int)in,
                             MPI_FLOAT, partner, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (error != MPI_SUCCESS) return error;
    at += most;
  } while (at < sent_size || at < got_size);
  return 0;
}

/* Halves: pairs at distance 1, then 2, 4 …, each rank keeping the half of its bit; then the same way back. */
static int reduce_by_halves(float *sums, int64_t size) {
  int64_t begins[32], ends[32];
  int64_t begin = 0, end = size;
  int level = 0;
  for (int distance = 1; distance < count; distance *= 2, level++) {
    begins[level] = begin;
    ends[level] = end;
    int64_t middle = begin + (end - begin) / 2;
    int upper = (rank & distance) != 0;
    int64_t kept = upper ? middle : begin, kept_end = upper ? end : middle;
    int64_t sent = upper ? begin : middle, sent_end = upper ? middle : end;
    int error = exchange(sums + sent, sent_end - sent, room, kept_end - kept, rank ^ distance);
    if (error) return error;
    add(sums + kept, room, kept_end - kept);
    begin = kept;
    end = kept_end;
  }
  for (int distance = count / 2; distance >= 1; distance /= 2) {
    level--;
    int64_t middle = begins[level] + (ends[level] - begins[level]) / 2;
    int upper = (rank & distance) != 0;
    int64_t other = upper ? begins[level] : middle, other_end = upper ? middle : ends[level];
    int error = exchange(sums + begin, end - begin, sums + other, other_end - other, rank ^ distance);
    if (error) return error;
    begin = begins[level];
    end = ends[level];
  }
  return 0;
}

static int broadcast(void *data, int64_t bytes, int root) {
  for (int64_t at = 0; at < bytes; at += MOST) {
    int part = (int)(bytes - at < MOST ? bytes - at : MOST);
    int error = MPI_Bcast((char *)data + at, part, MPI_BYTE, root, MPI_COMM_WORLD);
    if (error != MPI_SUCCESS) return error;
  }
  return 0;
}

/* Rank i takes what i + distance has, where there is such a rank; rank 0 tells all. */
static int reduce_by_tree(float *sums, int64_t size) {
  for (int distance = 1; distance < count; distance *= 2) {
    int at = rank % (2 * distance);
    if (at == 0 && rank + distance < count) {
      int error = exchange(room, 0, room, size, rank + distance);
      if (error) return error;
      add(sums, room, size);
    } else if (at == distance) {
      int error = exchange(sums, size, room, 0, rank - distance);
      if (error) return error;
    }
  }
  return broadcast(sums, size * (int64_t)sizeof(float), 0);
}

/* The sum over all ranks, in place. Returns 0, -1 where memory is short, or MPI's error. */
int lt_mpi_all_reduce(float *sums, int64_t size) {
  if (count == 1 || size == 0) return 0;
  int even = (count & (count - 1)) == 0;
  if (!ready(even ? size / 2 + 1 : size)) return -1;
  return even ? reduce_by_halves(sums, size) : reduce_by_tree(sums, size);
}

/* The blocks of all ranks, of which each has put its own at its place. */
int lt_mpi_all_gather(void *all, int64_t block) {
  if (block <= MOST)
    return MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, (int)block, MPI_BYTE, MPI_COMM_WORLD);
  for (int root = 0; root < count; root++) {
    int error = broadcast((char *)all + root * block, block, root);
    if (error) return error;
  }
  return 0;
}

int lt_mpi_broadcast(void *data, int64_t bytes) { return broadcast(data, bytes, 0); }

int lt_mpi_finish(void) {
  free(room);
  room = NULL;
  room_size = 0;
  return MPI_Finalize();
}

/* Ends every rank. */
void lt_mpi_abort(int32_t code) { MPI_Abort(MPI_COMM_WORLD, code); }

/* sharedOperands.c: packed operands that persist between runs, one for all programs that multiply by the same memory. */
/* flags: -O2 */
#include "sharedOperands.h"

#include <pthread.h>
#include <stdlib.h>

/* Memory of the operands that one program was the first to need. */
typedef struct {
  char *memory;
  int64_t bytes, operands; /* of which some program still uses `operands` */
} block;

struct lt_shared {
  lt_operand operand;
  char *packed;
  block *block;
  int64_t users;
  struct lt_shared *next;
};

static struct {
  pthread_mutex_t mutex;
  lt_shared *first;
  int64_t bytes;
} all = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static int64_t bytesOf(const lt_operand *x) { return lt_align(lt_packed_bytes(x->precision, x->k, x->n)); }

static int same(const lt_operand *x, const lt_operand *y) {
  return x->from.data == y->from.data && x->from.type == y->from.type && x->from.rs == y->from.rs &&
         x->from.cs == y->from.cs && x->precision == y->precision && x->k == y->k && x->n == y->n;
}

static lt_shared *join(const lt_operand *operand) {
  lt_shared *shared = all.first;
  while (shared != NULL && !same(&shared->operand, operand)) shared = shared->next;
  if (shared != NULL) shared->users++;
  return shared;
}

static void leave(lt_shared *shared) {
  if (shared == NULL || --shared->users > 0) return;
  lt_shared **link = &all.first;
  while (*link != shared) link = &(*link)->next;
  *link = shared->next;
  block *home = shared->block;
  if (--home->operands == 0) {
    all.bytes -= home->bytes;
    lt_release(home->memory, home->bytes);
    free(home);
  }
  free(shared);
}

/* Adds operands that no program has yet, `bytes` in all, in a block of their own. */
static int add(lt_shared **shared, const lt_operand *operands, int64_t count, int64_t bytes) {
  block *home = calloc(1, sizeof *home);
  if (home == NULL) return 0;
  *home = (block){lt_allocate(bytes), bytes, 1};
  int added = home->memory != NULL;
  all.bytes += bytes;
  int64_t end = 0;
  for (int64_t i = 0; added && i < count; i++) {
    if (shared[i] != NULL || (shared[i] = join(&operands[i])) != NULL) continue;
    lt_shared *made = calloc(1, sizeof *made);
    if ((added = made != NULL) == 0) break;
    *made = (lt_shared){operands[i], home->memory + end, home, 1, all.first};
    end += bytesOf(&operands[i]);
    home->operands++;
    all.first = shared[i] = made;
  }
  if (--home->operands == 0) {
    all.bytes -= bytes;
    lt_release(home->memory, bytes);
    free(home);
  }
  return added;
}

int lt_share(lt_shared **shared, const lt_operand *operands, int64_t count) {
  int64_t missing = 0;
  pthread_mutex_lock(&all.mutex);
  for (int64_t i = 0; i < count; i++) {
    if (shared[i] != NULL && same(&shared[i]->operand, &operands[i])) continue;
    lt_shared *before = shared[i];
    shared[i] = join(&operands[i]);
    leave(before);
    if (shared[i] == NULL) missing += bytesOf(&operands[i]);
  }
  const int done = missing == 0 || add(shared, operands, count, missing);
  pthread_mutex_unlock(&all.mutex);
  return done;
}

void lt_unshare(lt_shared **shared, int64_t count) {
  pthread_mutex_lock(&all.mutex);
  for (int64_t i = 0; i < count; i++) {
    leave(shared[i]);
    shared[i] = NULL;
  }
  pthread_mutex_unlock(&all.mutex);
}

void *lt_shared_data(const lt_shared *shared) { return shared->packed; }

int64_t lt_shared_bytes(void) {
  pthread_mutex_lock(&all.mutex);
  const int64_t bytes = all.bytes;
  pthread_mutex_unlock(&all.mutex);
  return bytes;
}

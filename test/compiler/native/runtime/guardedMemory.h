/* guardedMemory.h: memory whose end is the end of a page, before one that nobody may touch; included before a check's own
   source, where no sanitizer watches the runtime. Allocations are aligned as far as their sizes are, aligned ones to their
   alignment; bytes between an end and the page's are NaN, and must stay so. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST_GUARDED = 4096, BEHIND = 0xff };

static struct {
  char *at, *pages;
  size_t size, room, whole; /* bytes: asked for, up to the guard, mapped */
} guarded[MOST_GUARDED];

static inline void *guardedMemory(size_t size, size_t alignment) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE), room = (size + alignment - 1) / alignment * alignment;
  const size_t whole = (room + page - 1) / page * page + page;
  int i = 0;
  while (guarded[i].at != NULL)
    if (++i == MOST_GUARDED) abort();
  char *const pages = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED || mprotect(pages + whole - page, page, PROT_NONE) != 0) abort();
  guarded[i].pages = pages, guarded[i].at = pages + whole - page - room;
  guarded[i].size = size, guarded[i].room = room, guarded[i].whole = whole;
  memset(guarded[i].at, BEHIND, room);
  return guarded[i].at;
}

static inline void releaseGuarded(void *memory) {
  if (memory == NULL) return;
  int i = 0;
  while (guarded[i].at != memory)
    if (++i == MOST_GUARDED) abort();
  for (size_t byte = guarded[i].size; byte < guarded[i].room; byte++)
    if ((unsigned char)guarded[i].at[byte] != BEHIND) {
      printf("written behind %d bytes\n", (int)guarded[i].size);
      exit(1);
    }
  munmap(guarded[i].pages, guarded[i].whole);
  guarded[i].at = NULL;
}

static inline void *zeroedMemory(size_t count, size_t size) {
  void *const memory = guardedMemory(count * size, 1);
  return memset(memory, 0, count * size);
}

static inline int placeMemory(void **to, size_t alignment, size_t size) {
  *to = guardedMemory(size, alignment);
  return 0;
}

#define malloc(size) guardedMemory(size, 1)
#define calloc(count, size) zeroedMemory(count, size)
#define aligned_alloc(alignment, size) guardedMemory(size, alignment)
#define posix_memalign(to, alignment, size) placeMemory(to, alignment, size)
#define free(memory) releaseGuarded(memory)

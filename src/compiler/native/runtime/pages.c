/* pages.c: memory from the system, zeroed, in large pages if it has them. */
#define _GNU_SOURCE
#include "program.h"

#include <sys/mman.h>

enum { PAGE = 1 << 21 };

static int64_t pages(int64_t bytes) { return (lt_larger(bytes, 1) + PAGE - 1) / PAGE * PAGE; }

void *lt_allocate(int64_t bytes) {
  /* One page more than needed, so that a large page can start within it. */
  const int64_t size = pages(bytes) + PAGE;
  char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return NULL;
  char *start = (char *)(((uintptr_t)memory + PAGE - 1) / PAGE * PAGE);
  if (start > memory) munmap(memory, start - memory);
  const int64_t behind = memory + size - (start + pages(bytes));
  if (behind > 0) munmap(start + pages(bytes), behind);
  if (bytes >= PAGE) lt_prefer_large_pages(start, pages(bytes));
  return start;
}

void lt_prefer_large_pages(void *memory, int64_t bytes) {
#ifdef MADV_HUGEPAGE
  const uintptr_t begin = ((uintptr_t)memory + PAGE - 1) / PAGE * PAGE, end = ((uintptr_t)memory + bytes) / PAGE * PAGE;
  if (begin < end) madvise((void *)begin, end - begin, MADV_HUGEPAGE);
#else
  (void)memory, (void)bytes;
#endif
}

void lt_release(void *memory, int64_t bytes) {
  if (memory != NULL) munmap(memory, pages(bytes));
}

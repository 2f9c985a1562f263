/* pages.c: memory from the system, zeroed, in large pages if it has them; and memory back to it, of mapped files and of
   arrays. */
#define _GNU_SOURCE
#include "program.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

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

/* Advice on the whole pages among some bytes. */
static void advise(char *memory, int64_t bytes, int advice) {
  const uintptr_t page = sysconf(_SC_PAGESIZE);
  const uintptr_t begin = ((uintptr_t)memory + page - 1) / page * page, end = ((uintptr_t)memory + bytes) / page * page;
  if (begin < end) madvise((void *)begin, end - begin, advice);
}

void lt_prefer_small_pages(void *memory, int64_t bytes) {
#ifdef MADV_NOHUGEPAGE
  advise(memory, bytes, MADV_NOHUGEPAGE);
#else
  (void)memory, (void)bytes;
#endif
}

void lt_discard(void *memory, int64_t bytes, int64_t count, int64_t step) {
#ifdef __linux__
  for (int64_t i = 0; i < count; i++) advise((char *)memory + i * step, bytes, MADV_DONTNEED);
#else
  (void)memory, (void)bytes, (void)count, (void)step;
#endif
}

void lt_release(void *memory, int64_t bytes) {
  if (memory != NULL) munmap(memory, pages(bytes));
}

void lt_give_back(const void *memory, int64_t bytes) {
#ifdef __linux__
  /* Bits of a page in /proc/self/pagemap: it is in memory, and its contents are a file's, not a changed copy. */
  const uint64_t IN_MEMORY = 1ull << 63, IN_FILE = 1ull << 61, BOTH = IN_MEMORY | IN_FILE;
  enum { ENTRIES = 512 };
  const int64_t page = sysconf(_SC_PAGESIZE), end = ((int64_t)(uintptr_t)memory + bytes + page - 1) / page;
  const int file = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  uint64_t entries[ENTRIES];
  for (int64_t at = (int64_t)(uintptr_t)memory / page; at < end; at += ENTRIES) {
    const int64_t count = end - at < ENTRIES ? end - at : ENTRIES;
    if (pread(file, entries, count * 8, at * 8) != count * 8) break;
    for (int64_t i = 0, run = 0; i < count; i += run + 1) {
      for (run = 0; i + run < count && (entries[i + run] & BOTH) == BOTH;) run++;
      if (run > 0) madvise((void *)(uintptr_t)((at + i) * page), run * page, MADV_DONTNEED);
    }
  }
  close(file);
#else
  (void)memory, (void)bytes;
#endif
}

/* runProgram.c: one run of a compiled program on arrays from a file: IN OUT THREADS.

   IN: the numbers of constants, inputs and outputs, then the bytes of each, as int64; then the constants' and the inputs'
   bytes. OUT: the outputs' bytes. Each array ends at a closed page. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "program.h"

void *lt_program_create(int threads, const void *const *constants, const void *groups);
int lt_program_run(void *program, void *const *inputs, void *const *outputs, const lt_request *request);
void lt_program_destroy(void *program);

static void need(int holds, const char *what) {
  if (holds) return;
  fprintf(stderr, "%s\n", what);
  exit(1);
}

static void *array_of(int64_t bytes) {
  const int64_t page = sysconf(_SC_PAGESIZE), size = (bytes + page - 1) / page * page;
  char *memory = mmap(NULL, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  need(memory != MAP_FAILED, "no memory");
  need(mprotect(memory + size, page, PROT_NONE) == 0, "no closed page");
  return memory + size - bytes;
}

int main(int count, char **args) {
  need(count == 4, "usage: runProgram IN OUT THREADS");
  FILE *in = fopen(args[1], "rb");
  need(in != NULL, "IN cannot be read");
  int64_t counts[3];
  need(fread(counts, 8, 3, in) == 3, "IN is short");
  const int64_t outputs = counts[0] + counts[1], all = outputs + counts[2];
  int64_t *bytes = calloc(all + 1, sizeof *bytes);
  void **arrays = calloc(all + 1, sizeof *arrays);
  need(bytes != NULL && arrays != NULL, "no memory");
  need(fread(bytes, 8, all, in) == (size_t)all, "IN is short");
  for (int64_t i = 0; i < all; i++) {
    arrays[i] = array_of(bytes[i]);
    if (i < outputs) need(fread(arrays[i], 1, bytes[i], in) == (size_t)bytes[i], "IN is short");
  }
  void *program = lt_program_create(atoi(args[3]), (const void *const *)arrays, NULL);
  need(program != NULL, "no memory");
  const lt_request request = {.times = 1};
  const int result = lt_program_run(program, arrays + counts[0], arrays + outputs, &request);
  if (result != 0) fprintf(stderr, "the program returned %d\n", result);
  lt_program_destroy(program);
  FILE *out = fopen(args[2], "wb");
  need(out != NULL, "OUT cannot be written");
  for (int64_t i = outputs; i < all; i++) need(fwrite(arrays[i], 1, bytes[i], out) == (size_t)bytes[i], "OUT is full");
  need(fclose(out) == 0, "OUT is full");
  return result != 0;
}

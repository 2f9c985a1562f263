/** @file Small programs in C, written by hand, for tests of what runs them. */

import { type OpenOptions, openProgram } from '../../../src/compiler/native/nativeProgram.js';
import { compileC } from '../../../src/compiler/native/toolchain/compileC.js';
import { openToolchain } from '../../../src/compiler/native/toolchain/index.js';
import type { Backend } from '../../../src/compiler/program/backend.js';
import { CompilerError, type HostArray } from '../../../src/compiler/program/tensors.js';

/** Compiles C with the machine's own compiler and opens the program. */
export async function openSource(
  source: string,
  constants: readonly HostArray[],
  options: OpenOptions,
): Promise<Backend> {
  const toolchain = await openToolchain();
  if ('reason' in toolchain) throw new CompilerError(toolchain.reason);
  const { name } = options;
  return openProgram(toolchain, () => compileC(toolchain, source, { name }), constants, options);
}

/** A program around the body of its step: `in`, `out`, `constants`, `thread`, `threads`, `p->runs`, `p->result`. */
export const programOf = (step: string, create = ''): string => `\
#define _GNU_SOURCE
#include <stdlib.h>
#include <unistd.h>
#include "luthier.h"

typedef struct { int threads; const void *const *constants; int runs; int busy; int result; } program;
typedef struct { program *p; void *const *inputs, *const *outputs; } call;

void *lt_program_create(int threads, const void *const *constants) {
  ${create}
  program *p = calloc(1, sizeof *p);
  p->threads = threads;
  p->constants = constants;
  return p;
}

static void step(void *arg, int thread, int threads) {
  call *c = arg;
  program *p = c->p;
  void *const *in = c->inputs, *const *out = c->outputs;
  const void *const *constants = p->constants;
  (void)in, (void)out, (void)constants;
  ${step}
}

int lt_program_run(void *handle, void *const *inputs, void *const *outputs, const void *request) {
  (void)request;
  program *p = handle;
  call c = {p, inputs, outputs};
  if (__atomic_exchange_n(&p->busy, 1, __ATOMIC_SEQ_CST)) return 99;
  p->runs++;
  lt_team_run(p->threads, step, &c);
  __atomic_store_n(&p->busy, 0, __ATOMIC_SEQ_CST);
  return p->result;
}

void lt_program_destroy(void *p) { free(p); }
`;

/** y = x * constant + number of threads, on arrays of `size`. */
export const scaling = (size: number): string =>
  programOf(`
  const float *x = in[0], *k = constants[0];
  float *y = out[0];
  for (int64_t i = thread; i < ${size}; i += threads) y[i] = x[i] * k[0] + threads;
`);

/** Ends with 0 once its input's first byte is set, and with 3 after ten seconds. */
export const waiting = programOf(`
  volatile uint8_t *flag = in[0];
  if (thread != 0) return;
  p->result = 3;
  for (int i = 0; i < 10000; i++) {
    if (*flag) { p->result = 0; break; }
    usleep(1000);
  }
`);

/* collectives.c: collectives as steps of programs: all threads lay out blocks, one calls the transport. */
/* flags: machine -O2 */
#include "program.h"

/* A thread's share of copying bytes. */
static void copy_share(void *to, const void *from, int64_t bytes, const lt_frame *frame) {
  const int64_t begin = LT_FROM(bytes), end = LT_TO(bytes);
  if (end > begin) memcpy((char *)to + begin, (const char *)from + begin, end - begin);
}

/* A thread's share of to[c][r] = from[r][c], of runs of bytes; `rows` of them lie `row` runs apart in `from`. */
static void move_runs(char *to, const char *from, int64_t rows, int64_t columns, int64_t row, int64_t bytes,
                      const lt_frame *frame) {
  const int64_t all = rows * columns * bytes, last = LT_TO(all);
  for (int64_t at = LT_FROM(all); at < last;) {
    const int64_t run = at / bytes, skipped = at % bytes;
    const int64_t size = lt_smaller(bytes - skipped, last - at);
    memcpy(to + at, from + (run % rows * row + run / rows) * bytes + skipped, size);
    at += size;
  }
}

/* Notes a transport's error: the run ends at the next barrier. */
static void settle(lt_frame *frame, int32_t operation, int32_t group, int64_t bytes, int error) {
  if (error == 0) return;
  lt_ranks *ranks = frame->ranks;
  ranks->error = error;
  ranks->operation = operation;
  ranks->group = group;
  ranks->bytes = bytes;
  frame->bad_index = 1;
}

/* Whether this thread calls the transport: after an error no thread does. */
static int calls(const lt_frame *frame) { return frame->thread == 0 && frame->ranks->error == 0; }

void lt_all_reduce(lt_frame *frame, int32_t group, void *out, const void *x, int64_t size, int32_t reduction) {
  const lt_group *g = &frame->ranks->groups[group];
  if (out != x) copy_share(out, x, 4 * size, frame);
  if (g->members == 1) return;
  lt_barrier();
  if (calls(frame))
    settle(frame, LT_ALL_REDUCE, group, 4 * size, g->transport->all_reduce(g->context, out, size, reduction));
}

void lt_reduce_scatter(lt_frame *frame, int32_t group, void *out, const void *x, int64_t outer, int64_t run,
                       int32_t reduction, void *workspace) {
  const lt_group *g = &frame->ranks->groups[group];
  const int64_t block = outer * run;
  if (g->members == 1) {
    copy_share(out, x, 4 * block, frame);
    return;
  }
  char *const blocks = workspace;
  move_runs(blocks, x, outer, g->members, g->members, 4 * run, frame);
  lt_barrier();
  if (calls(frame))
    settle(frame, LT_REDUCE_SCATTER, group, 4 * block * g->members,
           g->transport->reduce_scatter(g->context, blocks, block, reduction));
  lt_barrier();
  copy_share(out, blocks + 4 * block * g->member, 4 * block, frame);
}

void lt_all_gather(lt_frame *frame, int32_t group, void *out, const void *x, int64_t outer, int64_t run,
                   void *workspace) {
  const lt_group *g = &frame->ranks->groups[group];
  const int64_t block = outer * run;
  const int in_place = outer == 1 || g->members == 1;
  char *const blocks = in_place ? out : workspace;
  copy_share(blocks + block * g->member, x, block, frame);
  if (g->members == 1) return;
  lt_barrier();
  if (calls(frame))
    settle(frame, LT_ALL_GATHER, group, block * g->members, g->transport->all_gather(g->context, blocks, block));
  if (in_place) return;
  lt_barrier();
  move_runs(out, blocks, g->members, outer, outer, run, frame);
}

void lt_all_to_all(lt_frame *frame, int32_t group, void *out, const void *x, const lt_exchange *e, void *workspace) {
  const lt_group *g = &frame->ranks->groups[group];
  const int64_t block = e->from_outer * e->from_run, all = block * g->members;
  if (g->members == 1) {
    copy_share(out, x, all, frame);
    return;
  }
  const char *sent = x;
  if (e->from_outer > 1) {
    move_runs(workspace, x, e->from_outer, g->members, g->members, e->from_run, frame);
    sent = workspace;
  }
  char *const got = e->to_outer > 1 ? (char *)workspace + all * (e->from_outer > 1) : out;
  lt_barrier();
  if (calls(frame))
    settle(frame, LT_ALL_TO_ALL, group, all, g->transport->all_to_all(g->context, sent, got, block));
  if (got == out) return;
  lt_barrier();
  move_runs(out, got, g->members, e->to_outer, e->to_outer, e->to_run, frame);
}

void lt_collective_permute(lt_frame *frame, int32_t group, void *out, const void *x, int64_t bytes, int32_t by) {
  const lt_group *g = &frame->ranks->groups[group];
  if (g->members == 1) {
    copy_share(out, x, bytes, frame);
    return;
  }
  lt_barrier();
  if (calls(frame)) settle(frame, LT_PERMUTE, group, bytes, g->transport->permute(g->context, x, out, bytes, by));
}

void lt_own_part(const lt_frame *frame, int32_t group, void *out, const void *x, int64_t outer, int64_t run) {
  const lt_group *g = &frame->ranks->groups[group];
  move_runs(out, (const char *)x + g->member * run, outer, 1, g->members, run, frame);
}

void lt_member_index(const lt_frame *frame, int32_t group, void *out) {
  if (frame->thread == 0) *(int32_t *)out = (int32_t)frame->ranks->groups[group].member;
}

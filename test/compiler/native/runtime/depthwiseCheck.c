/* depthwiseCheck.c: lt_depthwise_* against plain sums in doubles, on random strides, dilations and paddings. */
#include "imageCheck.h"

typedef struct {
  lt_depthwise s;
  lt_image x, y, dy, dx;
  float *w, *dw;
} problem;

typedef struct {
  problem *problem;
  char *scratch;
  float *sums;
  int64_t bytes;
} job;

static void runShare(void *arg, int thread, int threads) {
  const job *j = arg;
  const problem *q = j->problem;
  char *const scratch = j->scratch + thread * j->bytes;
  lt_depthwise_forward(&q->s, q->x, q->w, q->y, scratch, thread, threads);
  lt_depthwise_backward(&q->s, q->dy, q->w, q->dx, scratch, thread, threads);
  lt_depthwise_sums(&q->s, q->x, q->dy, j->sums, thread, threads);
  lt_barrier();
  lt_depthwise_filter(&q->s, j->sums, q->dw, thread, threads);
}

static void run(problem *q, int threads) {
  job j = {q, NULL, NULL, round64(lt_depthwise_scratch_bytes(&q->s))};
  j.scratch = room(threads * j.bytes);
  j.sums = room(lt_depthwise_sums_bytes(&q->s));
  lt_team_run(threads, runShare, &j);
  free(j.scratch);
  free(j.sums);
}

/* Windows may begin before the axis and end behind it, and some may be wholly outside. */
static lt_windows windowsOf(void) {
  lt_windows w = {.size = 1 + below(12), .taps = 1 + below(5), .stride = 1 + below(3), .dilation = 1 + below(3)};
  w.before = below(w.taps * w.dilation + 3) - 1;
  w.count = 1 + below(w.size / w.stride + 3);
  return w;
}

static problem problemOf(void) {
  /* Up to more channels than are summed at once, with every remainder. */
  const lt_depthwise s = {1 + below(3), 1 + below(150), windowsOf(), windowsOf()};
  const int64_t taps = s.down.taps * s.across.taps * s.channels;
  problem q = {s,
               imageOf(s.batch, s.down.size, s.across.size, s.channels),
               imageOf(s.batch, s.down.count, s.across.count, s.channels),
               imageOf(s.batch, s.down.count, s.across.count, s.channels),
               imageOf(s.batch, s.down.size, s.across.size, s.channels),
               room(taps * 4),
               room(taps * 4)};
  for (int64_t i = 0; i < taps; i++) q.w[i] = number();
  return q;
}

static void release(problem *q) {
  free(q->x.data), free(q->y.data), free(q->dy.data), free(q->dx.data), free(q->w), free(q->dw);
}

/* Sums of one channel in doubles. */
static int64_t checkChannel(const problem *q, int64_t c) {
  const lt_windows down = q->s.down, across = q->s.across;
  const int64_t cells = down.size * across.size, taps = down.taps * across.taps;
  double *const dx = calloc((size_t)cells, sizeof *dx), *const dw = calloc((size_t)taps, sizeof *dw);
  int64_t bad = 0;
  for (int64_t b = 0; b < q->s.batch; b++) {
    memset(dx, 0, (size_t)cells * sizeof *dx);
    for (int64_t i = 0; i < down.count; i++)
      for (int64_t j = 0; j < across.count; j++) {
        double sum = 0;
        const double gradient = at(q->dy, b, i, j)[c];
        for (int64_t tap = 0; tap < taps; tap++) {
          const int64_t row = i * down.stride + tap / across.taps * down.dilation - down.before;
          const int64_t column = j * across.stride + tap % across.taps * across.dilation - across.before;
          if (row < 0 || column < 0 || row >= down.size || column >= across.size) continue;
          const double cell = at(q->x, b, row, column)[c], weight = q->w[tap * q->s.channels + c];
          sum += cell * weight;
          dx[row * across.size + column] += gradient * weight;
          dw[tap] += cell * gradient;
        }
        bad += differs(sum, at(q->y, b, i, j)[c], sqrt((double)taps));
      }
    for (int64_t cell = 0; cell < cells; cell++)
      bad += differs(dx[cell], at(q->dx, b, cell / across.size, cell % across.size)[c], sqrt((double)taps));
  }
  for (int64_t tap = 0; tap < taps; tap++)
    bad += differs(dw[tap], q->dw[tap * q->s.channels + c], sqrt((double)(q->s.batch * down.count * across.count)));
  free(dx);
  free(dw);
  return bad;
}

int main(void) {
  for (int round = 0; round < CASES(150); round++) {
    problem q = problemOf();
    if (round % 3 == 2) {
      at(q.x, 0, below(q.s.down.size), below(q.s.across.size))[below(q.s.channels)] = round % 4 ? INFINITY : NAN;
      at(q.dy, 0, below(q.s.down.count), below(q.s.across.count))[below(q.s.channels)] = -INFINITY;
    }
    const int threads = 1 + (int)below(3);
    const size_t size = (size_t)(q.s.down.taps * q.s.across.taps * q.s.channels) * sizeof(float);
    run(&q, threads + 1);
    float *const kept = malloc(size);
    memcpy(kept, q.dw, size);
    run(&q, threads);
    if (memcmp(kept, q.dw, size) != 0) printf("round %d: %d threads: other bits\n", round, threads);
    free(kept);
    int64_t bad = 0;
    for (int64_t c = 0; c < q.s.channels; c++) bad += checkChannel(&q, c);
    if (bad)
      printf("round %d: %lld wrong: batch %lld, %lld channels, %d threads\n", round, (long long)bad, (long long)q.s.batch,
             (long long)q.s.channels, threads);
    release(&q);
  }
  printf("finished\n");
  return 0;
}

/* convolutionCheck.c: lt_winograd and its gradient by the filter against plain sums in doubles, on random shapes. */
#include "imageCheck.h"

static float as(int p, float x) { return p == LT_BFLOAT16 ? lt_from_bf16(lt_to_bf16(x)) : x; }

typedef struct {
  lt_convolution s;
  lt_image x, y, dy;
  lt_filter w;
  float *dw, *taps;
} problem;

typedef struct {
  int p, threads;
  problem *problem;
  char *packed, *sums, *scratch, *more;
  int64_t bytes, moreBytes;
} job;

static void runShare(void *arg, int thread, int threads) {
  const job *j = arg;
  const problem *q = j->problem;
  char *const scratch = j->scratch + thread * j->bytes, *const more = j->more + thread * j->moreBytes;
  lt_winograd_filters(j->p, &q->s, q->w, j->packed, scratch, thread, threads);
  lt_winograd_sums(j->p, &q->s, q->x, q->dy, j->sums, more, thread, threads);
  lt_barrier();
  lt_winograd(j->p, &q->s, q->x, q->w, j->packed, q->y, scratch, thread, threads);
  lt_winograd_gradient(j->p, &q->s, q->x, q->dy, j->sums, q->dw, thread, threads);
}

static void run(problem *q, int p, int threads) {
  job j = {p, threads, q, room(lt_winograd_filter_bytes(&q->s)), room(lt_winograd_sums_bytes(&q->s)), NULL, NULL,
           round64(lt_winograd_scratch_bytes(&q->s)), round64(lt_winograd_gradient_scratch_bytes(&q->s))};
  j.scratch = room(threads * j.bytes);
  j.more = room(threads * j.moreBytes);
  /* What is left of other runs is finite: a NaN would be computed plainly. */
  memset(j.scratch, 0x3f, (size_t)(threads * j.bytes));
  memset(j.sums, 0x3f, (size_t)lt_winograd_sums_bytes(&q->s));
  memset(j.more, 0x3f, (size_t)(threads * j.moreBytes));
  lt_team_run(threads, runShare, &j);
  free(j.packed);
  free(j.sums);
  free(j.scratch);
  free(j.more);
}

/* @param isLarge whether several threads have tiles of the gradient to sum. */
static problem problemOf(int isLarge) {
  lt_convolution s = {.batch = 1 + below(4), .height = 1 + below(14), .width = 1 + below(14), .channels = 1 + below(40),
                      .filters = 1 + below(40), .above = below(5) - 1, .before = below(5) - 1};
  if (isLarge) s.batch = 5, s.height = 23, s.width = 26;
  /* Windows may end within the image, or reach beyond it. */
  s.down = 1 + below(s.height + 4);
  s.across = 1 + below(s.width + 4);
  if (isLarge) s.down = s.height, s.across = s.width;
  problem q = {s, imageOf(s.batch, s.height, s.width, s.channels), imageOf(s.batch, s.down, s.across, s.filters),
               imageOf(s.batch, s.down, s.across, s.filters), {0}, room(9 * s.channels * s.filters * 4),
               room(9 * s.channels * s.filters * 4)};
  float *taps = q.taps;
  for (int64_t i = 0; i < 9 * s.channels * s.filters; i++) taps[i] = number();
  const int64_t c = s.channels, m = s.filters;
  /* As it is, or turned with channels and filters exchanged, as the gradient by the input reads it. */
  q.w = below(2) ? (lt_filter){taps, 3 * c * m, c * m, m, 1} : (lt_filter){taps + 8 * c * m, -3 * c * m, -c * m, 1, c};
  return q;
}

static void release(problem *q) {
  free(q->x.data), free(q->y.data), free(q->dy.data), free(q->dw), free(q->taps);
}

static float tapOf(const problem *q, int64_t tap, int64_t c, int64_t m) {
  return q->w.data[tap / 3 * q->w.row + tap % 3 * q->w.column + c * q->w.channel + m * q->w.filter];
}

/* How many taps' gradients have other bits on fewer or more threads. */
static int64_t differOnThreads(problem *q, int p, int most) {
  const size_t bytes = (size_t)(9 * q->s.channels * q->s.filters) * sizeof(float);
  float *const kept = malloc(bytes);
  memcpy(kept, q->dw, bytes);
  int64_t bad = 0;
  for (int threads = 1; threads <= most; threads++) {
    run(q, p, threads);
    bad += memcmp(kept, q->dw, bytes) != 0;
  }
  free(kept);
  return bad;
}

static int64_t check(const problem *q, int p) {
  const lt_convolution *s = &q->s;
  int64_t bad = 0;
  double *sums = calloc((size_t)(9 * s->channels * s->filters), sizeof *sums);
  for (int64_t b = 0; b < s->batch; b++)
    for (int64_t i = 0; i < s->down; i++)
      for (int64_t j = 0; j < s->across; j++)
        for (int64_t m = 0; m < s->filters; m++) {
          double sum = 0;
          const float gradient = as(p, at(q->dy, b, i, j)[m]);
          for (int64_t tap = 0; tap < 9; tap++) {
            const int64_t row = i + tap / 3 - s->above, column = j + tap % 3 - s->before;
            if (row < 0 || column < 0 || row >= s->height || column >= s->width) continue;
            for (int64_t c = 0; c < s->channels; c++) {
              const double cell = as(p, at(q->x, b, row, column)[c]);
              sum += cell * as(p, tapOf(q, tap, c, m));
              sums[(tap * s->channels + c) * s->filters + m] += cell * gradient;
            }
          }
          bad += differs(sum, at(q->y, b, i, j)[m], sqrt(9.0 * (double)s->channels));
        }
  for (int64_t i = 0; i < 9 * s->channels * s->filters; i++)
    bad += differs(sums[i], q->dw[i], sqrt((double)(s->batch * s->down * s->across)));
  free(sums);
  return bad;
}

int main(int count, char **arguments) {
  if (count > 1 && !lt_gemm_force(arguments[1])) {
    printf("%s: not here\n", arguments[1]);
    return 0;
  }
  for (int round = 0; round < CASES(60); round++) {
    const int isLarge = round % 10 == 0;
    problem q = problemOf(isLarge);
    const int special = round % 3 == 2, p = round % 2 ? LT_BFLOAT16 : LT_FLOAT32;
    if (special) {
      at(q.x, 0, below(q.s.height), below(q.s.width))[below(q.s.channels)] = round % 4 ? INFINITY : NAN;
      at(q.dy, 0, below(q.s.down), below(q.s.across))[below(q.s.filters)] = -INFINITY;
    }
    const int threads = isLarge ? 3 : 1 + (int)below(3);
    run(&q, p, threads);
    const int64_t bad = check(&q, p) + differOnThreads(&q, p, isLarge ? 7 : 0);
    if (bad)
      printf("round %d: %lld wrong: batch %lld, %lldx%lldx%lld to %lldx%lldx%lld, above %lld, before %lld, precision %d, %d threads\n",
             round, (long long)bad, (long long)q.s.batch, (long long)q.s.height, (long long)q.s.width, (long long)q.s.channels,
             (long long)q.s.down, (long long)q.s.across, (long long)q.s.filters, (long long)q.s.above, (long long)q.s.before, p,
             threads);
    release(&q);
  }
  printf("finished\n");
  return 0;
}

/* attentionCheck.c: attention of the native runtime against plain loops in doubles, with the microkernel that is named
   first and the checks that are named after it; run by kernels.test.ts and kernels.long.ts. Silent where all is well. */
#include "attentionCheck.h"

static int failures;

#define SHAPE(BATCH, HEADS, QUERIES, KEYS, DIMS, VALUE_DIMS, SCALE, CAP, AFTER)                                          \
  {                                                                                                                     \
    .batch = BATCH, .heads = HEADS, .queries = QUERIES, .keys = KEYS, .dims = DIMS, .value_dims = VALUE_DIMS,           \
    .scale = SCALE, .logit_cap = CAP, .before = LT_ALL, .after = AFTER                                                  \
  }

static void complain(const problem *x, const char *what, int64_t b, int64_t h, int64_t t, int64_t c, double got,
                     double expected, double bound) {
  if (failures++ > 3) return;
  const lt_attention *s = &x->s;
  printf("%s[%d, %d, %d, %d] is %.9g instead of %.9g (+- %.2g) at p=%d batch=%d heads=%d queries=%d keys=%d dims=%d "
         "value_dims=%d before=%lld after=%lld cap=%g mask=%d segments=%d keep=%g prefix=%d visible=%d sinks=%d\n",
         what, (int)b, (int)h, (int)t, (int)c, got, expected, bound, x->p, (int)s->batch, (int)s->heads, (int)s->queries,
         (int)s->keys, (int)s->dims, (int)s->value_dims, (long long)s->before, (long long)s->after, (double)s->logit_cap,
         x->mask != NULL, s->query_segments != NULL, (double)s->keep,
         s->prefix == NULL ? 0 : (int)s->prefix[b * s->prefix_batch],
         s->visible == NULL ? (int)s->keys : (int)s->visible[b * s->visible_batch], s->sinks != NULL);
}

static void compare(const problem *x, const char *what, const heads *got, const double *expected, const double *bounds) {
  const double large = x->s.scale > 1 ? 50 : 1; /* the digits that logits in the hundreds lose */
  const double unit = x->p == LT_BFLOAT16 ? 0x1p-7 : 4e-6 * large, storing = got->at.type == LT_BFLOAT16 ? 0x1p-8 : 0;
  for (int64_t b = 0; b < got->batch; b++)
    for (int64_t h = 0; h < (got->at.head == 0 ? 1 : got->heads); h++)
      for (int64_t t = 0; t < got->time; t++)
        for (int64_t c = 0; c < got->dims; c++) {
          const int64_t i = place(got, b, h, t) + c;
          /* out, which the gradients begin with, may itself be stored as bf16 */
          const double rounding = x->out.at.type == LT_BFLOAT16 && unit < 0x1p-7 ? 0x1p-7 : unit;
          const double bound = rounding * bounds[i] + storing * fabs(expected[i]) + 1e-30, value = get(got, b, h, t, c);
          if (!(fabs(value - expected[i]) <= bound)) complain(x, what, b, h, t, c, value, expected[i], bound);
        }
}

static void compare_all(const problem *x) {
  const answer y = solve(x);
  for (int64_t i = 0; i < x->s.batch * x->s.heads * x->s.queries; i++)
    if (!(x->lse[i] == y.lse[i] || fabs(x->lse[i] - y.lse[i]) <= 1e-5 + 4e-6 * fabs(y.lse[i])))
      complain(x, "lse", 0, 0, i, 0, x->lse[i], y.lse[i], 4e-6);
  compare(x, "out", &x->out, y.out, y.out_bound);
  compare(x, "dq", &x->dq, y.dq, y.dq_bound);
  compare(x, "dk", &x->dk, y.dk, y.dk_bound);
  compare(x, "dv", &x->dv, y.dv, y.dv_bound);
  for (int64_t i = 0; x->dmask != NULL && i < x->mask_size; i++) {
    const double large = x->s.scale > 1 ? 50 : 1, rounds = x->p == LT_BFLOAT16 || x->out.at.type == LT_BFLOAT16;
    const double bound = (rounds ? 0x1p-7 : 4e-6 * large) * y.dmask_bound[i] + 1e-30;
    if (!(fabs(x->dmask[i] - y.dmask[i]) <= bound)) complain(x, "dmask", 0, 0, 0, i, x->dmask[i], y.dmask[i], bound);
  }
  for (int64_t h = 0; x->s.sinks != NULL && h < x->s.heads; h++) {
    const double large = x->s.scale > 1 ? 50 : 1, rounds = x->p == LT_BFLOAT16 || x->out.at.type == LT_BFLOAT16;
    const double bound = (rounds ? 0x1p-7 : 8e-6 * large) * y.dsinks_bound[h] + 1e-30;
    if (!(fabs(x->dsinks[h] - y.dsinks[h]) <= bound)) complain(x, "dsinks", 0, h, 0, 0, x->dsinks[h], y.dsinks[h], bound);
  }
  free_answer(y);
}

static int32_t any_type(void) { return drawn() % 2 ? LT_BFLOAT16 : LT_FLOAT32; }

static problem make_problem(int p, lt_attention s, int shared_k, int shared_v) {
  problem x = {.s = s, .p = p};
  x.q = make_heads(any_type(), s.batch, s.heads, s.queries, s.dims, 0);
  x.k = make_heads(any_type(), s.batch, s.heads, s.keys, s.dims, shared_k);
  x.v = make_heads(any_type(), s.batch, s.heads, s.keys, s.value_dims, shared_v);
  x.out = make_heads(any_type(), s.batch, s.heads, s.queries, s.value_dims, 0);
  x.dout = make_heads(any_type(), s.batch, s.heads, s.queries, s.value_dims, 0);
  x.dq = make_heads(any_type(), s.batch, s.heads, s.queries, s.dims, 0);
  x.dk = make_heads(any_type(), s.batch, s.heads, s.keys, s.dims, shared_k);
  x.dv = make_heads(any_type(), s.batch, s.heads, s.keys, s.value_dims, shared_v);
  x.lse = malloc((size_t)(s.batch * s.heads * s.queries) * sizeof(float));
  fill(&x.q, 1);
  fill(&x.k, 1);
  fill(&x.v, 1);
  fill(&x.dout, 1);
  return x;
}

/* A mask that broadcasts over some of its dimensions; some keys are hidden by `hidden`, at times all of a query's. */
static void add_mask(problem *x, float hidden) {
  lt_attention *s = &x->s;
  int64_t size = 1;
  int64_t *strides[] = {&s->mask_key, &s->mask_query, &s->mask_head, &s->mask_batch};
  const int64_t sizes[] = {s->keys, s->queries, s->heads, s->batch};
  for (int d = 0; d < 4; d++) {
    const int present = drawn() % 4 > 0;
    *strides[d] = present ? size : 0;
    if (present) size *= sizes[d];
  }
  x->mask = malloc((size_t)size * sizeof(float));
  x->dmask = malloc((size_t)size * sizeof(float));
  x->mask_size = size;
  for (int64_t i = 0; i < size; i++) x->mask[i] = drawn() % 3 ? normal() : hidden;
  s->mask = x->mask;
}

/* Segments, ascending as in packed rows, in blocks or in any order, with ids that some keys alone have; of every batch or of
   each. */
static void add_segments(problem *x) {
  lt_attention *s = &x->s;
  enum { ANY, BLOCKS, ASCENDING };
  const int order = (int)(drawn() % 3), apart = drawn() % 2;
  const int64_t sizes[] = {s->queries, s->keys};
  for (int side = 0; side < 2; side++) {
    const int64_t size = sizes[side], batches = apart ? s->batch : 1;
    int32_t *ids = x->segments[side] = malloc((size_t)(size * batches) * sizeof(int32_t));
    for (int64_t b = 0; b < batches; b++) {
      int32_t id = -1;
      for (int64_t i = 0; i < size; i++) {
        if (order == ASCENDING)
          id += drawn() % 40 == 0;
        else if (order == ANY || i % 33 == 0)
          id = (int32_t)(drawn() % 6) - 1;
        ids[b * size + i] = side == 0 && id < 0 ? 0 : id;
      }
    }
  }
  s->query_segments = x->segments[0];
  s->key_segments = x->segments[1];
  s->query_segments_batch = apart ? s->queries : 0;
  s->key_segments_batch = apart ? s->keys : 0;
}

/* Drops weights by a key whose words are apart, as numbers of rows with more keys than there are. */
static void add_drops(problem *x) {
  lt_attention *s = &x->s;
  s->drop_stride = up_to(2);
  for (int i = 0; i < 3; i++) x->drop_key[i] = (int32_t)drawn();
  s->drop_key = x->drop_key;
  s->drop_row = s->keys + drawn() % 3;
  s->keep = drawn() % 2 ? 0.9f : 0.3f;
}

/* Numbers of keys, of every batch item or of each: none, one, all, more than there are, any. */
static const int32_t *add_counts(problem *x, int which, int64_t *stride) {
  const int64_t keys = x->s.keys;
  const int apart = drawn() % 3 > 0;
  int32_t *counts = x->counts[which] = malloc((size_t)x->s.batch * sizeof(int32_t));
  for (int64_t b = 0; b < x->s.batch; b++) {
    const int64_t choices[] = {0, 1, keys, keys + up_to(100), up_to(keys), up_to(keys), INT32_MIN, INT32_MAX};
    counts[b] = (int32_t)choices[drawn() % 8];
  }
  *stride = apart;
  return counts;
}

static void add_prefix(problem *x) {
  lt_attention *s = &x->s;
  s->prefix = add_counts(x, 0, &s->prefix_batch);
  s->prefix_after = s->after == LT_ALL || drawn() % 3 ? LT_ALL : s->after + up_to(s->keys);
}

static void add_visible(problem *x) { x->s.visible = add_counts(x, 1, &x->s.visible_batch); }

/* Sinks below, among and far above the logits. */
static void add_sinks(problem *x) {
  static const float apart[] = {-1000.0f, -3.0f, 0.0f, 3.0f, 1000.0f};
  for (int h = 0; h < 4; h++) x->sinks[h] = normal() + apart[drawn() % 5];
  x->s.sinks = x->sinks;
  x->s.sink_stride = 1;
}

static lt_attention any_shape(int64_t most) {
  lt_attention s = {.batch = up_to(3), .heads = up_to(4), .queries = up_to(most), .keys = up_to(most)};
  s.dims = up_to(80);
  s.value_dims = drawn() % 2 ? s.dims : up_to(80);
  s.before = drawn() % 3 ? LT_ALL : up_to(most) - 1;
  s.after = drawn() % 2 ? 0 : drawn() % 3 ? LT_ALL : up_to(most) - 1;
  if (drawn() % 3 == 0) s.queries = up_to(6);
  if (drawn() % 2) s.keys = s.queries;
  s.scale = drawn() % 8 ? 1.0f / sqrtf((float)s.dims) : -0.3f;
  if (drawn() % 4 == 0) s.logit_cap = 2.0f;
  return s;
}

static void check_random(int p) {
  for (int round = 0; round < CASES(40); round++) {
    problem x = make_problem(p, any_shape(round % 4 ? 70 : 150), drawn() % 4 == 0, drawn() % 4 == 0);
    if (drawn() % 3 == 0) add_mask(&x, drawn() % 2 ? -1e9f : -30.0f);
    if (drawn() % 3 == 0) add_segments(&x);
    if (round % 3 == 1) add_drops(&x);
    if (round % 5 > 1) add_prefix(&x);
    if (round % 4 == 1) add_visible(&x);
    if (drawn() % 3 == 0) add_sinks(&x);
    run(&x, 1 + round % 4);
    compare_all(&x);
    free_problem(&x);
  }
}

/* The bits do not depend on the number of threads, nor on what was computed before. */
static void check_threads(int p) {
  static const int teams[] = {1, 2, 3, 4, 7};
  for (int round = 0; round < 6; round++) {
    problem x = make_problem(p, any_shape(SHARE > 1 ? 70 : 150), round % 2, round % 2);
    if (round % 3 == 0) add_segments(&x);
    if (round % 2 == 0) add_mask(&x, -30.0f);
    if (round % 3 == 1) add_drops(&x);
    if (round % 2 == 0) add_prefix(&x);
    if (round % 3 == 2) add_visible(&x);
    float *dmask = NULL;
    heads *results[] = {&x.out, &x.dq, &x.dk, &x.dv};
    void *kept[4];
    for (size_t t = 0; t < sizeof teams / sizeof *teams; t++) {
      const int threads = teams[t];
      run(&x, threads);
      for (int i = 0; i < 4; i++) {
        const size_t bytes = (size_t)(results[i]->size * bytes_of(results[i]->at.type));
        if (threads == 1) memcpy(kept[i] = malloc(bytes), results[i]->memory, bytes);
        else if (memcmp(kept[i], results[i]->memory, bytes) != 0) failures++, printf("%d threads: other bits\n", threads);
        memset(results[i]->memory, 0xff, bytes);
      }
      const size_t size = (size_t)x.mask_size * sizeof(float);
      if (x.dmask != NULL && threads == 1) memcpy(dmask = malloc(size), x.dmask, size);
      else if (x.dmask != NULL && memcmp(dmask, x.dmask, size) != 0) failures++, printf("%d threads: other dmask\n", threads);
    }
    free(dmask);
    for (int i = 0; i < 4; i++) free(kept[i]);
    free_problem(&x);
  }
}

/* A mask of keys alone, which all queries, heads and batch items add to, by more threads than there are elements of others. */
static void check_shared_mask(int p) {
  float *before = NULL;
  for (int threads = 1; threads <= 3; threads++) {
    drawn_so_far = 7;
    const lt_attention s = {.batch = 2, .heads = 2, .queries = 300, .keys = 40, .dims = 8, .value_dims = 8, .scale = 0.4f,
                            .before = LT_ALL, .after = LT_ALL};
    problem x = make_problem(p, s, 0, 0);
    x.mask_size = s.keys;
    const size_t size = (size_t)s.keys * sizeof(float);
    x.mask = calloc(1, size);
    x.dmask = malloc(size);
    x.s.mask = x.mask;
    x.s.mask_key = 1;
    run(&x, threads);
    compare_all(&x);
    if (threads == 1) memcpy(before = malloc(size), x.dmask, size);
    else if (memcmp(before, x.dmask, size) != 0) failures++, printf("%d threads: another gradient of a shared mask\n", threads);
    free_problem(&x);
  }
  free(before);
}

/* q, k, v as slices of one buffer [batch, time, 3, heads, dims], their gradients of another, as layers have them. */
static void check_slices(int p) {
  for (int32_t type = LT_FLOAT32; type <= LT_BFLOAT16; type++) {
    const int64_t batch = 2, count = 3, time = 100, dims = 32, row = 3 * count * dims;
    const lt_attention s = SHAPE(batch, count, time, time, dims, dims, 0.18f, 0, 0);
    problem x = make_problem(p, s, 0, 0);
    heads *slices[] = {&x.q, &x.k, &x.v, &x.dq, &x.dk, &x.dv};
    char *buffers[2];
    for (int i = 0; i < 2; i++) buffers[i] = malloc((size_t)(batch * time * row * bytes_of(type)));
    for (int i = 0; i < 6; i++) {
      free(slices[i]->memory);
      slices[i]->memory = buffers[i / 3] + i % 3 * count * dims * bytes_of(type);
      slices[i]->at = (lt_heads){.data = slices[i]->memory, .type = type, .batch = time * row, .time = row, .head = dims};
      if (i < 3) fill(slices[i], 1);
    }
    run(&x, 2);
    compare_all(&x);
    for (int i = 0; i < 6; i++) slices[i]->memory = NULL;
    for (int i = 0; i < 2; i++) free(buffers[i]);
    free_problem(&x);
  }
}

/* Many keys, in far less scratch than the matrix of logits; large logits; queries that see no key. */
static void check_long(int p) {
  const lt_attention shapes[] = {
      SHAPE(1, 1, 2048, 2048, 4, 3, 0.25f, 0, 0),
      SHAPE(1, 2, 300, 1500, 5, 2, 0.2f, 0, LT_ALL),
      SHAPE(1, 2, 1, 1500, 64, 64, 0.2f, 0, 0),
      SHAPE(2, 1, 100, 60, 16, 16, 30.0f, 0, 0),
  };
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    problem x = make_problem(p, shapes[i], 0, 0);
    const int64_t logits = shapes[i].queries * shapes[i].keys * 4;
    for (int backward = 0; i == 0 && backward < 2; backward++)
      if (lt_attention_scratch_bytes(p, &x.s, backward) > logits / 8) failures++, printf("much scratch\n");
    run(&x, 1);
    compare_all(&x);
    free_problem(&x);
  }
}

/* Windows, segments and prefixes much shorter than what they are of: most keys are skipped. */
static void check_windows(int p) {
  for (int round = 0; round < CASES(16); round++) {
    const int64_t length = 400 + up_to(500);
    lt_attention s = {.batch = 2, .heads = 2, .queries = length, .keys = length, .dims = up_to(9), .value_dims = up_to(9)};
    if (round % 4 == 3) s.queries = up_to(4), s.heads = 3;
    s.scale = 0.4f;
    s.before = round % 2 ? up_to(150) - 1 : LT_ALL;
    s.after = round % 3 ? 0 : up_to(60) - 1;
    problem x = make_problem(p, s, round % 5 == 0, round % 5 == 0);
    if (round % 2 == 0 || drawn() % 2) add_segments(&x);
    if (round % 3 == 0) add_mask(&x, -30.0f);
    if (round % 4 == 1) add_drops(&x);
    if (round % 3 > 0) add_prefix(&x);
    if (round % 5 == 2) add_visible(&x);
    run(&x, 1 + round % 3);
    compare_all(&x);
    free_problem(&x);
  }
}

/* One more than a tile, a strip, a chunk and a block has; the number of queries that are products of vectors; few of a kind. */
static void check_edges(int p) {
  static const struct {
    lt_attention s;
    int shared_k, shared_v;
  } cases[] = {
      {SHAPE(1, 1, 6, 577, 3, 2, 1.0f, 0, 0), 0, 0},
      {SHAPE(1, 1, 33, 600, 4, 17, 30.0f, 0, LT_ALL), 0, 0},
      {SHAPE(1, 1, 33, 5, 4, 3, 60.0f, 0, LT_ALL), 0, 0},
      {SHAPE(1, 2, 130, 130, 5, 3, 0.5f, 0, 0), 1, 0},
      {SHAPE(1, 2, 130, 130, 3, 5, 0.5f, 0, 0), 0, 1},
      {SHAPE(2, 1, 17, 385, 7, 9, 0.4f, 1.5f, LT_ALL), 0, 0},
      {SHAPE(1, 3, 4, 131, 33, 65, 0.2f, 0, 0), 1, 1},
      {SHAPE(2, 2, 1, 129, 17, 70, 20.0f, 0, LT_ALL), 0, 0},
      {SHAPE(2, 2, 2, 300, 17, 6, 60.0f, 0, LT_ALL), 0, 0},
      {SHAPE(1, 1, 5, 2, 1, 1, 1.0f, 0, 0), 0, 0},
      {SHAPE(1, 1, 1, 1, 1, 1, 1.0f, 0, 0), 0, 0},
  };
  for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
    const size_t c = i / 2;
    problem x = make_problem(p, cases[c].s, cases[c].shared_k, cases[c].shared_v);
    if (c == 5 || c == 6) add_mask(&x, -1e9f);
    if (i % 2 == 1) add_sinks(&x);
    run(&x, 1 + (int)(i % 3));
    compare_all(&x);
    free_problem(&x);
  }
}

/* Nothing to attend to is 0 and has no gradient; nobody to attend gives keys none. */
static void check_empty(int p) {
  const int64_t sizes[][2] = {{7, 0}, {1, 0}, {0, 7}};
  for (int i = 0; i < 3; i++) {
    const lt_attention s = SHAPE(2, 2, sizes[i][0], sizes[i][1], 5, 6, 1, 0, LT_ALL);
    problem x = make_problem(p, s, 0, 0);
    run(&x, 2);
    compare_all(&x);
    free_problem(&x);
  }
}

static int row_is_nan(const heads *x, int64_t t) {
  int all = 1;
  for (int64_t c = 0; c < x->dims; c++) all &= isnan(get(x, 0, 0, t, c));
  return all;
}

static int row_is_zero(const heads *x, int64_t t) {
  int all = 1;
  for (int64_t c = 0; c < x->dims; c++) all &= get(x, 0, 0, t, c) == 0.0f;
  return all;
}

static void expect(int holds, const char *what) {
  if (!holds) failures++, printf("%s\n", what);
}

/* NaN reaches what depends on it, and in q only that; so do infinite logits. A row that a mask leaves nothing is zero. */
static void check_nan(int p) {
  const int64_t where = 40;
  for (int64_t queries = 2; queries <= 90; queries += 88) {
    const lt_attention s = SHAPE(1, 1, queries, 90, 20, 20, 0.2f, 0, 0);
    for (int kind = 0; kind < 5; kind++) {
      problem x = make_problem(p, s, 0, 0);
      const int64_t row = queries == 90 ? where : 0, last = queries - 1;
      const float value = kind == 3 ? INFINITY : NAN;
      if (kind == 0) set(&x.q, 0, 0, row, 3, value);
      if (kind == 1 || kind == 3) set(&x.k, 0, 0, where, 3, value);
      if (kind == 2) set(&x.v, 0, 0, where, 3, value);
      if (kind == 4) {
        x.mask = malloc((size_t)(queries * 90) * sizeof(float));
        for (int64_t i = 0; i < queries * 90; i++) x.mask[i] = i / 90 == row ? -INFINITY : 0.0f;
        x.s.mask = x.mask;
        x.s.mask_query = 90;
        x.s.mask_key = 1;
      }
      run(&x, 1);
      if (kind == 0) {
        expect(row_is_nan(&x.out, row) && row_is_nan(&x.dq, row), "a query's row is not NaN");
        expect(row_is_nan(&x.dk, 0) && row_is_nan(&x.dv, 0), "the gradients of a key that it sees are not NaN");
      }
      if (kind == 4) {
        expect(row_is_zero(&x.out, row) && row_is_zero(&x.dq, row), "a query's row is not zero where the mask hides all");
        expect(!isnan(get(&x.dk, 0, 0, 0, 0)) && !isnan(get(&x.dv, 0, 0, 0, 0)), "hidden keys have gradients of NaN");
      }
      if (kind == 0 || kind == 4) expect(!isnan(get(&x.out, 0, 0, last, 0)), "another query's row is NaN");
      if (kind == 1) expect(row_is_nan(&x.out, last) && row_is_nan(&x.dq, last), "a row that sees NaN is not NaN");
      if (kind == 2) expect(isnan(get(&x.out, 0, 0, last, 3)) && row_is_nan(&x.dq, last), "NaN of a value is lost");
      if (kind == 1 && queries == 90) expect(!isnan(get(&x.out, 0, 0, 39, 0)), "a query sees a later NaN");
      free_problem(&x);
    }
  }
}

int main(int count, char **arguments) {
  static const struct {
    const char *name;
    void (*check)(int p);
  } checks[] = {{"random", check_random}, {"threads", check_threads}, {"slices", check_slices},
                {"edges", check_edges},   {"long", check_long},       {"empty", check_empty},
                {"nan", check_nan},       {"windows", check_windows}, {"mask", check_shared_mask}};
  enum { CHECKS = sizeof checks / sizeof *checks };
  if (count < 3) return printf("which kernel, which checks?\n"), 1;
  if (!lt_gemm_force(arguments[1])) return printf("%s: not here\n", arguments[1]), 0;
  for (int argument = 2; argument < count; argument++) {
    int i = 0;
    while (i < CHECKS && strcmp(checks[i].name, arguments[argument]) != 0) i++;
    if (i == CHECKS) return printf("no such check\n"), 1;
    for (int p = LT_FLOAT32; p <= LT_BFLOAT16; p++) checks[i].check(p);
  }
  return failures > 0;
}

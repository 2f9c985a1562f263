/* attentionCheck.h: random cases of attention and their answers by plain loops in doubles. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "luthier.h"
#include "share.h"

static uint32_t drawn_so_far = 1;
static uint32_t drawn(void) { return lt_mix(drawn_so_far++ * 2654435761u); }
static int64_t up_to(int64_t n) { return 1 + drawn() % (uint32_t)n; }
static float normal(void) { /* nearly */
  float sum = 0;
  for (int i = 0; i < 4; i++) sum += (float)(int32_t)drawn() * 0x1p-31f;
  return sum * 0.87f;
}

/* Heads [batch, heads, time, dims] in memory of exactly their size, so that sanitizers see what reads beyond it. */
typedef struct {
  lt_heads at;
  void *memory;
  int64_t batch, heads, time, dims, size;
} heads;

static int64_t bytes_of(int32_t type) { return type == LT_BFLOAT16 ? 2 : 4; }

static float get(const heads *x, int64_t b, int64_t h, int64_t t, int64_t c) {
  const int64_t i = b * x->at.batch + h * x->at.head + t * x->at.time + c;
  return x->at.type == LT_BFLOAT16 ? lt_from_bf16(((bf16 *)x->memory)[i]) : ((float *)x->memory)[i];
}

static void set(heads *x, int64_t b, int64_t h, int64_t t, int64_t c, float value) {
  const int64_t i = b * x->at.batch + h * x->at.head + t * x->at.time + c;
  if (x->at.type == LT_BFLOAT16)
    ((bf16 *)x->memory)[i] = lt_to_bf16(value);
  else
    ((float *)x->memory)[i] = value;
}

/* Batch, time and head in a random order, with gaps; shared: one head for all. */
static heads make_heads(int32_t type, int64_t batch, int64_t count, int64_t time, int64_t dims, int shared) {
  heads x = {{.type = type}, NULL, batch, count, time, dims, 0};
  const int64_t gap = drawn() % 3 ? 0 : drawn() % 7, stored = shared ? 1 : count;
  const int64_t row = dims + gap;
  if (drawn() % 2)
    x.at.head = row, x.at.time = row * stored, x.at.batch = row * stored * time;
  else
    x.at.time = row, x.at.head = row * time, x.at.batch = row * stored * time;
  if (shared) x.at.head = 0;
  const int64_t last = (batch - 1) * x.at.batch + (shared ? 0 : (count - 1) * x.at.head) + (time - 1) * x.at.time;
  x.size = time == 0 ? 0 : last + dims;
  x.memory = malloc((size_t)(x.size * bytes_of(type)));
  memset(x.memory, 0xff, (size_t)(x.size * bytes_of(type))); /* NaN */
  x.at.data = x.memory;
  return x;
}

static void fill(heads *x, float size) {
  for (int64_t b = 0; b < x->batch; b++)
    for (int64_t h = 0; h < (x->at.head == 0 ? 1 : x->heads); h++)
      for (int64_t t = 0; t < x->time; t++)
        for (int64_t c = 0; c < x->dims; c++) set(x, b, h, t, c, normal() * size);
}

/* A case: shape, operands, results. */
typedef struct {
  lt_attention s;
  int p;
  heads q, k, v, out, dout, dq, dk, dv;
  float *mask, *lse;
  float *dmask; /* of the mask's shape, which has so many elements */
  int64_t mask_size;
  float sinks[4], dsinks[4]; /* of the heads */
  int32_t *segments[2]; /* of queries and of keys */
  int32_t *counts[2];   /* prefixes, and how many keys are valid */
  int32_t drop_key[3];
} problem;

/* The answers and how far off rounding may be from each. */
typedef struct {
  double *out, *out_bound, *lse, *dq, *dq_bound, *dk, *dk_bound, *dv, *dv_bound, *dmask, *dmask_bound, *dsinks, *dsinks_bound;
} answer;

static double operand(const problem *x, const heads *of, int64_t b, int64_t h, int64_t t, int64_t c) {
  const float value = get(of, b, h, t, c);
  return x->p == LT_BFLOAT16 ? lt_from_bf16(lt_to_bf16(value)) : value;
}

static double *zeros(int64_t count) { return calloc((size_t)(count > 0 ? count : 1), sizeof(double)); }

static int64_t place(const heads *x, int64_t b, int64_t h, int64_t t) {
  const int64_t count = x->at.head == 0 ? 1 : x->heads;
  return ((b * count + (x->at.head == 0 ? 0 : h)) * x->time + t) * x->dims;
}

static int is_seen(const lt_attention *s, int64_t b, int64_t t, int64_t j) {
  const int64_t visible = s->visible == NULL ? s->keys : s->visible[b * s->visible_batch];
  const int64_t keys = visible < 0 ? 0 : visible > s->keys ? s->keys : visible, distance = j - (t + keys - s->queries);
  const int leads = s->prefix != NULL && j < s->prefix[b * s->prefix_batch];
  if (j >= keys || -distance > s->before || distance > (leads ? s->prefix_after : s->after)) return 0;
  if (s->query_segments == NULL) return 1;
  return s->query_segments[b * s->query_segments_batch + t] == s->key_segments[b * s->key_segments_batch + j];
}

/* What a weight is multiplied by: 1 / keep, or 0 where it is dropped. */
static double kept(const lt_attention *s, int64_t b, int64_t h, int64_t t, int64_t j) {
  if (s->keep == 0) return 1;
  uint32_t word = (uint32_t)(((b * s->heads + h) * s->queries + t) * s->drop_row + j) + (uint32_t)s->drop_key[0];
  for (int round = 0; round < 2; round++) {
    word ^= word >> 16;
    word *= 0x7feb352d;
    word ^= word >> 15;
    word *= 0x846ca68b;
    word ^= word >> 16;
    if (round == 0) word ^= (uint32_t)s->drop_key[s->drop_stride];
  }
  return (word >> 8) * 0x1p-24 < s->keep ? 1.0 / s->keep : 0;
}

/* One query: adds to all answers. p and slope are scratch. */
static void solve_query(const problem *x, const answer *y, int64_t b, int64_t h, int64_t t, double *p, double *slope) {
  const lt_attention *s = &x->s;
  const int64_t keys = s->keys, dims = s->dims, wide = s->value_dims;
  double most = -INFINITY, total = 0, delta = 0, delta_size = 0;
  for (int64_t j = 0; j < keys; j++) {
    double sum = 0;
    p[j] = -INFINITY;
    slope[j] = 0;
    if (!is_seen(s, b, t, j)) continue;
    for (int64_t c = 0; c < dims; c++) sum += operand(x, &x->q, b, h, t, c) * operand(x, &x->k, b, h, j, c);
    sum *= s->scale;
    slope[j] = s->scale;
    if (s->logit_cap != 0) {
      const double squashed = tanh(sum / s->logit_cap);
      slope[j] *= 1 - squashed * squashed;
      sum = s->logit_cap * squashed;
    }
    if (x->mask) /* a float: beside -1e9 all logits are the same */
      sum = (float)sum + x->mask[b * s->mask_batch + h * s->mask_head + t * s->mask_query + j * s->mask_key];
    p[j] = sum;
    if (sum > most) most = sum;
  }
  const double top = s->sinks != NULL && s->sinks[h] > most ? s->sinks[h] : most;
  for (int64_t j = 0; j < keys; j++) total += p[j] = most == -INFINITY ? 0 : exp(p[j] - top);
  const double sink = s->sinks == NULL || most == -INFINITY ? 0 : exp(s->sinks[h] - top);
  total += sink;
  for (int64_t j = 0; j < keys && total > 0; j++) p[j] /= total;
  y->lse[(b * s->heads + h) * s->queries + t] = total > 0 ? top + log(total) : -INFINITY;
  double *out = y->out + place(&x->out, b, h, t), *out_bound = y->out_bound + place(&x->out, b, h, t);
  for (int64_t j = 0; j < keys; j++) {
    for (int64_t c = 0; c < wide; c++) {
      const double term = p[j] * kept(s, b, h, t, j) * operand(x, &x->v, b, h, j, c);
      out[c] += term;
      out_bound[c] += fabs(term);
    }
  }
  for (int64_t c = 0; c < wide; c++) {
    delta += out[c] * get(&x->dout, b, h, t, c);
    delta_size += out_bound[c] * fabs(get(&x->dout, b, h, t, c)); /* out is as far off as its terms, even where it is 0 */
  }
  if (sink > 0) {
    y->dsinks[h] -= sink / total * delta;
    y->dsinks_bound[h] += sink / total * delta_size;
  }
  for (int64_t j = 0; j < keys; j++) {
    double dp = 0, dp_size = 0;
    const double factor = kept(s, b, h, t, j);
    for (int64_t c = 0; c < wide; c++) {
      const double dout = operand(x, &x->dout, b, h, t, c), term = factor * dout * operand(x, &x->v, b, h, j, c);
      dp += term;
      dp_size += fabs(term);
      y->dv[place(&x->dv, b, h, j) + c] += p[j] * factor * dout;
      y->dv_bound[place(&x->dv, b, h, j) + c] += fabs(p[j] * factor * dout);
    }
    if (x->mask) {
      const int64_t at = b * s->mask_batch + h * s->mask_head + t * s->mask_query + j * s->mask_key;
      y->dmask[at] += p[j] * (dp - delta);
      y->dmask_bound[at] += p[j] * (dp_size + delta_size);
    }
    const double ds = p[j] * (dp - delta) * slope[j], size = p[j] * (dp_size + delta_size) * fabs(slope[j]);
    for (int64_t c = 0; c < dims; c++) {
      const double q = operand(x, &x->q, b, h, t, c), k = operand(x, &x->k, b, h, j, c);
      y->dq[place(&x->dq, b, h, t) + c] += ds * k;
      y->dq_bound[place(&x->dq, b, h, t) + c] += fabs(size * k);
      y->dk[place(&x->dk, b, h, j) + c] += ds * q;
      y->dk_bound[place(&x->dk, b, h, j) + c] += fabs(size * q);
    }
  }
}

static answer solve(const problem *x) {
  const lt_attention *s = &x->s;
  const int64_t items = s->batch * s->heads, n = items * s->queries, m = items * s->keys;
  const answer y = {zeros(n * s->value_dims), zeros(n * s->value_dims), zeros(n), zeros(n * s->dims), zeros(n * s->dims),
                    zeros(m * s->dims), zeros(m * s->dims), zeros(m * s->value_dims), zeros(m * s->value_dims),
                    zeros(x->mask_size), zeros(x->mask_size), zeros(s->heads), zeros(s->heads)};
  double *p = zeros(s->keys), *slope = zeros(s->keys);
  for (int64_t b = 0; b < s->batch; b++)
    for (int64_t h = 0; h < s->heads; h++)
      for (int64_t t = 0; t < s->queries; t++) solve_query(x, &y, b, h, t, p, slope);
  free(p);
  free(slope);
  return y;
}

static void free_answer(answer y) {
  double *all[] = {y.out, y.out_bound, y.lse, y.dq, y.dq_bound, y.dk, y.dk_bound, y.dv, y.dv_bound, y.dmask, y.dmask_bound,
                   y.dsinks, y.dsinks_bound};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static void free_problem(problem *x) {
  heads *all[] = {&x->q, &x->k, &x->v, &x->out, &x->dout, &x->dq, &x->dk, &x->dv};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]->memory);
  free(x->mask);
  free(x->dmask);
  free(x->lse);
  for (int side = 0; side < 2; side++) free(x->segments[side]), free(x->counts[side]);
}

typedef struct {
  const problem *x;
  int pass;
  void *scratch[8]; /* of each thread */
} job;

static void run_share(void *argument, int thread, int threads) {
  const job *j = argument;
  const problem *x = j->x;
  void *const scratch = j->scratch[thread];
  /* Late ones show whether others depend on when they come. */
  if (thread % 2) usleep(50);
  if (j->pass == 2)
    lt_attention_mask_gradient(x->p, &x->s, x->q.at, x->k.at, x->v.at, x->out.at, x->dout.at, x->lse,
                               (lt_mask_gradient){x->dmask, x->s.mask_batch, x->s.mask_head, x->s.mask_query, x->s.mask_key},
                               scratch, thread, threads);
  else if (j->pass == 1)
    lt_attention_backward(x->p, &x->s, x->q.at, x->k.at, x->v.at, x->out.at, x->dout.at, x->lse, x->dq.at, x->dk.at,
                          x->dv.at, scratch, thread, threads);
  else
    lt_attention_forward(x->p, &x->s, x->q.at, x->k.at, x->v.at, x->out.at, x->lse, scratch, thread, threads);
}

/* Runs all passes by up to 8 threads, each in scratch that begins as NaN. */
static void run(const problem *x, int threads) {
  const lt_attention *s = &x->s;
  if (x->dmask != NULL) memset(x->dmask, 0, (size_t)x->mask_size * sizeof(float));
  for (int pass = 0; pass < (x->dmask == NULL ? 2 : 3); pass++) {
    job j = {x, pass, {NULL}};
    const int64_t bytes = lt_attention_scratch_bytes(x->p, s, pass > 0);
    for (int thread = 0; thread < threads; thread++) {
      j.scratch[thread] = aligned_alloc(64, (size_t)(bytes + 63) / 64 * 64 + 64);
      memset(j.scratch[thread], 0xff, (size_t)bytes);
    }
    lt_team_run(threads, run_share, &j);
    for (int thread = 0; thread < threads; thread++) free(j.scratch[thread]);
  }
  for (int thread = 0; s->sinks != NULL && thread < threads; thread++)
    lt_attention_sink_gradient(s, x->out.at, x->dout.at, x->lse, (float *)x->dsinks, 1, thread, threads);
}

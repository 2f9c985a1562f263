/* Promises of the team of threads, each checked as often as the second argument says; exits with 0 or a line. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "luthier.h"

enum { MOST = 8, ROUNDS = 50 };

#define CHECK(holds)                                          \
  do {                                                        \
    if (!(holds)) {                                           \
      fprintf(stderr, "line %d: %s\n", __LINE__, #holds);     \
      exit(1);                                                \
    }                                                         \
  } while (0)

/* Plain memory, no atomics: only barriers keep the threads apart. */
typedef struct {
  int expected;
  int seen[MOST];
  int64_t values[MOST];
  int64_t sum;
} shared;

/* Each thread writes its own, all read all, one writes the sum for all: three barriers a round. */
static void meet(void *argument, int thread, int threads) {
  shared *s = argument;
  CHECK(threads == s->expected);
  s->seen[thread]++;
  for (int round = 0; round < ROUNDS; round++) {
    s->values[thread] = round * 100 + thread;
    lt_barrier();
    int64_t sum = 0;
    for (int i = 0; i < threads; i++) sum += s->values[i];
    lt_barrier();
    if (thread == threads - 1) s->sum = sum;
    lt_barrier();
    CHECK(s->sum == (int64_t)threads * round * 100 + threads * (threads - 1) / 2);
  }
}

static void run_once(int threads) {
  shared s = {.expected = threads};
  lt_team_run(threads, meet, &s);
  for (int i = 0; i < MOST; i++) CHECK(s.seen[i] == (i < threads));
}

static int times;

static void *call_often(void *argument) {
  const int threads = *(int *)argument;
  for (int i = 0; i < times / 5; i++) run_once(1 + (threads + i) % 4);
  return NULL;
}

/* Callers wait for each other. */
static void check_callers(void) {
  pthread_t callers[3];
  int threads[3] = {1, 2, 4};
  for (int i = 0; i < 3; i++) CHECK(pthread_create(&callers[i], NULL, call_often, &threads[i]) == 0);
  for (int i = 0; i < 3; i++) pthread_join(callers[i], NULL);
}

/* A child has the calling thread alone, and starts a team of its own. */
static void check_fork(void) {
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    for (int i = 0; i < 20; i++) run_once(3);
    _exit(0);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  run_once(2);
}

static void idle(int64_t milliseconds) {
  const struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
  nanosleep(&time, NULL);
}

static double cpu_seconds(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec + 1e-6 * (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void nap(void *argument, int thread, int threads) {
  (void)argument;
  (void)threads;
  if (thread == 0) idle(300);
}

/* Whoever waits long sleeps: between runs, and inside of one. */
static void check_sleep(void) {
  run_once(4);
  const double before = cpu_seconds();
  idle(300);
  lt_team_run(4, nap, NULL);
  lt_team_run(2, nap, NULL);
  CHECK(cpu_seconds() - before < 0.2);
}

/* Runs far apart and close together, so that threads are met awake, asleep and on their way. */
static void check_pauses(void) {
  for (int i = 0; i < times; i++) {
    run_once(2 + i % 2);
    const struct timespec time = {0, i * 150000L / times};
    if (i % 3) nanosleep(&time, NULL);
  }
}

int main(int count, char **arguments) {
  CHECK(count == 3);
  times = atoi(arguments[2]);
  CHECK(times > 0);
  const char *what = arguments[1];
  if (strcmp(what, "threads") == 0) {
    for (int i = 0; i < times; i++) run_once(1 + i % 4);
    for (int threads = MOST; threads >= 1; threads--) run_once(threads);
    CHECK(lt_team_reserve(4) == 4);
    CHECK(lt_team_reserve(1) == 1);
    CHECK(lt_team_reserve(100000) == 256);
  } else if (strcmp(what, "callers") == 0) {
    check_callers();
  } else if (strcmp(what, "fork") == 0) {
    run_once(4);
    check_fork();
  } else if (strcmp(what, "sleep") == 0) {
    check_sleep();
  } else {
    check_pauses();
  }
  return 0;
}

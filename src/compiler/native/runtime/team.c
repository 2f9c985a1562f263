/* team.c: the process's thread team, and its barrier. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "luthier.h"

#if defined(__linux__) && !defined(LT_NO_FUTEX)
#define LT_FUTEX
#include <linux/futex.h>
#include <sys/syscall.h>
#endif

enum {
  MAX_THREADS = 256,
  SPIN_INSIDE = 1000000, /* nanoseconds at a barrier: within a run, the machine is ours */
  SPIN_BETWEEN = 50000,  /* minimum between runs: about the cost of waking a thread */
  SPIN_MOST = 500000,    /* maximum between runs, where they follow each other too fast for sleeping */
  PAUSES = 32,           /* between clock reads */
  STACK_BYTES = 8 << 20,
};

/* ---- One word that threads wait on --------------------------------------------------------------------------- */

typedef struct {
  alignas(64) _Atomic uint32_t value;
  _Atomic uint32_t sleepers;
#ifndef LT_FUTEX
  pthread_mutex_t mutex;
  pthread_cond_t changed;
#endif
} word;

static void word_init(word *w) {
  atomic_store(&w->value, 0);
  atomic_store(&w->sleepers, 0);
#ifndef LT_FUTEX
  pthread_mutex_init(&w->mutex, NULL);
  pthread_cond_init(&w->changed, NULL);
#endif
}

/* A sleeper registers itself before it reads the value for the last time, and a waker changes the value before it
   looks for sleepers. Both sequences are sequentially consistent: one of the two sees the other. */
static void word_set(word *w, uint32_t value) {
  atomic_store(&w->value, value);
  if (atomic_load(&w->sleepers) == 0) return;
#ifdef LT_FUTEX
  syscall(SYS_futex, &w->value, FUTEX_WAKE_PRIVATE, MAX_THREADS, NULL, NULL, 0);
#else
  pthread_mutex_lock(&w->mutex);
  pthread_cond_broadcast(&w->changed);
  pthread_mutex_unlock(&w->mutex);
#endif
}

static void word_sleep(word *w, uint32_t old) {
  atomic_fetch_add(&w->sleepers, 1);
#ifdef LT_FUTEX
  /* The kernel re-checks the value and returns at once if it has changed. */
  while (atomic_load(&w->value) == old) syscall(SYS_futex, &w->value, FUTEX_WAIT_PRIVATE, old, NULL, NULL, 0);
#else
  pthread_mutex_lock(&w->mutex);
  while (atomic_load(&w->value) == old) pthread_cond_wait(&w->changed, &w->mutex);
  pthread_mutex_unlock(&w->mutex);
#endif
  atomic_fetch_sub(&w->sleepers, 1);
}

static inline void pause_cpu(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb");
#endif
}

static int64_t nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Returns once the value is no longer `old`. Where threads outnumber cores, spinning would block the very thread
   that is waited for. */
static void word_await(word *w, uint32_t old, int64_t spin) {
  if (atomic_load_explicit(&w->value, memory_order_acquire) != old) return;
  if (spin > 0) {
    const int64_t begin = nanoseconds();
    for (int64_t now = begin; now < begin + spin; now = nanoseconds()) {
      for (int i = 0; i < PAUSES; i++) {
        pause_cpu();
        if (atomic_load_explicit(&w->value, memory_order_acquire) != old) return;
      }
      /* On a shared machine, the thread that is waited for may need this core. */
      if (now > begin + SPIN_BETWEEN) sched_yield();
    }
  }
  word_sleep(w, old);
}

/* ---- The team ------------------------------------------------------------------------------------------------ */

/* One run at a time: `mutex` is held throughout. A run's fields are written before the threads are started, and read
   by its participants. */
static struct {
  pthread_mutex_t mutex;
  int members; /* number of threads, including the caller */
  int cores;
  int threads; /* of this run */
  int spin;
  void (*fn)(void *arg, int thread, int threads);
  void *arg;
  alignas(64) _Atomic int arrived;
  word meeting;            /* counts the barriers */
  word start[MAX_THREADS]; /* counts the runs of each thread */
  /* Of each thread's share of the tasks: the list's number, and below it how many of its tasks are taken. */
  struct {
    alignas(64) _Atomic uint64_t taken;
    uint32_t lists; /* that this thread has begun in this run */
  } shares[MAX_THREADS];
} team = {.mutex = PTHREAD_MUTEX_INITIALIZER, .members = 1};

/* Whether the calling thread was the last to arrive; it releases the others. Afterwards the run may be over and its
   fields in use by another. */
static int arrive(void) {
  const int threads = team.threads;
  const uint32_t meeting = atomic_load_explicit(&team.meeting.value, memory_order_relaxed);
  if (atomic_fetch_add_explicit(&team.arrived, 1, memory_order_acq_rel) + 1 < threads) return 0;
  atomic_store_explicit(&team.arrived, 0, memory_order_relaxed);
  word_set(&team.meeting, meeting + 1);
  return 1;
}

/* Whether the calling thread runs outside of the team. */
static _Thread_local int alone;

void lt_barrier(void) {
  if (alone || team.threads == 1) return;
  const uint32_t meeting = atomic_load_explicit(&team.meeting.value, memory_order_relaxed);
  const int64_t spin = team.spin ? SPIN_INSIDE : 0;
  if (!arrive()) word_await(&team.meeting, meeting, spin);
}

/* ---- Tasks --------------------------------------------------------------------------------------------------- */

lt_tasks lt_list_tasks(int64_t count, int thread, int threads) {
  const uint32_t list = threads > 1 ? ++team.shares[thread].lists : 0;
  return (lt_tasks){count, list, thread, threads, thread};
}

int64_t lt_next_task(lt_tasks *tasks) {
  const int threads = tasks->threads;
  if (threads == 1) return (int64_t)tasks->list < tasks->count ? (int64_t)tasks->list++ : -1;
  while (tasks->from >= 0) {
    const int64_t first = tasks->count * tasks->from / threads;
    const uint32_t size = (uint32_t)(tasks->count * (tasks->from + 1) / threads - first);
    _Atomic uint64_t *const taken = &team.shares[tasks->from].taken;
    uint64_t known = atomic_load_explicit(taken, memory_order_relaxed);
    for (;;) {
      const uint32_t list = (uint32_t)(known >> 32), ahead = list - tasks->list;
      /* A share of an earlier list has no tasks left, or its thread would not have let this one go on; one of a later list
         has none left of this. */
      const uint32_t next = ahead == 0 ? (uint32_t)known : ahead > UINT32_MAX / 2 ? 0 : size;
      if (next >= size) break;
      if (atomic_compare_exchange_weak_explicit(taken, &known, (uint64_t)tasks->list << 32 | (next + 1),
                                                memory_order_relaxed, memory_order_relaxed))
        return first + next;
    }
    tasks->from = (tasks->from + 1) % threads;
    if (tasks->from == tasks->thread) tasks->from = -1;
  }
  return -1;
}

/* ---- Runs ---------------------------------------------------------------------------------------------------- */

static void *work(void *self) {
  const int thread = (int)(intptr_t)self;
  word *const start = &team.start[thread];
  int64_t spin = 0;
  for (uint32_t run = 0;; run++) {
    const int64_t idle = nanoseconds();
    word_await(start, run, spin);
    /* Assumes that the next run will come after the same delay. */
    const int64_t next = 2 * (nanoseconds() - idle);
    spin = !team.spin ? 0 : next > SPIN_MOST || next < SPIN_BETWEEN ? SPIN_BETWEEN : next;
    team.fn(team.arg, thread, team.threads);
    arrive();
  }
  return NULL;
}

/* A forked child has only this thread: it starts with a team of its own. */
static void after_fork(void) {
  pthread_mutex_init(&team.mutex, NULL);
  team.members = 1;
}

static int count_cores(void) {
#ifdef __linux__
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#endif
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  return cores < 1 ? 1 : (int)cores;
}

static void prepare_team(void) {
  /* Threads sleep in this library's code until the process ends, so it must never be unloaded. */
  Dl_info library;
  if (dladdr((void *)&team, &library) != 0) dlopen(library.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
  pthread_atfork(NULL, NULL, after_fork);
  team.cores = count_cores();
}

int lt_start_thread(pthread_t *id, void *(*fn)(void *), void *arg) {
  pthread_attr_t attributes;
  sigset_t all, before;
  if (pthread_attr_init(&attributes) != 0) return 0;
  pthread_attr_setstacksize(&attributes, STACK_BYTES);
  /* Signals are for the process's own threads, which handlers may rely on: new ones inherit the mask. */
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int failed = pthread_create(id, &attributes, fn, arg);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
#ifdef __linux__
  if (!failed) pthread_setname_np(*id, "luthier");
#endif
  return !failed;
}

static int start_member(int thread) {
  pthread_t id;
  word_init(&team.start[thread]);
  const int started = lt_start_thread(&id, work, (void *)(intptr_t)thread);
  if (started) pthread_detach(id);
  return started;
}

/* Grows the team to `threads`, as far as the system allows; returns how many may run. Requires the mutex. */
static int grow_team(int threads) {
  static int prepared = 0;
  if (!prepared) prepare_team();
  prepared = 1;
  if (threads > MAX_THREADS) threads = MAX_THREADS;
  if (team.members >= threads) return threads < 1 ? 1 : threads;
  if (team.members == 1) {
    word_init(&team.meeting);
    atomic_store(&team.arrived, 0);
  }
  while (team.members < threads && start_member(team.members)) team.members++;
  return team.members < threads ? team.members : threads;
}

int lt_team_reserve(int threads) {
  pthread_mutex_lock(&team.mutex);
  const int granted = grow_team(threads);
  pthread_mutex_unlock(&team.mutex);
  return granted;
}

void lt_team_run(int threads, void (*fn)(void *arg, int thread, int threads), void *arg) {
  pthread_mutex_lock(&team.mutex);
  team.threads = grow_team(threads);
  team.spin = team.threads <= team.cores;
  team.fn = fn;
  team.arg = arg;
  for (int i = 0; i < team.threads; i++) {
    team.shares[i].lists = 0;
    atomic_store_explicit(&team.shares[i].taken, 0, memory_order_relaxed);
  }
  for (int i = 1; i < team.threads; i++)
    word_set(&team.start[i], atomic_load_explicit(&team.start[i].value, memory_order_relaxed) + 1);
  fn(arg, 0, team.threads);
  lt_barrier();
  pthread_mutex_unlock(&team.mutex);
}

void lt_run_alone(void (*fn)(void *arg, int thread, int threads), void *arg) {
  alone = 1;
  fn(arg, 0, 1);
  alone = 0;
}

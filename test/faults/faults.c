/*
 * Preloaded: makes the n-th call of some kinds on files under a directory fail, write half, or kill the process.
 * FAULT_DIR: the directory. FAULT_PART: what the path must have in it, if given. FAULT_CALLS: kinds, such as "write,fsync". FAULT_NTH: which call, from 1; 0: none.
 * FAULT_TIMES: how many calls in a row. FAULT_ERRNO: a number; FAULT_HOW: "errno", "short" or "kill".
 * FAULT_LOG: a file outside of the directory, to which every such call is written: "kind path".
 * FAULT_TRACE: another one, to which all calls on files under the directory are written as they begin.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static atomic_int seen;

static int number(const char *name) {
  const char *text = getenv(name);
  return text == NULL ? 0 : atoi(text);
}

/* "kind path", or of a rename "kind path<tab>former path". */
static void note(const char *variable, const char *kind, const char *path, const char *from) {
  const char *log = getenv(variable);
  if (log == NULL) return;
  char line[9000];
  int length = snprintf(line, sizeof line, "%s %s%s%s\n", kind, path, from ? "\t" : "", from ? from : "");
  int file = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return;
  syscall(SYS_write, file, line, length);
  syscall(SYS_close, file);
}

static int asked(const char *kind) {
  const char *calls = getenv("FAULT_CALLS");
  if (calls == NULL) return 1;
  size_t length = strlen(kind);
  for (const char *at = calls; (at = strstr(at, kind)) != NULL; at += length)
    if ((at == calls || at[-1] == ',') && (at[length] == ',' || at[length] == 0)) return 1;
  return 0;
}

/* 1 where the call must fail, with errno set; 2 where it must do half of its work. */
static int fails_from(const char *kind, const char *path, const char *from) {
  const char *directory = getenv("FAULT_DIR");
  if (directory == NULL || strncmp(path, directory, strlen(directory)) != 0) return 0;
  note("FAULT_TRACE", kind, path, from);
  if (!asked(kind)) return 0;
  const char *part = getenv("FAULT_PART");
  if (part != NULL && strstr(path, part) == NULL) return 0;
  note("FAULT_LOG", kind, path, NULL);
  int nth = number("FAULT_NTH"), times = number("FAULT_TIMES");
  int at = atomic_fetch_add(&seen, 1) + 1;
  if (nth == 0 || at < nth || at >= nth + (times > 0 ? times : 1)) return 0;
  const char *how = getenv("FAULT_HOW");
  if (how != NULL && strcmp(how, "kill") == 0) raise(SIGKILL);
  if (how != NULL && strcmp(how, "short") == 0) return 2;
  errno = number("FAULT_ERRNO");
  return 1;
}

static int fails(const char *kind, const char *path) { return fails_from(kind, path, NULL); }

static int fails_at(const char *kind, int file) {
  char link[64], path[4200];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return fails(kind, path);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

#define OPEN(name)                                                       \
  int name(const char *path, int flags, ...) {                           \
    va_list rest;                                                        \
    va_start(rest, flags);                                               \
    mode_t mode = va_arg(rest, mode_t);                                  \
    va_end(rest);                                                        \
    if (fails((flags & O_ACCMODE) == O_RDONLY ? "open" : "create", path)) return -1; \
    return REAL(name)(path, flags, mode);                                \
  }
OPEN(open)
OPEN(open64)

ssize_t write(int file, const void *bytes, size_t count) {
  int fault = file > 2 ? fails_at("write", file) : 0;
  if (fault == 1) return -1;
  return REAL(write)(file, bytes, fault == 2 ? (count + 1) / 2 : count);
}
ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t at) {
  int fault = fails_at("write", file);
  if (fault == 1) return -1;
  return REAL(pwrite64)(file, bytes, fault == 2 ? (count + 1) / 2 : count, at);
}
ssize_t read(int file, void *bytes, size_t count) {
  int fault = file > 2 ? fails_at("read", file) : 0;
  if (fault == 1) return -1;
  return REAL(read)(file, bytes, fault == 2 ? (count + 1) / 2 : count);
}
ssize_t pread64(int file, void *bytes, size_t count, off64_t at) {
  int fault = fails_at("read", file);
  if (fault == 1) return -1;
  return REAL(pread64)(file, bytes, fault == 2 ? (count + 1) / 2 : count, at);
}
int fsync(int file) { return fails_at("fsync", file) ? -1 : REAL(fsync)(file); }
int fdatasync(int file) { return fails_at("fsync", file) ? -1 : REAL(fdatasync)(file); }
int ftruncate64(int file, off64_t length) {
  return fails_at("ftruncate", file) ? -1 : REAL(ftruncate64)(file, length);
}
int rename(const char *from, const char *to) {
  return fails_from("rename", to, from) ? -1 : REAL(rename)(from, to);
}
int mkdir(const char *path, mode_t mode) { return fails("mkdir", path) ? -1 : REAL(mkdir)(path, mode); }
int unlink(const char *path) { return fails("unlink", path) ? -1 : REAL(unlink)(path); }
int rmdir(const char *path) { return fails("rmdir", path) ? -1 : REAL(rmdir)(path); }

/* Counts the file operations of this process below a folder, and kills or fails one of them.
 *
 * gcc -shared -fPIC -O1 -o shim.so fault_shim.c -ldl, then LD_PRELOAD=shim.so. Nothing happens
 * until fault_arm(folder, number, kind) is called, by ctypes: from then on every operation that
 * changes something below the folder is counted, and the one with the number meets the fault:
 *   'k'  SIGKILL before it
 *   'i'  it alone fails with EIO
 *   's'  it and all after it that need space fail with ENOSPC, as on a full disk
 * With 'p' the process stops before every operation, whatever the number, until SIGCONT.
 * fault_count() is the number of operations so far.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static char folder[PATH_MAX];
static long at = 0, count = 0;
static char kind = 0;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void fault_arm(const char *path, long number, char what) {
  strncpy(folder, path, sizeof folder - 1);
  at = number;
  kind = what;
  count = 0;
}

long fault_count(void) { return count; }

static int below(const char *path) {
  size_t length = strlen(folder);
  return length && !strncmp(path, folder, length) && (path[length] == '/' || !path[length]);
}

static int path_below(int directory, const char *path) {
  char whole[2 * PATH_MAX], link[64];
  if (!folder[0] || !path) return 0;
  if (path[0] == '/') return below(path);
  if (directory == AT_FDCWD) {
    if (!getcwd(whole, PATH_MAX)) return 0;
  } else {
    snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
    ssize_t length = readlink(link, whole, PATH_MAX - 1);
    if (length < 0) return 0;
    whole[length] = 0;
  }
  strcat(whole, "/");
  strncat(whole, path, PATH_MAX - 1);
  return below(whole);
}

static int handle_below(int handle) { return folder[0] && path_below(handle, ""); }

/* The next operation: 0 if it may go on, else -1 with errno. It needs space or not. */
static int next(int needs_space) {
  pthread_mutex_lock(&lock);
  long number = ++count;
  if (kind == 'p') raise(SIGSTOP); /* of this thread, so that it goes no further */
  pthread_mutex_unlock(&lock);
  if (number == at && kind == 'k') kill(getpid(), SIGKILL);
  if (number == at && kind == 'i') return errno = EIO, -1;
  if (at && number >= at && kind == 's' && needs_space) return errno = ENOSPC, -1;
  return 0;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define GUARD(is_below, needs_space, failed) \
  if ((is_below) && next(needs_space)) return failed

/* Opening: only for writing. */
static int writes(int flags) { return (flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT); }

static mode_t mode_of(int flags, va_list list) {
  return flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0;
}

#define OPEN(name)                                                                \
  int name(const char *path, int flags, ...) {                                    \
    va_list list;                                                                 \
    va_start(list, flags);                                                        \
    mode_t mode = mode_of(flags, list);                                           \
    va_end(list);                                                                 \
    GUARD(writes(flags) && path_below(AT_FDCWD, path), flags &O_CREAT, -1);       \
    return REAL(name)(path, flags, mode);                                         \
  }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                              \
  int name(int directory, const char *path, int flags, ...) {                     \
    va_list list;                                                                 \
    va_start(list, flags);                                                        \
    mode_t mode = mode_of(flags, list);                                           \
    va_end(list);                                                                 \
    GUARD(writes(flags) && path_below(directory, path), flags &O_CREAT, -1);      \
    return REAL(name)(directory, path, flags, mode);                              \
  }
OPENAT(openat)
OPENAT(openat64)

#define FOPEN(name)                                                               \
  FILE *name(const char *path, const char *mode) {                                \
    GUARD(strpbrk(mode, "wa+") && path_below(AT_FDCWD, path), 1, NULL);           \
    return REAL(name)(path, mode);                                                \
  }
FOPEN(fopen)
FOPEN(fopen64)

/* Writing, by handles and by streams, whose buffers the C library writes by itself. */
ssize_t write(int handle, const void *content, size_t size) {
  GUARD(handle_below(handle), 1, -1);
  return REAL(write)(handle, content, size);
}

ssize_t pwrite(int handle, const void *content, size_t size, off_t place) {
  GUARD(handle_below(handle), 1, -1);
  return REAL(pwrite)(handle, content, size, place);
}

ssize_t pwrite64(int handle, const void *content, size_t size, off64_t place) {
  GUARD(handle_below(handle), 1, -1);
  return REAL(pwrite64)(handle, content, size, place);
}

ssize_t writev(int handle, const struct iovec *parts, int number) {
  GUARD(handle_below(handle), 1, -1);
  return REAL(writev)(handle, parts, number);
}

ssize_t sendfile(int to, int from, off_t *place, size_t size) {
  GUARD(handle_below(to), 1, -1);
  return REAL(sendfile)(to, from, place, size);
}

ssize_t sendfile64(int to, int from, off64_t *place, size_t size) {
  GUARD(handle_below(to), 1, -1);
  return REAL(sendfile64)(to, from, place, size);
}

ssize_t copy_file_range(int from, off64_t *start, int to, off64_t *place, size_t size,
                        unsigned flags) {
  GUARD(handle_below(to), 1, -1);
  return REAL(copy_file_range)(from, start, to, place, size, flags);
}

size_t fwrite(const void *content, size_t size, size_t number, FILE *stream) {
  GUARD(handle_below(fileno(stream)), 1, 0);
  return REAL(fwrite)(content, size, number, stream);
}

static int written_below(FILE *stream) {
  return stream && __fwritable(stream) && handle_below(fileno(stream));
}

int fflush(FILE *stream) {
  GUARD(written_below(stream), 1, EOF);
  return REAL(fflush)(stream);
}

int fclose(FILE *stream) {
  int failed = written_below(stream) && next(1);
  int reason = errno;
  int closed = REAL(fclose)(stream);
  return failed ? (errno = reason, EOF) : closed;
}

int ftruncate(int handle, off_t size) {
  GUARD(handle_below(handle), 1, -1);
  return REAL(ftruncate)(handle, size);
}

int ftruncate64(int handle, off64_t size) {
  GUARD(handle_below(handle), 1, -1);
  return REAL(ftruncate64)(handle, size);
}

int fsync(int handle) {
  GUARD(handle_below(handle), 1, -1);
  return REAL(fsync)(handle);
}

int fdatasync(int handle) {
  GUARD(handle_below(handle), 1, -1);
  return REAL(fdatasync)(handle);
}

/* Names. A full disk can still remove, and rename within a folder. */
int rename(const char *from, const char *to) {
  GUARD(path_below(AT_FDCWD, to), 0, -1);
  return REAL(rename)(from, to);
}

int renameat(int from_folder, const char *from, int to_folder, const char *to) {
  GUARD(path_below(to_folder, to), 0, -1);
  return REAL(renameat)(from_folder, from, to_folder, to);
}

int unlink(const char *path) {
  GUARD(path_below(AT_FDCWD, path), 0, -1);
  return REAL(unlink)(path);
}

int unlinkat(int directory, const char *path, int flags) {
  GUARD(path_below(directory, path), 0, -1);
  return REAL(unlinkat)(directory, path, flags);
}

int remove(const char *path) {
  GUARD(path_below(AT_FDCWD, path), 0, -1);
  return REAL(remove)(path);
}

int rmdir(const char *path) {
  GUARD(path_below(AT_FDCWD, path), 0, -1);
  return REAL(rmdir)(path);
}

int mkdir(const char *path, mode_t mode) {
  GUARD(path_below(AT_FDCWD, path), 1, -1);
  return REAL(mkdir)(path, mode);
}

int mkdirat(int directory, const char *path, mode_t mode) {
  GUARD(path_below(directory, path), 1, -1);
  return REAL(mkdirat)(directory, path, mode);
}

int symlink(const char *target, const char *path) {
  GUARD(path_below(AT_FDCWD, path), 1, -1);
  return REAL(symlink)(target, path);
}

int link(const char *from, const char *to) {
  GUARD(path_below(AT_FDCWD, to), 1, -1);
  return REAL(link)(from, to);
}

/* Records what a process does to the regular files below the directory that FAULT_UNSYNCED_ROOT names, into the file that
   FAULT_UNSYNCED_LOG names. The test replays the record to what a loss of power would leave: only what was flushed.

   A record is a header and its data; `a` is the inode of a file. The order in the log is that of the operations.

     O a   open, which may have created the file   data: path
     W a b write, at offset b                      data: bytes
     T a b truncation or extension to b bytes
     S a   flush of a file
     D     flush of a directory                    data: path
     R     rename                                  data: path, zero byte, path
     L     hard link                               data: path, zero byte, path
     U     removal                                 data: path

   Programs that the process starts are not recorded. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

struct header {
    uint8_t kind;
    uint8_t unused[7];
    uint64_t a, b, length;
};

static char root[PATH_MAX];
static size_t root_length;
static int record_file = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static dev_t device;

__attribute__((constructor)) static void begin(void) {
    const char *directory = getenv("FAULT_UNSYNCED_ROOT"), *path = getenv("FAULT_UNSYNCED_LOG");
    struct stat status;
    /* What starts the program in question passes the environment on. */
    const char *const starters[] = {"sh", "bash", "dash", "env"};
    for (size_t index = 0; index < sizeof starters / sizeof *starters; index++)
        if (strcmp(program_invocation_short_name, starters[index]) == 0)
            return;
    if (!directory || !path || strlen(directory) + 2 > sizeof root || stat(directory, &status) != 0)
        return;
    device = status.st_dev;
    strcpy(root, directory);
    strcat(root, "/");
    root_length = strlen(root);
    record_file = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    unsetenv("LD_PRELOAD");
}

static int is_below(const char *path) {
    return record_file >= 0 && path && strncmp(path, root, root_length) == 0;
}

static void put(char kind, uint64_t a, uint64_t b, const void *data, size_t length) {
    struct header header = {.kind = (uint8_t)kind, .a = a, .b = b, .length = length};
    struct iovec parts[2] = {{&header, sizeof header}, {(void *)data, length}};
    size_t left = sizeof header + length;
    ssize_t written = syscall(SYS_writev, record_file, parts, 2);
    if (written != (ssize_t)left)
        abort();
}

static void put_pair(char kind, const char *from, const char *to) {
    char both[2 * PATH_MAX];
    size_t first = strlen(from) + 1, second = strlen(to);
    if (first + second > sizeof both)
        abort();
    memcpy(both, from, first);
    memcpy(both + first, to, second);
    put(kind, 0, 0, both, first + second);
}

/* The path of an open file; empty if it has none. */
static const char *path_of(int file, char *path, size_t size) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, path, size - 1);
    path[length > 0 ? length : 0] = 0;
    return path;
}

/* Whether a file is recorded: a regular one below the root. */
static int is_recorded(int file, struct stat *status) {
    char path[PATH_MAX];
    if (record_file < 0 || file == record_file || fstat(file, status) != 0 || !S_ISREG(status->st_mode) ||
        status->st_dev != device)
        return 0;
    return is_below(path_of(file, path, sizeof path));
}

#define SAVING_ERRNO(statement)                                                                                        \
    do {                                                                                                               \
        int saved = errno;                                                                                             \
        statement;                                                                                                     \
        errno = saved;                                                                                                 \
    } while (0)

static int opened(int directory, const char *path, int flags, mode_t mode) {
    int is_new_name = is_below(path) && (flags & (O_CREAT | O_TRUNC));
    if (is_new_name)
        pthread_mutex_lock(&lock);
    int file = (int)syscall(SYS_openat, directory, path, flags, mode);
    if (is_new_name) {
        struct stat status;
        if (file >= 0 && fstat(file, &status) == 0 && S_ISREG(status.st_mode))
            SAVING_ERRNO(put('O', status.st_ino, 0, path, strlen(path)); if (flags & O_TRUNC)
                             put('T', status.st_ino, 0, NULL, 0));
        pthread_mutex_unlock(&lock);
    }
    return file;
}

#define OPEN(name, parameters, directory)                                                                              \
    int name parameters {                                                                                              \
        mode_t mode = 0;                                                                                               \
        if (flags & (O_CREAT | O_TMPFILE)) {                                                                           \
            va_list more;                                                                                              \
            va_start(more, flags);                                                                                     \
            mode = va_arg(more, mode_t);                                                                               \
            va_end(more);                                                                                              \
        }                                                                                                              \
        return opened(directory, path, flags, mode);                                                                   \
    }

OPEN(open, (const char *path, int flags, ...), AT_FDCWD)
OPEN(open64, (const char *path, int flags, ...), AT_FDCWD)
OPEN(openat, (int at, const char *path, int flags, ...), at)
OPEN(openat64, (int at, const char *path, int flags, ...), at)

static ssize_t put_write(int file, const void *data, ssize_t written, off_t offset, const struct stat *status) {
    (void)file;
    if (written > 0)
        SAVING_ERRNO(put('W', status->st_ino, (uint64_t)offset, data, (size_t)written));
    return written;
}

ssize_t write(int file, const void *data, size_t length) {
    struct stat status;
    int saved = errno, recorded = is_recorded(file, &status);
    errno = saved;
    if (!recorded)
        return syscall(SYS_write, file, data, length);
    pthread_mutex_lock(&lock);
    ssize_t written = syscall(SYS_write, file, data, length);
    /* The position behind the bytes, also of a file that is opened for appending. */
    off_t end = written > 0 ? lseek(file, 0, SEEK_CUR) : 0;
    put_write(file, data, written, end - written, &status);
    pthread_mutex_unlock(&lock);
    return written;
}

ssize_t writev(int file, const struct iovec *parts, int count) {
    struct stat status;
    int saved = errno, recorded = is_recorded(file, &status);
    errno = saved;
    if (!recorded)
        return syscall(SYS_writev, file, parts, count);
    /* A short write is allowed. */
    for (int index = 0; index < count; index++)
        if (parts[index].iov_len > 0)
            return write(file, parts[index].iov_base, parts[index].iov_len);
    return 0;
}

static ssize_t write_at(int file, const void *data, size_t length, off_t offset) {
    struct stat status;
    int saved = errno, recorded = is_recorded(file, &status);
    errno = saved;
    if (!recorded)
        return syscall(SYS_pwrite64, file, data, length, offset);
    pthread_mutex_lock(&lock);
    ssize_t written = syscall(SYS_pwrite64, file, data, length, offset);
    put_write(file, data, written, offset, &status);
    pthread_mutex_unlock(&lock);
    return written;
}

ssize_t pwrite(int file, const void *data, size_t length, off_t offset) { return write_at(file, data, length, offset); }
ssize_t pwrite64(int file, const void *data, size_t length, off_t offset) { return write_at(file, data, length, offset); }

static int set_length(int file, off_t length) {
    struct stat status;
    int saved = errno, recorded = is_recorded(file, &status);
    errno = saved;
    if (!recorded)
        return (int)syscall(SYS_ftruncate, file, length);
    pthread_mutex_lock(&lock);
    int result = (int)syscall(SYS_ftruncate, file, length);
    if (result == 0)
        put('T', status.st_ino, (uint64_t)length, NULL, 0);
    pthread_mutex_unlock(&lock);
    return result;
}

int ftruncate(int file, off_t length) { return set_length(file, length); }
int ftruncate64(int file, off_t length) { return set_length(file, length); }

/* The flush itself is skipped: the record decides what is durable. */
static int flush(int file, long number) {
    struct stat status;
    char path[PATH_MAX];
    int saved = errno;
    if (record_file < 0 || fstat(file, &status) != 0 || status.st_dev != device ||
        !(S_ISREG(status.st_mode) || S_ISDIR(status.st_mode))) {
        errno = saved;
        return (int)syscall(number, file);
    }
    path_of(file, path, sizeof path - 1);
    if (S_ISDIR(status.st_mode))
        strcat(path, "/");
    if (!is_below(path)) {
        errno = saved;
        return (int)syscall(number, file);
    }
    pthread_mutex_lock(&lock);
    if (S_ISDIR(status.st_mode))
        put('D', 0, 0, path, strlen(path));
    else
        put('S', status.st_ino, 0, NULL, 0);
    pthread_mutex_unlock(&lock);
    errno = saved;
    return 0;
}

int fsync(int file) { return flush(file, SYS_fsync); }
int fdatasync(int file) { return flush(file, SYS_fdatasync); }

int rename(const char *from, const char *to) {
    if (!is_below(from) && !is_below(to))
        return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
    pthread_mutex_lock(&lock);
    int result = (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
    if (result == 0)
        put_pair('R', from, to);
    pthread_mutex_unlock(&lock);
    return result;
}

static int linked(int from_at, const char *from, int to_at, const char *to, int flags) {
    if (!is_below(from) && !is_below(to))
        return (int)syscall(SYS_linkat, from_at, from, to_at, to, flags);
    pthread_mutex_lock(&lock);
    int result = (int)syscall(SYS_linkat, from_at, from, to_at, to, flags);
    if (result == 0)
        put_pair('L', from, to);
    pthread_mutex_unlock(&lock);
    return result;
}

int link(const char *from, const char *to) { return linked(AT_FDCWD, from, AT_FDCWD, to, 0); }
int linkat(int from_at, const char *from, int to_at, const char *to, int flags) {
    return linked(from_at, from, to_at, to, flags);
}

static int removed(int at, const char *path, int flags) {
    if (!is_below(path) || (flags & AT_REMOVEDIR))
        return (int)syscall(SYS_unlinkat, at, path, flags);
    pthread_mutex_lock(&lock);
    int result = (int)syscall(SYS_unlinkat, at, path, flags);
    if (result == 0)
        put('U', 0, 0, path, strlen(path));
    pthread_mutex_unlock(&lock);
    return result;
}

int unlink(const char *path) { return removed(AT_FDCWD, path, 0); }
int unlinkat(int at, const char *path, int flags) { return removed(at, path, flags); }

/* `std::fs::copy` falls back to reads and writes. */
ssize_t copy_file_range(int from, off64_t *from_at, int to, off64_t *to_at, size_t length, unsigned flags) {
    struct stat status;
    int saved = errno;
    if (is_recorded(to, &status)) {
        errno = EXDEV;
        return -1;
    }
    errno = saved;
    return syscall(SYS_copy_file_range, from, from_at, to, to_at, length, flags);
}

ssize_t sendfile64(int to, int from, off64_t *offset, size_t count) {
    struct stat status;
    int saved = errno;
    if (is_recorded(to, &status)) {
        errno = EINVAL;
        return -1;
    }
    errno = saved;
    return syscall(SYS_sendfile, to, from, offset, count);
}

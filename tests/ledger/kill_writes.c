/* Preloaded into the harness: counts the writes and syncs of database files, and dies, fails or logs at a chosen one.
 *
 *     cc -shared -fPIC -O1 -o kill_writes.so kill_writes.c -ldl
 *
 * Modes: 0 count, 1 die before the operation, 2 die after it, 3 die halfway through a write, 4 no space from it on.
 * With a log, every write, sync, truncation, link and unlinking is appended to it, so that a loss of power can be
 * replayed. Of plain write calls only those to a ledger's witness count: others are the harness's own. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static int mode, at, count, log_fd = -1;

void shim_arm(int new_mode, int new_at) { mode = new_mode; at = new_at; count = 0; }
int shim_count(void) { return count; }

static void record(char kind, int64_t offset, int64_t size, const char *path, const void *data) {
    if (log_fd < 0) return;
    int64_t head[3] = {offset, size, (int64_t)strlen(path)};
    if (write(log_fd, &kind, 1) != 1 || write(log_fd, head, sizeof head) != sizeof head ||
        write(log_fd, path, head[2]) != head[2] || (data && write(log_fd, data, size) != size))
        _exit(97);
}

void shim_log(int fd) { log_fd = fd; }
void shim_mark(int number) { record('A', number, 0, "", NULL); }

static const char *name_of(int fd, char *room) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, room, PATH_MAX - 1);
    room[size < 0 ? 0 : size] = 0;
    return room;
}

static void die(void) { kill(getpid(), SIGKILL); for (;;) pause(); }

/* Whether the operation is to fail for want of space. What has no half dies before it. */
static int begin(int has_half) {
    count++;
    if (count == at && (mode == 1 || (mode == 3 && !has_half))) die();
    return mode == 4 && count >= at;
}
static void end(void) { if (mode == 2 && count == at) die(); }

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset) {
    static ssize_t (*real)(int, const void *, size_t, off64_t);
    char room[PATH_MAX];
    if (!real) real = dlsym(RTLD_NEXT, "pwrite64");
    if (begin(1)) { errno = ENOSPC; return -1; }
    if (mode == 3 && count == at) { real(fd, data, size / 2, offset); die(); }
    ssize_t done = real(fd, data, size, offset);
    if (done > 0) record('W', offset, done, name_of(fd, room), data);
    end();
    return done;
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t offset) { return pwrite64(fd, data, size, offset); }

ssize_t write(int fd, const void *data, size_t size) {
    static ssize_t (*real)(int, const void *, size_t);
    char room[PATH_MAX];
    if (!real) real = dlsym(RTLD_NEXT, "write");
    if (!strstr(name_of(fd, room), "/ledgers/")) return real(fd, data, size);
    off64_t offset = lseek64(fd, 0, SEEK_CUR);
    if (begin(1)) { errno = ENOSPC; return -1; }
    if (mode == 3 && count == at) { real(fd, data, size / 2); die(); }
    ssize_t done = real(fd, data, size);
    if (done > 0) record('W', offset, done, room, data);
    end();
    return done;
}

#define SYNC(name)                                                  \
    int name(int fd) {                                              \
        static int (*real)(int);                                    \
        char room[PATH_MAX];                                        \
        if (!real) real = dlsym(RTLD_NEXT, #name);                  \
        begin(0);                                                    \
        int result = real(fd);                                      \
        record('S', 0, 0, name_of(fd, room), NULL);                 \
        end();                                                      \
        return result;                                              \
    }
SYNC(fsync)
SYNC(fdatasync)

int ftruncate64(int fd, off64_t size) {
    static int (*real)(int, off64_t);
    char room[PATH_MAX];
    if (!real) real = dlsym(RTLD_NEXT, "ftruncate64");
    begin(0);
    int result = real(fd, size);
    record('T', size, 0, name_of(fd, room), NULL);
    end();
    return result;
}
int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }

int unlink(const char *path) {
    static int (*real)(const char *);
    if (!real) real = dlsym(RTLD_NEXT, "unlink");
    begin(0);
    int result = real(path);
    record('U', 0, 0, path, NULL);
    end();
    return result;
}

/* The old name and the new one, separated by a newline. */
int link(const char *from, const char *to) {
    static int (*real)(const char *, const char *);
    char names[2 * PATH_MAX];
    if (!real) real = dlsym(RTLD_NEXT, "link");
    begin(0);
    int result = real(from, to);
    snprintf(names, sizeof names, "%s\n%s", from, to);
    if (!result) record('L', 0, 0, names, NULL);
    end();
    return result;
}

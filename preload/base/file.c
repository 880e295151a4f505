/* file.c: stat, bounded reading and descriptor numbers. See file.h for the rules. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

int gb_file_stat(int fd, struct stat *out)
{
    return syscall(SYS_fstat, fd, out) == 0 ? 0 : -errno;
}

static long read_all(int fd, char *buf, size_t size)
{
    size_t used = 0;
    while (used < size) {
        ssize_t n = read(fd, buf + used, size - used);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0) {
            buf[used] = 0;
            return (long)used;
        }
        used += (size_t)n;
    }
    buf[size - 1] = 0;
    return -EFBIG;
}

long gb_file_read(const char *path, char *buf, size_t size)
{
    /* O_NONBLOCK: opening a FIFO that nobody writes to would wait for good. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -errno;
    struct stat st;
    long n = gb_file_stat(fd, &st);
    if (n == 0)
        n = S_ISREG(st.st_mode) ? read_all(fd, buf, size) : -EINVAL;
    close(fd);
    return n;
}

int gb_file_move_up(int fd)
{
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, 100);
    if (moved < 0 && fd >= 3)
        return fd;
    if (moved < 0)
        moved = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    int error = errno;
    close(fd);
    return moved >= 0 ? moved : -error;
}

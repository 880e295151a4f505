/* writer.c: appends whole lines to a file of ours. See writer.h for the rules. */
#include "record/writer.h"

#include "base/file.h"
#include "base/sigguard.h"

#include <errno.h>
#include <unistd.h>

void gb_writer_open(struct gb_writer *w, int fd)
{
    struct stat st;
    *w = (struct gb_writer){.fd = fd};
    int error = gb_file_stat(fd, &st);
    if (error) {
        w->fd = -1;
        w->error = -error;
        return;
    }
    w->device = st.st_dev;
    w->inode = st.st_ino;
}

static bool is_still_ours(const struct gb_writer *w)
{
    struct stat st;
    return gb_file_stat(w->fd, &st) == 0 && st.st_dev == w->device && st.st_ino == w->inode;
}

static int write_all(struct gb_writer *w, const char *line, size_t length)
{
    while (length) {
        ssize_t n = write(w->fd, line, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? errno : EIO;
        w->bytes += (uint64_t)n;
        line += n;
        length -= (size_t)n;
    }
    return 0;
}

bool gb_writer_line(struct gb_writer *w, const char *line, size_t length)
{
    if (w->fd < 0)
        return false;
    struct gb_sigguard guard;
    gb_sigguard_enter(&guard);
    if (!is_still_ours(w)) {
        w->error = EBADF;
        w->fd = -1; /* not ours to close */
    } else {
        w->error = write_all(w, line, length);
    }
    gb_sigguard_leave(&guard);
    if (w->error)
        gb_writer_close(w);
    return !w->error;
}

void gb_writer_close(struct gb_writer *w)
{
    if (w->fd >= 0 && is_still_ours(w))
        close(w->fd);
    w->fd = -1;
}

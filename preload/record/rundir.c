/* rundir.c: the directory of this run and its files. See rundir.h for the rules.
 *
 * All steps go through the descriptor of the parent (openat, mkdirat), so that what was checked is
 * what is used, whoever renames things meanwhile.
 */
#include "record/rundir.h"

#include "base/file.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SIBLINGS_MAX 99

/* -errno, with the reason as text unless errno says it all. */
static int fail(struct gb_rundir *out, int error, const char *why)
{
    snprintf(out->error, sizeof out->error, "%s", why ? why : gb_errno_text(error));
    return -error;
}

/* Below a home that is not ours (sudo keeps HOME) we would leave directories that lock its owner
 * out; a directory that everybody may write to with the sticky bit (/tmp) is nobody's home. */
static int check_parent(struct gb_rundir *out, int dir)
{
    struct stat st;
    int error = gb_file_stat(dir, &st);
    if (error)
        return fail(out, -error, NULL);
    if (st.st_uid != geteuid() && !(st.st_mode & S_ISVTX))
        return fail(out, EPERM, "the directory above belongs to another user; set GPUBOOST_OUT");
    return 0;
}

/* Opens the directory above the last component of path and makes what is missing on the way. */
static int open_parent(struct gb_rundir *out, bool own_only)
{
    const char *last = strrchr(out->path, '/');
    const char *at = out->path;
    int dir = open(*at == '/' ? "/" : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (dir >= 0 && last && at < last) {
        char name[256];
        size_t n = strcspn(at, "/");
        if (n >= sizeof name) {
            close(dir);
            return fail(out, ENAMETOOLONG, NULL);
        }
        memcpy(name, at, n);
        name[n] = 0;
        at += n + 1;
        if (n == 0)
            continue;
        int next = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (next < 0 && errno == ENOENT) {
            if (own_only && check_parent(out, dir) != 0) {
                close(dir);
                return -EPERM;
            }
            if (mkdirat(dir, name, 0700) == 0 || errno == EEXIST)
                next = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        }
        int error = errno;
        close(dir);
        errno = error;
        dir = next;
    }
    if (dir < 0)
        return fail(out, errno, NULL);
    if (own_only && check_parent(out, dir) != 0) {
        close(dir);
        return -EPERM;
    }
    return dir;
}

/* A directory that was there before, or that somebody put in place of ours, must be one that only
 * we can write to. */
static int check_dir(struct gb_rundir *out, int dir)
{
    struct stat st;
    int error = gb_file_stat(dir, &st);
    if (error)
        return fail(out, -error, NULL);
    if (st.st_uid != geteuid())
        return fail(out, EPERM, "the directory belongs to another user");
    if (st.st_mode & S_IWOTH)
        return fail(out, EPERM, "everybody may write to the directory");
    return 0;
}

static int new_file(int dir, const char *name)
{
    int fd =
        openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd < 0 ? -errno : gb_file_move_up(fd);
}

/* Both files, or none and -errno; -EEXIST when the directory has seen a run. */
static int make_files(struct gb_rundir *out, int dir)
{
    out->record_fd = new_file(dir, "record.jsonl");
    if (out->record_fd < 0)
        return out->record_fd;
    out->stalls_fd = new_file(dir, "stalls.log");
    if (out->stalls_fd < 0) {
        close(out->record_fd);
        unlinkat(dir, "record.jsonl", 0);
    }
    return out->stalls_fd < 0 ? out->stalls_fd : 0;
}

/* One candidate name below parent: 0, or -EEXIST to try the next, or another -errno. */
static int try_name(struct gb_rundir *out, int parent, const char *name)
{
    bool made = mkdirat(parent, name, 0700) == 0;
    if (!made && errno != EEXIST)
        return fail(out, errno, NULL);
    int dir = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return fail(out, errno,
                    errno == ENOTDIR || errno == ELOOP ? "not a directory, or a symbolic link"
                                                       : NULL);
    int error = check_dir(out, dir);
    if (!error) {
        error = make_files(out, dir);
        if (error)
            fail(out, -error, NULL);
    }
    close(dir);
    if (error && made)
        unlinkat(parent, name, AT_REMOVEDIR);
    return error;
}

static int try_siblings(struct gb_rundir *out, int parent)
{
    size_t length = strlen(out->path);
    char *name = strrchr(out->path, '/');
    name = name ? name + 1 : out->path;
    int error = try_name(out, parent, name);
    for (int i = 1; error == -EEXIST && i <= SIBLINGS_MAX; i++) {
        out->renamed = true;
        snprintf(out->path + length, sizeof out->path - length, ".%d", i);
        error = try_name(out, parent, name);
    }
    return error;
}

bool gb_rundir_make(const struct gb_rundir_names *names, struct gb_rundir *out)
{
    *out = (struct gb_rundir){.record_fd = -1, .stalls_fd = -1};
    if (!gb_rundir_expand(names, out))
        return false;
    int parent = open_parent(out, !*names->out);
    if (parent < 0)
        return false;
    int error = try_siblings(out, parent);
    close(parent);
    return error == 0;
}

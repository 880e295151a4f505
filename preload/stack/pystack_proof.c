/* pystack_proof.c: before the first plain read, one live stack is read with reads that cannot fault
 * and every frame is held against what the layout claims.
 *
 * Reads go through process_vm_readv(2) on ourselves, which answers EFAULT where a load would crash;
 * where a seccomp filter refuses it, through write(2) into a pipe, which does the same. Thread
 * rule: the calling thread's own stack only. Failure rule: the first thing that is wrong is named,
 * and Python stacks stay off.
 */
#include "stack/pystack_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define MAX_LINKS 4096 /* deep recursion is legal: what was seen so far is enough to judge */

static bool read_by_pipe(void *out, uintptr_t from, size_t n)
{
    int fd[2];
    if (pipe2(fd, O_CLOEXEC | O_NONBLOCK) != 0)
        return false;
    bool ok =
        write(fd[1], (const void *)from, n) == (ssize_t)n && read(fd[0], out, n) == (ssize_t)n;
    close(fd[0]);
    close(fd[1]);
    return ok;
}

/* n is at most a few hundred bytes. */
static bool read_safely(void *out, uintptr_t from, size_t n)
{
    struct iovec local = {out, n}, remote = {(void *)from, n};
    int saved = errno;
    long got = syscall(SYS_process_vm_readv, getpid(), &local, 1, &remote, 1, 0);
    bool ok = got == (long)n;
    if (got < 0 && errno != EFAULT)
        ok = read_by_pipe(out, from, n);
    errno = saved;
    return ok;
}

static bool read_pointer(uintptr_t from, uintptr_t *out)
{
    return read_safely(out, from, sizeof *out);
}

static bool first_frame(const struct gb_py_layout *l, uintptr_t tstate, uintptr_t *out)
{
    if (!read_pointer(tstate + l->tstate_frame, out))
        return false;
    if (l->cframe_frame == GB_PY_NONE)
        return true;
    return *out && read_pointer(*out + l->cframe_frame, out);
}

/* Fills in what the walk would see; false if the frame cannot be read. */
static bool read_frame(const struct gb_py_layout *l, uintptr_t frame, struct gb_py_frame *out)
{
    uint8_t owner = 0;
    int32_t lasti;
    if (frame % sizeof(void *) != 0 || !read_pointer(frame + l->frame_code, &out->code) ||
        (l->frame_owner != GB_PY_NONE && !read_safely(&owner, frame + l->frame_owner, 1)))
        return false;
    out->code &= ~(uintptr_t)1; /* 3.14: a tagged reference */
    out->owner = owner;
    if (l->position == GB_PY_POINTER)
        return read_safely(&out->position, frame + l->frame_position, sizeof out->position);
    if (!read_safely(&lasti, frame + l->frame_position, sizeof lasti))
        return false;
    out->position = (uint32_t)lasti;
    return true;
}

const char *gb_py_proof(const struct gb_py_process *py, uintptr_t tstate)
{
    const struct gb_py_layout *l = &py->layout;
    struct gb_py_code code; /* 5 KiB: the proof runs once */
    uintptr_t frame, marker = 0;
    int seen = 0;
    if (!first_frame(l, tstate, &frame))
        return "a thread state without frames";
    for (int links = 0; frame && links < MAX_LINKS; links++) {
        struct gb_py_frame f;
        if (frame == marker)
            return "a chain of frames that is a circle";
        if ((links & (links - 1)) == 0) /* Brent: a circle comes back to a marker in the end */
            marker = frame;
        if (!read_frame(l, frame, &f) || f.owner > GB_PY_OWNER_SHIM + 1)
            return "a frame that is none";
        if (f.owner < GB_PY_OWNER_SHIM && seen++ < GB_PYSTACK_MAX_FRAMES) {
            const char *wrong = gb_py_code_read(py, read_safely, &f, &code);
            if (wrong)
                return wrong;
        }
        if (!read_pointer(frame + l->frame_previous, &frame))
            return "a chain of frames that leads nowhere";
    }
    return seen ? NULL : "";
}

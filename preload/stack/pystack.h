/* pystack.h: the calling thread's Python stack, read without the GIL.
 *
 * A stack is a small integer id, stable for the process's life, interned at first sight. Hot
 * captures take no lock, allocate nothing and store nothing but a per-thread cache slot. When the
 * interpreter is unknown or its layout fails the start-up proof, captures return 0 and
 * gb_pystack_status says why. Thread rule: capture reads the calling thread's own frames only.
 */
#ifndef GB_PYSTACK_H
#define GB_PYSTACK_H

#include "base/gb.h"

#define GB_PYSTACK_MAX_FRAMES 128
#define GB_PYSTACK_OVERFLOW                                                                        \
    UINT32_MAX /* the table is full: a stack exists, its name is not known */

struct gb_pyframe {
    const char *file; /* UTF-8, never NULL, lives as long as the process */
    const char *func; /* qualified name where the version has one */
    int line;         /* -1: no line */
};

/* Id of the current Python stack; 0 when this thread has none or Python stacks are off. */
uint32_t gb_pystack_capture(void);
/* Frames of a stack, innermost first; returns how many were written. Any thread may call it. */
int gb_pystack_frames(uint32_t id, struct gb_pyframe *out, int max);
/* "on: CPython 3.11.7, fixed table", "off: ...", or "no Python in this process". */
const char *gb_pystack_status(void);
/* Child handler of fork: resets the lock; the child keeps the table as it was. */
void gb_pystack_after_fork(void);

#endif

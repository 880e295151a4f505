/* thread.h: helper threads. They move bytes or write files; they never call CUDA or Python.
 *
 * pthread_create lived outside libc.so.6 before glibc 2.34, so it is looked up (elf.h). A helper
 * blocks every signal but SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP and SIGSYS (a blocked
 * synchronous signal would kill the process without its handler) and keeps the affinity of the
 * process.
 */
#ifndef GB_THREAD_H
#define GB_THREAD_H

#include "base/gb.h"

/* Starts a detached helper; false when the process may not have one (then do without). */
bool gb_thread_start(void (*run)(void *arg), void *arg, const char *name);

#endif

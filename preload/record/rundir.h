/* rundir.h: the directory of this run, made so that nobody else's file can ever be touched.
 *
 * The directory is ours (0700, owner checked, never a symbolic link), every file in it is new
 * (O_CREAT | O_EXCL | O_NOFOLLOW, 0600). A directory that holds an earlier run is left alone: the
 * next free sibling "<dir>.1", "<dir>.2" ... is taken, so that ranks with one GPUBOOST_OUT do not
 * meet either. Runs once at arm, on the application's thread. Failure rule: no directory, one
 * reason as text, nothing left behind but empty parents.
 */
#ifndef GB_RUNDIR_H
#define GB_RUNDIR_H

#include "base/text.h"

#define GB_RUNDIR_PATH_BYTES 2048

/* Everything a path may depend on; values are cleaned before they enter it. */
struct gb_rundir_names {
    const char *out;        /* GPUBOOST_OUT; "" for the default place */
    const char *state_home; /* XDG_STATE_HOME, or "" */
    const char *home;       /* HOME, or "" */
    const char *program;
    const char *host;
    const char *rank; /* or "" */
    const char *job;  /* or "" */
    long pid;
    uint64_t unix_seconds;
};

struct gb_rundir {
    char path[GB_RUNDIR_PATH_BYTES]; /* absolute; "" when there is none */
    int record_fd, stalls_fd;        /* record.jsonl and stalls.log, >= 3 */
    bool renamed;                    /* a sibling was taken */
    char error[160];                 /* why there is none */
};

/* Adds the state directory, "$XDG_STATE_HOME/gpuboost/" or the one below HOME; false: neither is
 * there. Relative values are to be ignored (XDG base directory specification). */
bool gb_rundir_add_base(struct gb_text *t, const char *state_home, const char *home);
/* The wanted path by the patterns; false with out->error set. Pure. */
bool gb_rundir_expand(const struct gb_rundir_names *names, struct gb_rundir *out);
/* Expands, makes the directory and its two files; false with out->error set. */
bool gb_rundir_make(const struct gb_rundir_names *names, struct gb_rundir *out);

#endif

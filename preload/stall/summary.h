/* summary.h: the dozen lines at exit: verdict, why, next, fixed, our own cost, where the record is.
 *
 * Reads the site table and the totals, allocates nothing, decides nothing. One thread, at exit.
 * What is not known is "n/a", never 0; names from outside are made harmless.
 */
#ifndef GB_SUMMARY_H
#define GB_SUMMARY_H

#include "base/text.h"

struct gb_summary {
    const char *program;
    const char *rank;   /* or "" */
    const char *device; /* or "" */
    long pid;
    uint64_t wall_ns; /* since the first CUDA call */
    uint64_t now_ns;
    uint64_t dropped;           /* events that did not reach stalls.log */
    const char *record_path;    /* or "" */
    const char *record_problem; /* why there is none, or "" when none was wanted */
};

/* Appends the text, each line prefixed "gpuboost: ". */
void gb_summary_write(struct gb_text *t, const struct gb_summary *s);

#endif

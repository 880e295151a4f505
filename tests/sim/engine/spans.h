/* spans.h: which parts of a number line are free; first fit, so that what was freed is reused at
 * once and the same sequence of calls gives the same answers.
 *
 * Thread rule: the caller's lock. Failure rule: false.
 */
#ifndef SIM_SPANS_H
#define SIM_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_span {
    uint64_t start, bytes;
};

struct sim_spans {
    struct sim_span *items; /* free ones, sorted, never adjacent */
    size_t count, capacity;
};

bool sim_spans_init(struct sim_spans *spans, uint64_t start, uint64_t bytes);
bool sim_spans_take(struct sim_spans *spans, uint64_t bytes, uint64_t alignment, uint64_t *start);
void sim_spans_give(struct sim_spans *spans, uint64_t start, uint64_t bytes);
/* Takes exactly [start, start + bytes) if it is free. */
bool sim_spans_cut(struct sim_spans *spans, uint64_t start, uint64_t bytes);

#endif

/* spans.c: see spans.h. */
#include "spans.h"

#include <stdlib.h>
#include <string.h>

static bool insert(struct sim_spans *spans, size_t at, uint64_t start, uint64_t bytes)
{
    if (bytes == 0)
        return true;
    if (spans->count == spans->capacity) {
        size_t capacity = spans->capacity ? 2 * spans->capacity : 64;
        struct sim_span *items = realloc(spans->items, capacity * sizeof(*items));
        if (!items)
            return false;
        spans->items = items;
        spans->capacity = capacity;
    }
    memmove(&spans->items[at + 1], &spans->items[at], (spans->count - at) * sizeof(*spans->items));
    spans->items[at] = (struct sim_span){start, bytes};
    spans->count++;
    return true;
}

static void erase(struct sim_spans *spans, size_t at)
{
    spans->count--;
    memmove(&spans->items[at], &spans->items[at + 1], (spans->count - at) * sizeof(*spans->items));
}

bool sim_spans_init(struct sim_spans *spans, uint64_t start, uint64_t bytes)
{
    spans->count = 0;
    return insert(spans, 0, start, bytes);
}

bool sim_spans_take(struct sim_spans *spans, uint64_t bytes, uint64_t alignment, uint64_t *start)
{
    for (size_t i = 0; i < spans->count; i++) {
        struct sim_span span = spans->items[i];
        uint64_t from = (span.start + alignment - 1) / alignment * alignment;
        if (from + bytes > span.start + span.bytes || from + bytes < from)
            continue;
        erase(spans, i);
        insert(spans, i, from + bytes, span.start + span.bytes - from - bytes);
        insert(spans, i, span.start, from - span.start);
        *start = from;
        return true;
    }
    return false;
}

void sim_spans_give(struct sim_spans *spans, uint64_t start, uint64_t bytes)
{
    size_t at = 0;
    while (at < spans->count && spans->items[at].start < start)
        at++;
    insert(spans, at, start, bytes);
    if (at + 1 < spans->count && start + bytes == spans->items[at + 1].start) {
        spans->items[at].bytes += spans->items[at + 1].bytes;
        erase(spans, at + 1);
    }
    if (at > 0 && spans->items[at - 1].start + spans->items[at - 1].bytes == start) {
        spans->items[at - 1].bytes += spans->items[at].bytes;
        erase(spans, at);
    }
}

bool sim_spans_cut(struct sim_spans *spans, uint64_t start, uint64_t bytes)
{
    for (size_t i = 0; i < spans->count; i++) {
        struct sim_span span = spans->items[i];
        if (start < span.start || start + bytes > span.start + span.bytes)
            continue;
        erase(spans, i);
        insert(spans, i, start + bytes, span.start + span.bytes - start - bytes);
        insert(spans, i, span.start, start - span.start);
        return true;
    }
    return false;
}

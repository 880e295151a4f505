/* transfer_rate.c: least time per byte by direction and size class, a power of two. See
 * transfer_rate.h for the rules. */
#include "stall/transfer_rate.h"

#define CLASSES 40

static struct {
    float ns_per_byte; /* 0: none was seen */
    uint32_t sure;     /* one of them had nothing to wait for */
} classes[GB_COPY_D2D + 1][CLASSES];

static int class_of(uint64_t bytes)
{
    int class = 63 - __builtin_clzll(bytes);
    return class < CLASSES ? class : CLASSES - 1;
}

/* Two threads at once may lose one of two copies: the next one is as good. */
void gb_rate_learn(enum gb_direction direction, uint64_t bytes, uint64_t ns, bool waited)
{
    if (bytes < GB_SMALL_COPY_BYTES)
        return;
    int c = class_of(bytes);
    float now = (float)ns / (float)bytes, least;
    __atomic_load(&classes[direction][c].ns_per_byte, &least, __ATOMIC_RELAXED);
    if (least == 0 || now < least)
        __atomic_store(&classes[direction][c].ns_per_byte, &now, __ATOMIC_RELAXED);
    if (!waited)
        __atomic_store_n(&classes[direction][c].sure, 1, __ATOMIC_RELAXED);
}

static bool estimate_by(enum gb_direction direction, int class, uint64_t bytes, uint64_t *out_ns)
{
    if (class < 0 || class >= CLASSES ||
        !__atomic_load_n(&classes[direction][class].sure, __ATOMIC_RELAXED))
        return false;
    float least;
    __atomic_load(&classes[direction][class].ns_per_byte, &least, __ATOMIC_RELAXED);
    *out_ns = (uint64_t)((double)bytes * (double)least);
    return true;
}

/* The nearest class that has seen a copy, larger ones first: they carry less of a fixed cost. */
bool gb_rate_estimate(enum gb_direction direction, uint64_t bytes, uint64_t *out_ns)
{
    if (bytes < GB_SMALL_COPY_BYTES)
        return false;
    int class = class_of(bytes);
    for (int distance = 0; distance < CLASSES; distance++)
        if (estimate_by(direction, class + distance, bytes, out_ns) ||
            estimate_by(direction, class - distance, bytes, out_ns))
            return true;
    return false;
}

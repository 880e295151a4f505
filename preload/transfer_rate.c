/* transfer_rate.c: time per byte by direction and size class. See transfer_rate.h for the rules.
 *
 * A class is a power of two. It holds a sum of bytes and of time; both are halved when the sum
 * grows, so that old copies fade. Bytes and time are separate words: a reader that meets a halving
 * sees a rate that is off once by at most a factor of two, in one line of a log.
 */
#include "transfer_rate.h"

#define SMALLEST_BYTES (64u << 10)
#define CLASSES        40
#define FADE_COPIES    16

static struct {
    uint64_t bytes, ns, copies;
} classes[GB_COPY_D2D + 1][CLASSES];

static int class_of(uint64_t bytes)
{
    int class = 63 - __builtin_clzll(bytes);
    return class < CLASSES ? class : CLASSES - 1;
}

void gb_rate_learn(enum gb_direction direction, uint64_t bytes, uint64_t ns)
{
    if (bytes < SMALLEST_BYTES)
        return;
    int c = class_of(bytes);
    uint64_t copies = GB_COUNT(classes[direction][c].copies, 1);
    GB_COUNT(classes[direction][c].bytes, bytes);
    GB_COUNT(classes[direction][c].ns, ns);
    if (copies % FADE_COPIES == FADE_COPIES - 1) {
        GB_COUNT(classes[direction][c].bytes, -(GB_READ(classes[direction][c].bytes) / 2));
        GB_COUNT(classes[direction][c].ns, -(GB_READ(classes[direction][c].ns) / 2));
    }
}

static bool estimate_by(enum gb_direction direction, int class, uint64_t bytes, uint64_t *out_ns)
{
    if (class < 0 || class >= CLASSES)
        return false;
    uint64_t seen = GB_READ(classes[direction][class].bytes);
    if (!seen)
        return false;
    *out_ns =
        (uint64_t)((double)bytes * (double)GB_READ(classes[direction][class].ns) / (double)seen);
    return true;
}

/* The nearest class that has seen a copy, larger ones first: they carry less of a fixed cost. */
bool gb_rate_estimate(enum gb_direction direction, uint64_t bytes, uint64_t *out_ns)
{
    if (bytes < SMALLEST_BYTES)
        return false;
    int class = class_of(bytes);
    for (int distance = 0; distance < CLASSES; distance++)
        if (estimate_by(direction, class + distance, bytes, out_ns) ||
            estimate_by(direction, class - distance, bytes, out_ns))
            return true;
    return false;
}

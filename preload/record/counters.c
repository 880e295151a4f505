/* counters.c: the named counters, and the list of those that are not zero for the record. */
#include "record/counters.h"

#include "record/record.h"

struct gb_counters gb_counters;

int gb_named_counts(struct gb_named_count *out, int max)
{
    static const struct {
        gb_counter *counter;
        const char *name;
    } all[] = {
#define GB_COUNTER(field, name) {&gb_counters.field, name},
#include "record/counters.def"
    };
    int count = 0;
    for (size_t i = 0; i < GB_ARRAY_LEN(all) && count < max; i++) {
        uint64_t value = GB_READ(*all[i].counter);
        if (value)
            out[count++] = (struct gb_named_count){all[i].name, value};
    }
    return count;
}

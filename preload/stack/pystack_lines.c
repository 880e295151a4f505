/* pystack_lines.c: from instruction to line, for the three table formats of CPython.
 *
 * Formats: Objects/lnotab_notes.txt (3.9: pairs of byte and line steps; 3.10: PEP 626, pairs of
 * range and line steps, -128 meaning "no line") and Objects/locations.md (3.11 and later). Pure:
 * reads nothing but the bytes it is given, whatever they are. Failure rule: a table that ends too
 * early gives -1, "no line".
 */
#include "stack/pystack_internal.h"

#define NO_LINE_STEP (-128)

/* Location kinds that say something about the line; all others mean "same line". */
enum { ONE_LINE_0 = 10, ONE_LINE_2 = 12, NO_COLUMNS = 13, LONG = 14, NO_LOCATION = 15 };

/* Garbage may add up to anything; signed overflow would be undefined. */
static int add(int line, int step)
{
    return (int)((unsigned)line + (unsigned)step);
}

static int line_lnotab(const uint8_t *table, size_t bytes, int line, int64_t lasti)
{
    int64_t address = 0;
    for (size_t i = 0; i + 1 < bytes; i += 2) {
        address += table[i];
        if (address > lasti)
            break;
        line = add(line, (int8_t)table[i + 1]);
    }
    return line;
}

static int line_pairs(const uint8_t *table, size_t bytes, int line, int64_t lasti)
{
    int64_t end = 0;
    for (size_t i = 0; i + 1 < bytes; i += 2) {
        int step = (int8_t)table[i + 1];
        end += table[i];
        if (step != NO_LINE_STEP)
            line = add(line, step);
        if (end > lasti)
            return step == NO_LINE_STEP ? -1 : line;
    }
    return -1;
}

/* Six bits a byte, low first, bit 6 says that more follow; the sign is the lowest bit. */
static int read_signed_varint(const uint8_t *p, const uint8_t *end)
{
    uint32_t value = 0;
    for (unsigned shift = 0; p < end && shift < 32; shift += 6) {
        value |= (uint32_t)(*p & 63) << shift;
        if (!(*p++ & 64))
            break;
    }
    return value & 1 ? -(int)(value >> 1) : (int)(value >> 1);
}

static int line_locations(const uint8_t *table, size_t bytes, int line, int64_t lasti)
{
    const uint8_t *p = table, *end = table + bytes;
    int64_t address = 0;
    while (p < end) {
        unsigned kind = (*p >> 3) & 15, units = (*p & 7) + 1;
        const uint8_t *rest = ++p;
        if (kind == NO_COLUMNS || kind == LONG)
            line = add(line, read_signed_varint(rest, end));
        else if (kind >= ONE_LINE_0 && kind <= ONE_LINE_2)
            line = add(line, (int)(kind - ONE_LINE_0));
        address += 2 * units;
        if (address > lasti)
            return kind == NO_LOCATION ? -1 : line;
        while (p < end && !(*p & 128)) /* bit 7 marks the first byte of an entry */
            p++;
    }
    return -1;
}

int gb_py_line(enum gb_py_lines format, const uint8_t *table, size_t bytes, int firstlineno,
               int64_t lasti)
{
    if (lasti < 0)
        return firstlineno;
    if (format == GB_PY_LNOTAB)
        return line_lnotab(table, bytes, firstlineno, lasti);
    if (format == GB_PY_PAIRS)
        return line_pairs(table, bytes, firstlineno, lasti);
    return line_locations(table, bytes, firstlineno, lasti);
}

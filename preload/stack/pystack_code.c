/* pystack_code.c: what a code object says: file, function, line table; every field checked.
 *
 * The same code serves the start-up proof (a reader that cannot fault) and first sight (plain
 * reads: the thread's own frame keeps the code object and its texts alive, and they never change).
 * Failure rule: anything that is not as the layout says is named and refused.
 */
#include "stack/pystack_internal.h"

#include <string.h>

#define MAX_TEXT_UNITS  (1 << 20) /* longer names than this are not names */
#define MAX_TABLE_BYTES (1 << 28)
#define MAX_CODE_UNITS  (1 << 28)
#define REPLACEMENT     0xfffd /* for lone surrogates, which UTF-8 cannot carry */

bool gb_py_read_plain(void *out, uintptr_t from, size_t n)
{
    memcpy(out, (const void *)from, n);
    return true;
}

static bool read_word(gb_py_reader read, uintptr_t from, uint64_t *out)
{
    return read(out, from, sizeof *out);
}

static bool is_a(const struct gb_py_process *py, gb_py_reader read, uintptr_t object,
                 uintptr_t type)
{
    uint64_t found;
    return object && object % sizeof(void *) == 0 &&
           read_word(read, object + py->layout.ob_type, &found) && found == type;
}

/* Appends one code point; false when it does not fit. */
static bool put_utf8(char *out, size_t size, size_t *used, uint32_t c)
{
    uint8_t b[4];
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    if (n > size - *used)
        return false;
    for (size_t i = n; i-- > 1; c >>= 6)
        b[i] = (uint8_t)(0x80 | (c & 0x3f));
    b[0] = (uint8_t)(lead[n] | c);
    memcpy(out + *used, b, n);
    *used += n;
    return true;
}

static uint32_t unit_at(const uint8_t *p, unsigned kind)
{
    uint16_t u16;
    uint32_t u32;
    if (kind == 1)
        return *p;
    if (kind == 2) {
        memcpy(&u16, p, sizeof u16);
        return u16;
    }
    memcpy(&u32, p, sizeof u32);
    return u32;
}

/* Converts the characters of a str piece by piece; false when they cannot be read or there is a
 * zero among them, which no name has and a wrong offset soon meets. */
static bool copy_utf8(gb_py_reader read, uintptr_t data, size_t length, unsigned kind, char *out,
                      size_t size, size_t *used)
{
    uint8_t piece[256];
    *used = 0;
    for (size_t at = 0; at < length;) {
        size_t n = sizeof piece / kind < length - at ? sizeof piece / kind : length - at;
        if (!read(piece, data + at * kind, n * kind))
            return false;
        for (size_t i = 0; i < n; i++) {
            uint32_t c = unit_at(piece + i * kind, kind);
            if (c == 0 || c > 0x10ffff)
                return false;
            if (c >= 0xd800 && c < 0xe000)
                c = REPLACEMENT;
            if (!put_utf8(out, size, used, c))
                return true;
        }
        at += n;
    }
    return true;
}

/* A str in compact form, which all names made by the compiler have. */
static bool read_text(const struct gb_py_process *py, gb_py_reader read, uintptr_t object,
                      char *out, size_t size, size_t *used)
{
    const struct gb_py_layout *l = &py->layout;
    uint64_t length;
    uint32_t state, end = 0;
    if (!is_a(py, read, object, py->str_type) ||
        !read_word(read, object + l->str_length, &length) ||
        !read(&state, object + l->str_state, sizeof state))
        return false;
    unsigned kind = GB_PY_STR_KIND(state);
    bool compact = GB_PY_STR_COMPACT(state), ascii = GB_PY_STR_ASCII(state);
    if (!compact || length > MAX_TEXT_UNITS || (kind != 1 && kind != 2 && kind != 4) ||
        (ascii && kind != 1))
        return false;
    uintptr_t data = object + (ascii ? l->str_ascii : l->str_compact);
    return read(&end, data + length * kind, kind) && end == 0 && /* CPython ends every str so */
           copy_utf8(read, data, length, kind, out, size, used);
}

static bool read_table(const struct gb_py_process *py, gb_py_reader read, uintptr_t object,
                       struct gb_py_code *out)
{
    uint64_t bytes;
    uint8_t start, end;
    if (!is_a(py, read, object, py->bytes_type) ||
        !read_word(read, object + py->layout.bytes_size, &bytes) || bytes > MAX_TABLE_BYTES)
        return false;
    out->table = object + py->layout.bytes_data;
    out->table_bytes = bytes;
    /* A bytes object ends with a zero that its size does not count; each entry of a location table
     * starts with bit 7 (Objects/locations.md). */
    if (!read(&end, out->table + bytes, 1) || end != 0 || !read(&start, out->table, 1))
        return false;
    return py->layout.lines != GB_PY_LOCATIONS || bytes == 0 || start & 0x80;
}

/* The instruction as a byte index; false if it does not lie in the code. */
static bool read_position(const struct gb_py_process *py, gb_py_reader read,
                          const struct gb_py_frame *frame, struct gb_py_code *out)
{
    const struct gb_py_layout *l = &py->layout;
    if (l->position != GB_PY_POINTER) {
        int32_t lasti = (int32_t)frame->position;
        out->lasti = l->position == GB_PY_UNITS && lasti > 0 ? 2 * (int64_t)lasti : lasti;
        return lasti >= -1 && lasti < MAX_CODE_UNITS;
    }
    uint64_t units;
    int32_t first;
    if (!read_word(read, frame->code + l->ob_size, &units) || units > MAX_CODE_UNITS ||
        !read(&first, frame->code + l->code_firsttraceable, sizeof first))
        return false;
    out->lasti = (int64_t)(frame->position - (frame->code + l->code_bytecode));
    /* _PyFrame_IsIncomplete; a generator's own frame counts as complete. */
    out->hidden = frame->owner != GB_PY_OWNER_GENERATOR && out->lasti < 2 * (int64_t)first;
    return first >= 0 && (uint64_t)first <= units && out->lasti >= -2 &&
           out->lasti < 2 * (int64_t)units && out->lasti % 2 == 0;
}

const char *gb_py_code_read(const struct gb_py_process *py, gb_py_reader read,
                            const struct gb_py_frame *frame, struct gb_py_code *out)
{
    const struct gb_py_layout *l = &py->layout;
    uint64_t file, func, table;
    uint16_t name = l->code_qualname != GB_PY_NONE ? l->code_qualname : l->code_name;
    int32_t first;
    out->hidden = false;
    if (!is_a(py, read, frame->code, py->code_type))
        return "a frame without a code object";
    if (!read(&first, frame->code + l->code_firstlineno, sizeof first) || first < 0)
        return "a code object without a first line";
    if (!read_position(py, read, frame, out))
        return "an instruction outside its code";
    if (!read_word(read, frame->code + l->code_filename, &file) ||
        !read_text(py, read, file, out->file, sizeof out->file, &out->file_bytes))
        return "a code object without a file name";
    if (!read_word(read, frame->code + name, &func) ||
        !read_text(py, read, func, out->func, sizeof out->func, &out->func_bytes))
        return "a code object without a name";
    if (!read_word(read, frame->code + l->code_linetable, &table) ||
        !read_table(py, read, table, out))
        return "a code object without a line table";
    out->firstlineno = first;
    return NULL;
}

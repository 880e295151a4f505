/* pystack_layout.c: which CPython is in this process, and where it keeps its fields.
 *
 * Symbols come from the ELF tables of the loaded objects (elf.h), so nothing of Python is linked.
 * Thread rule: one thread at a time (pystack.c sees to it), no lock held. Failure rule: a version
 * that is not in pystack_offsets.def, a pre-release, a free-threaded build or a missing symbol is
 * refused with a reason; nothing is guessed.
 */
#include "stack/pystack_internal.h"

#include "base/elf.h"

#include <stdio.h>
#include <string.h>

#define RELEASE_CANDIDATE                                                                          \
    0xc /* Include/patchlevel.h: 0xa alpha, 0xb beta, 0xc candidate, 0xf final */
#define COOKIE       "xdebugpy"
#define OFFSET_LIMIT 4096 /* no structure that we read is larger */

/* The table's own numbers are read by position; these are fixed distances from what it says. They
 * hold for 3.13 to 3.15 with the GIL (Include/cpython/code.h, Include/cpython/unicodeobject.h). */
#define VERSION_AFTER_FIRSTLINENO      24
#define FIRSTTRACEABLE_BEFORE_BYTECODE 16
#define COMPACT_AFTER_ASCII            16

static const struct gb_py_layout fixed[] = {
#define GB_PY_FIXED(version, ...) {.minor = (version), __VA_ARGS__},
#define GB_PY_PUBLISHED(version, ...)
#include "stack/pystack_offsets.def"
};

static const struct gb_py_layout published[] = {
#define GB_PY_FIXED(version, ...)
#define GB_PY_PUBLISHED(version, ...) {.minor = (version), __VA_ARGS__},
#include "stack/pystack_offsets.def"
};

static const size_t published_fields[] = {
#define FIELD(name) offsetof(struct gb_py_layout, name)
    FIELD(runtime_finalizing),
    FIELD(tstate_frame),
    FIELD(frame_previous),
    FIELD(frame_code),
    FIELD(frame_position),
    FIELD(frame_owner),
    FIELD(code_filename),
    FIELD(code_name),
    FIELD(code_qualname),
    FIELD(code_linetable),
    FIELD(code_firstlineno),
    FIELD(code_bytecode),
    FIELD(ob_type),
    FIELD(bytes_size),
    FIELD(bytes_data),
    FIELD(str_state),
    FIELD(str_length),
    FIELD(str_ascii),
#undef FIELD
};

static const struct gb_py_layout *find_minor(const struct gb_py_layout *rows, size_t n,
                                             unsigned minor)
{
    for (size_t i = 0; i < n; i++)
        if (rows[i].minor == minor)
            return &rows[i];
    return NULL;
}

static uint64_t read_u64(const char *p)
{
    uint64_t value;
    memcpy(&value, p, sizeof value);
    return value;
}

static const char *read_published(const struct gb_py_layout *row, uint32_t version,
                                  const char *table, struct gb_py_layout *out)
{
    if (memcmp(table, COOKIE, 8) != 0 || read_u64(table + 8) != version)
        return "its _PyRuntime.debug_offsets are not there";
    if (read_u64(table + 16) != 0)
        return "free-threaded builds are not supported";
    *out = *row;
    for (size_t i = 0; i < GB_ARRAY_LEN(published_fields); i++) {
        uint16_t *field = (uint16_t *)((char *)out + published_fields[i]);
        uint64_t value = read_u64(table + *field);
        if (value >= OFFSET_LIMIT)
            return "its _PyRuntime.debug_offsets make no sense";
        *field = (uint16_t)value;
    }
    if (out->code_bytecode < FIRSTTRACEABLE_BEFORE_BYTECODE)
        return "its _PyRuntime.debug_offsets make no sense";
    out->cframe_frame = GB_PY_NONE;
    out->code_version = out->code_firstlineno + VERSION_AFTER_FIRSTLINENO;
    out->code_firsttraceable = out->code_bytecode - FIRSTTRACEABLE_BEFORE_BYTECODE;
    out->str_compact = out->str_ascii + COMPACT_AFTER_ASCII;
    out->ob_size = out->bytes_size;
    out->position = GB_PY_POINTER;
    out->lines = GB_PY_LOCATIONS;
    out->published = true;
    return NULL;
}

const char *gb_py_layout_choose(uint32_t version, const void *runtime, struct gb_py_layout *out)
{
    unsigned major = version >> 24, minor = (version >> 16) & 0xff, level = (version >> 4) & 0xf;
    if (major != 3)
        return "this version is not known";
    const struct gb_py_layout *row = find_minor(fixed, GB_ARRAY_LEN(fixed), minor);
    const struct gb_py_layout *table = find_minor(published, GB_ARRAY_LEN(published), minor);
    if (!row && !table)
        return "this version is not known";
    if (level < RELEASE_CANDIDATE)
        return "pre-releases are not supported";
    if (table)
        return read_published(table, version, runtime, out);
    *out = *row;
    return NULL;
}

static const char *parse_number(const char *p, uint32_t *out)
{
    const char *start = p;
    *out = 0;
    while (*p >= '0' && *p <= '9' && *out < 1000)
        *out = *out * 10 + (uint32_t)(*p++ - '0');
    return p > start && *out < 256 ? p : NULL;
}

uint32_t gb_py_version_parse(const char *text)
{
    uint32_t major, minor, micro, serial = 0, level = 0xf;
    const char *p = parse_number(text, &major);
    p = p && *p == '.' ? parse_number(p + 1, &minor) : NULL;
    p = p && *p == '.' ? parse_number(p + 1, &micro) : NULL;
    if (!p)
        return 0;
    if (*p == 'a' || *p == 'b')
        level = *p == 'a' ? 0xa : 0xb;
    else if (p[0] == 'r' && p[1] == 'c')
        level = 0xc;
    if (level != 0xf && !parse_number(p + (level == 0xc ? 2 : 1), &serial))
        return 0;
    return major << 24 | minor << 16 | micro << 8 | level << 4 | (serial & 0xf);
}

static uint32_t running_version(void)
{
    const unsigned long *constant = gb_elf_find(NULL, "Py_Version"); /* 3.11 and later */
    const char *(*text)(void) = NULL;
    if (constant)
        return (uint32_t)*constant;
    *(void **)&text = gb_elf_find(NULL, "Py_GetVersion"); /* formats into its own static buffer */
    return text ? gb_py_version_parse(text()) : 0;
}

static const char *no_runtime(void)
{
    if (gb_elf_find(NULL, "PyPyErr_SetString"))
        return "PyPy is not supported";
    if (gb_elf_find(NULL, "Py_GetVersion"))
        return "this Python has no _PyRuntime";
    return "";
}

const char *gb_py_find(struct gb_py_process *out)
{
    memset(out, 0, sizeof *out);
    out->runtime = (uintptr_t)gb_elf_find(NULL, "_PyRuntime");
    if (!out->runtime)
        return no_runtime();
    uint32_t version = running_version();
    snprintf(out->version, sizeof out->version, "%u.%u.%u", version >> 24, (version >> 16) & 0xff,
             (version >> 8) & 0xff);
    const char *wrong = gb_py_layout_choose(version, (const void *)out->runtime, &out->layout);
    if (wrong)
        return wrong;
    *(void **)&out->thread_state = gb_elf_find(NULL, "PyGILState_GetThisThreadState");
    out->code_type = (uintptr_t)gb_elf_find(NULL, "PyCode_Type");
    out->str_type = (uintptr_t)gb_elf_find(NULL, "PyUnicode_Type");
    out->bytes_type = (uintptr_t)gb_elf_find(NULL, "PyBytes_Type");
    if (!out->thread_state || !out->code_type || !out->str_type || !out->bytes_type)
        return "its symbols are hidden";
    return NULL;
}

/* text.c: bounded texts for people. See text.h for the rules. */
#include "base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void gb_text_init(struct gb_text *t, char *data, size_t size)
{
    *t = (struct gb_text){.data = data, .size = size};
    if (size)
        data[0] = 0;
}

void gb_text_add(struct gb_text *t, const char *format, ...)
{
    if (t->used + 1 >= t->size)
        return;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(t->data + t->used, t->size - t->used, format, args);
    va_end(args);
    if (n < 0)
        t->data[t->used] = 0;
    else
        t->used += (size_t)n < t->size - t->used ? (size_t)n : t->size - t->used - 1;
}

/* RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF. A terminating zero is no
 * continuation byte, so this never reads past it. */
unsigned gb_utf8_next(const char *text, uint32_t *code_point)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *s = (const unsigned char *)text;
    unsigned n = s[0] < 0x80 ? 1 : s[0] < 0xC2 ? 0 : s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : 4;
    if (n == 0 || s[0] > 0xF4)
        return 0;
    uint32_t c = n == 1 ? s[0] : s[0] & (0x7Fu >> n);
    for (unsigned i = 1; i < n; i++) {
        if ((s[i] & 0xC0) != 0x80)
            return 0;
        c = c << 6 | (s[i] & 0x3Fu);
    }
    if (c < least[n] || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF))
        return 0;
    *code_point = c;
    return n;
}

/* Control characters (C0, DEL, C1), zero-width and bidirectional marks, line separators. */
static bool is_harmless(uint32_t c)
{
    return c >= 0x20 && (c < 0x7F || c > 0x9F) && !(c >= 0x200B && c <= 0x200F) &&
           !(c >= 0x2028 && c <= 0x202E) && !(c >= 0x2060 && c <= 0x206F) && c != 0x061C &&
           c != 0xFEFF;
}

void gb_text_add_clean(struct gb_text *t, const char *in)
{
    static const char hex[] = "0123456789abcdef";
    while (*in) {
        uint32_t c = 0;
        unsigned n = gb_utf8_next(in, &c);
        bool plain = n && is_harmless(c);
        unsigned taken = n ? n : 1, need = plain ? n : 4 * taken;
        if (t->used + need >= t->size)
            return;
        char *out = t->data + t->used;
        if (plain)
            memcpy(out, in, n);
        for (unsigned i = 0; !plain && i < taken; i++) {
            unsigned char byte = (unsigned char)in[i];
            memcpy(out + 4 * i, (char[]){'\\', 'x', hex[byte >> 4], hex[byte & 15]}, 4);
        }
        t->used += need;
        t->data[t->used] = 0;
        in += taken;
    }
}

size_t gb_text_clean(char *out, size_t size, const char *in)
{
    struct gb_text t;
    gb_text_init(&t, out, size);
    gb_text_add_clean(&t, in);
    return t.used;
}

/* value / unit with one decimal, rounded down. */
static void add_scaled(struct gb_text *t, uint64_t value, uint64_t unit, const char *name)
{
    gb_text_add(t, "%llu.%u %s", (unsigned long long)(value / unit),
                (unsigned)(value % unit * 10 / unit), name);
}

void gb_text_add_duration(struct gb_text *t, uint64_t ns)
{
    if (ns < 1000)
        gb_text_add(t, "%u ns", (unsigned)ns);
    else if (ns < 1000000)
        add_scaled(t, ns, 1000, "us");
    else if (ns < 10000000000)
        add_scaled(t, ns, 1000000, "ms");
    else
        add_scaled(t, ns, 1000000000, "s");
}

void gb_text_add_bytes(struct gb_text *t, uint64_t bytes)
{
    if (bytes < 1024)
        gb_text_add(t, "%u B", (unsigned)bytes);
    else if (bytes < 1024 * 1024)
        add_scaled(t, bytes, 1024, "KiB");
    else if (bytes < 1024ull * 1024 * 1024)
        add_scaled(t, bytes, 1024 * 1024, "MiB");
    else
        add_scaled(t, bytes, 1024ull * 1024 * 1024, "GiB");
}

void gb_text_add_percent(struct gb_text *t, uint64_t part, uint64_t whole)
{
    if (whole == 0) {
        gb_text_add(t, "n/a");
        return;
    }
    /* Two forms, since part * 1000 would overflow after 213 days in nanoseconds. */
    uint64_t tenths = whole < 1000000 ? part * 1000 / whole : part / (whole / 1000);
    gb_text_add(t, "%llu.%u %%", (unsigned long long)(tenths / 10), (unsigned)(tenths % 10));
}

const char *gb_errno_text(int error)
{
    static const struct {
        int error;
        const char *text;
    } known[] = {
        {EACCES, "Permission denied"},
        {EBADF, "Bad file descriptor (the program closed it)"},
        {EDQUOT, "Disk quota exceeded"},
        {EEXIST, "File exists"},
        {EFBIG, "File too large (file size limit)"},
        {EINVAL, "Invalid argument"},
        {EIO, "Input/output error"},
        {EISDIR, "Is a directory"},
        {ELOOP, "Is a symbolic link"},
        {EMFILE, "Too many open files"},
        {ENAMETOOLONG, "File name too long"},
        {ENFILE, "Too many open files in the system"},
        {ENOENT, "No such file or directory"},
        {ENOMEM, "Cannot allocate memory"},
        {ENOSPC, "No space left on device"},
        {ENOTDIR, "Not a directory"},
        {EPERM, "Operation not permitted"},
        {EROFS, "Read-only file system"},
        {ESTALE, "Stale file handle"},
    };
    for (size_t i = 0; i < GB_ARRAY_LEN(known); i++)
        if (known[i].error == error)
            return known[i].text;
    return "Unexpected error";
}

/* json.c: one bounded JSON line. See json.h for the rules. */
#include "base/json.h"

#include "base/text.h"

#include <string.h>

void gb_json_init(struct gb_json *j, char *data, size_t size)
{
    *j = (struct gb_json){.data = data, .size = size};
}

static void put(struct gb_json *j, const char *bytes, size_t n)
{
    if (j->full || n > j->size - j->used) {
        j->full = true;
        return;
    }
    memcpy(j->data + j->used, bytes, n);
    j->used += n;
}

static void put_escape(struct gb_json *j, uint32_t c)
{
    static const char hex[] = "0123456789abcdef";
    char out[6] = {'\\', 'u', hex[c >> 12 & 15], hex[c >> 8 & 15], hex[c >> 4 & 15], hex[c & 15]};
    put(j, out, sizeof out);
}

static void put_string(struct gb_json *j, const char *text)
{
    put(j, "\"", 1);
    while (*text) {
        uint32_t c = 0;
        unsigned n = gb_utf8_next(text, &c);
        if (n == 0)
            put_escape(j, 0xFFFD);
        else if (c == '"' || c == '\\')
            put(j, (char[]){'\\', (char)c}, 2);
        else if (c < 0x20 || c == 0x7F || c == 0x2028 || c == 0x2029)
            put_escape(j, c);
        else
            put(j, text, n);
        text += n ? n : 1;
    }
    put(j, "\"", 1);
}

/* A comma is due unless this is the first member of an object or array, or follows its key. */
static void begin(struct gb_json *j, const char *key)
{
    char last = j->used ? j->data[j->used - 1] : '{';
    if (last != '{' && last != '[')
        put(j, ",", 1);
    if (key) {
        put_string(j, key);
        put(j, ":", 1);
    }
}

void gb_json_open(struct gb_json *j, const char *key, char bracket)
{
    begin(j, key);
    put(j, &bracket, 1);
}

void gb_json_close(struct gb_json *j, char bracket)
{
    put(j, &bracket, 1);
}

static void put_digits(struct gb_json *j, uint64_t value)
{
    char digits[20];
    size_t n = sizeof digits;
    do
        digits[--n] = (char)('0' + value % 10);
    while ((value /= 10) != 0);
    put(j, digits + n, sizeof digits - n);
}

void gb_json_u64(struct gb_json *j, const char *key, uint64_t value)
{
    begin(j, key);
    put_digits(j, value);
}

void gb_json_i64(struct gb_json *j, const char *key, int64_t value)
{
    begin(j, key);
    if (value < 0)
        put(j, "-", 1);
    put_digits(j, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void gb_json_text(struct gb_json *j, const char *key, const char *text)
{
    if (!text) {
        gb_json_null(j, key);
        return;
    }
    begin(j, key);
    put_string(j, text);
}

void gb_json_null(struct gb_json *j, const char *key)
{
    begin(j, key);
    put(j, "null", 4);
}

void gb_json_rewind(struct gb_json *j, size_t used)
{
    j->used = used;
    j->full = false;
}

size_t gb_json_finish(struct gb_json *j)
{
    put(j, "\n", 1);
    return j->full ? 0 : j->used;
}

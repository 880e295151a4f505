/* json.h: one bounded JSON line in the caller's memory.
 *
 * Nothing is allocated; when the memory is full the line is marked and everything further is
 * dropped, so that a half line is never taken for a whole one. Texts are escaped to ASCII control-
 * free JSON; malformed UTF-8 becomes U+FFFD. Any thread; a writer belongs to one.
 */
#ifndef GB_JSON_H
#define GB_JSON_H

#include "base/gb.h"

struct gb_json {
    char *data;
    size_t size, used;
    bool full;
};

void gb_json_init(struct gb_json *j, char *data, size_t size);
/* `key` is NULL inside an array and for the outermost object. `bracket` is '{' or '['. */
void gb_json_open(struct gb_json *j, const char *key, char bracket);
void gb_json_close(struct gb_json *j, char bracket); /* '}' or ']' */
void gb_json_u64(struct gb_json *j, const char *key, uint64_t value);
void gb_json_i64(struct gb_json *j, const char *key, int64_t value);
void gb_json_text(struct gb_json *j, const char *key, const char *text); /* NULL: null */
void gb_json_null(struct gb_json *j, const char *key);
/* Takes back everything written after `used` (a member that did not fit). */
void gb_json_rewind(struct gb_json *j, size_t used);
/* Ends the line with '\n'; its length, or 0 when it did not fit. */
size_t gb_json_finish(struct gb_json *j);

#endif

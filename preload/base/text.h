/* text.h: bounded texts for people. No allocation, no locale, any thread.
 *
 * Names that come from outside (files, functions, environment) may hold control characters, ANSI
 * sequences or bidirectional marks; gb_text_clean makes them harmless on a terminal. Numbers are
 * put together from integers, since printf's %f follows the program's locale.
 */
#ifndef GB_TEXT_H
#define GB_TEXT_H

#include "base/gb.h"

/* A text under construction in the caller's memory: always terminated, cut at the end. */
struct gb_text {
    char *data;
    size_t size, used;
};

void gb_text_init(struct gb_text *t, char *data, size_t size);
void gb_text_add(struct gb_text *t, const char *format, ...) GB_PRINTF(2, 3);
/* Adds `in` with everything that is not plain printable UTF-8 as \xNN. */
void gb_text_add_clean(struct gb_text *t, const char *in);
void gb_text_add_duration(struct gb_text *t, uint64_t ns); /* "850 ns", "12.3 ms", "61.2 s" */
void gb_text_add_bytes(struct gb_text *t, uint64_t bytes); /* "512 B", "12.5 GiB" */
void gb_text_add_percent(struct gb_text *t, uint64_t part, uint64_t whole); /* "38.1 %", "n/a" */

/* The same as gb_text_add_clean into a buffer; returns the length. */
size_t gb_text_clean(char *out, size_t size, const char *in);
/* Length of the well-formed UTF-8 sequence at s (1..4) and its code point; 0 when malformed. */
unsigned gb_utf8_next(const char *s, uint32_t *code_point);
/* "No space left on device"; strerror may allocate and translate. Never NULL. */
const char *gb_errno_text(int error);

#endif

/* record_lines.h: the lines of record.jsonl and stalls.log. docs/record.md describes them.
 *
 * Each function builds one line in the caller's memory; nothing is written here. One thread at a
 * time (the record's lock).
 */
#ifndef GB_RECORD_LINES_H
#define GB_RECORD_LINES_H

#include "base/json.h"
#include "base/text.h"
#include "record/record.h"
#include "stall/site.h"

#define GB_RECORD_FRAMES_MAX 32

struct gb_run_info {
    const char *program;
    const char *rank, *job; /* or "" */
    char host[65];
    long pid;
    uint64_t start_ns; /* gb_now_ns */
    uint64_t start_unix_ns;
};

void gb_line_run(struct gb_json *j, const struct gb_run_info *run);
void gb_line_stacks(struct gb_json *j, const char *python, const char *native);
void gb_line_device(struct gb_json *j, int ordinal, const char *name);
void gb_line_site(struct gb_json *j, const struct gb_site *site);
/* Sites with a set bit in `known`. Returns the offset behind "t_ns", from where equal
 * text means that nothing has changed. */
size_t gb_line_snapshot(struct gb_json *j, uint64_t t_ns, uint64_t dropped, const uint8_t *known);
void gb_line_end(struct gb_json *j, uint64_t t_ns, const char *reason);
/* One readable line, newline included. */
void gb_line_stall(struct gb_text *t, const struct gb_stall_event *event, uint64_t start_ns);

#endif

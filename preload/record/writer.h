/* writer.h: appends whole lines to a file of ours; one line is one write(2).
 *
 * A program may close descriptors that are not its own (closerange before a daemon's work) and get
 * our number for a file of its own: so the file behind the number is checked before each line.
 * One thread at a time. Failure rule: the first failure (full disk, size limit, closed) ends it
 * for good, with its errno kept.
 */
#ifndef GB_WRITER_H
#define GB_WRITER_H

#include "base/gb.h"

struct gb_writer {
    int fd; /* -1: closed or failed */
    int error;
    uint64_t bytes; /* written so far */
    uint64_t device, inode;
};

void gb_writer_open(struct gb_writer *w, int fd);
/* False when this or an earlier line could not be written; w->error says why. */
bool gb_writer_line(struct gb_writer *w, const char *line, size_t length);
void gb_writer_close(struct gb_writer *w);

#endif

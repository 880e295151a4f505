/* record_files.h: what is written to the run directory and when. Used by record.c only.
 *
 * One thread at a time: the caller holds the record's lock. Growth: beyond 64 MiB stalls.log ends
 * with a note, and snapshots come only each time the run has become a quarter longer. Failure rule:
 * after the first line that cannot be written nothing more is; gb_files_problem says why.
 */
#ifndef GB_RECORD_FILES_H
#define GB_RECORD_FILES_H

#include "record/ring.h"
#include "stall/record_lines.h"

/* Who and when; the directory may still fail. */
void gb_files_describe_run(void);
const struct gb_run_info *gb_files_run(void);
/* Makes the run directory, opens the files and writes their heads. */
bool gb_files_open(void);
/* The periodic work: stalls from the ring, a snapshot when one is due. */
void gb_files_tick(struct gb_ring *ring, uint64_t now_ns);
/* The last snapshot and the end line. */
void gb_files_finish(struct gb_ring *ring, uint64_t now_ns);
void gb_files_close(void);

const char *gb_files_path(void);          /* of the directory, "" when there is none */
const char *gb_files_problem(void);       /* "path: reason", "" when all is well */
bool gb_files_renamed(void);              /* GPUBOOST_OUT held an earlier run */
const char *gb_files_device(int ordinal); /* its name, "" when not known; any thread */

#endif

/* log.h: what the library says to a person, always on stderr, always prefixed "gpuboost: ".
 *
 * One write(2) per line from a stack buffer, no stdio, no allocation, errno kept. Says nothing in
 * a process that never armed, except for bad options named GPUBOOST_* once it arms.
 */
#ifndef GB_LOG_H
#define GB_LOG_H

#include "base/gb.h"

enum gb_log_level { GB_LOG_QUIET, GB_LOG_WARN, GB_LOG_INFO, GB_LOG_DEBUG };

/* From the constructor: a stderr that is closed then stays silent for good, since descriptor 2 will
 * be the first file that the program opens. */
void gb_log_start(void);
void gb_log(enum gb_log_level level, const char *format, ...) GB_PRINTF(2, 3);
/* Raw bytes to stderr (the summary); survives EINTR, short writes and a closed fd 2; a pipe that
 * nobody reads never blocks us for good and SIGPIPE is never raised. */
void gb_log_raw(const char *text, size_t length);

#endif

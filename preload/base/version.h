/* version.h: the version of the library and of its record. Read by scripts too. */
#ifndef GB_VERSION_H
#define GB_VERSION_H

#define GB_VERSION       "0.1.0"
#define GB_RECORD_FORMAT 1 /* docs/record.md */

#endif

/* file.h: the few file operations of the library, on system calls alone.
 *
 * stat and fstat have been functions of libc.so.6 only since glibc 2.33, hence the system calls.
 * Descriptors are close-on-exec and kept out of the low numbers that programs count on.
 */
#ifndef GB_FILE_H
#define GB_FILE_H

#include "base/gb.h"

#include <sys/stat.h>

int gb_file_stat(int fd, struct stat *out); /* 0 or -errno */
/* Reads a whole small file into buf and terminates it: its length, or -errno. -EFBIG when it does
 * not fit (buf then holds the beginning), -EINVAL when it is a FIFO, device or directory. */
long gb_file_read(const char *path, char *buf, size_t size);
/* Moves fd to a number >= 100 where the limit allows it, else >= 3; -errno and fd closed when
 * even that fails. */
int gb_file_move_up(int fd);

#endif

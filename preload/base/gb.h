/* gb.h: what every file of the library may rely on.
 *
 * Error rule of the whole library: on any doubt forward the call unchanged and count it. Nothing
 * here exits, aborts, prints to stdout, or takes the GIL. Only functions of libc.so.6 as of glibc
 * 2.17 may be linked (see preload/allowed_symbols); anything else is looked up with elf.h.
 */
#ifndef GB_H
#define GB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GB_EXPORT            __attribute__((visibility("default")))
#define GB_LIKELY(x)         __builtin_expect(!!(x), 1)
#define GB_UNLIKELY(x)       __builtin_expect(!!(x), 0)
#define GB_COLD              __attribute__((cold, noinline))
#define GB_TLS               __thread __attribute__((tls_model("initial-exec")))
#define GB_ARRAY_LEN(a)      (sizeof(a) / sizeof((a)[0]))
#define GB_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/* Relaxed counters: statistics only, never used to order anything. Shared ones are touched only by
 * GB_COUNT, GB_READ and the __atomic built-ins (which clang refuses on _Atomic objects). */
typedef uint64_t gb_counter;
#define GB_COUNT(counter, n) __atomic_fetch_add(&(counter), (uint64_t)(n), __ATOMIC_RELAXED)
#define GB_READ(counter)     __atomic_load_n(&(counter), __ATOMIC_RELAXED)

/* A pageable host-to-device copy up to this size is taken along by the driver, which returns at
 * once (CUDA C++ Programming Guide, "Concurrent Execution between Host and Device"). */
#define GB_SMALL_COPY_BYTES (64u << 10)

/* Monotonic host time in nanoseconds (CLOCK_MONOTONIC, vDSO: no system call). */
uint64_t gb_now_ns(void);

#endif

/* copier.c: the helper that copies along. See copier.h for the rules.
 *
 * A copy is published by one word: its number and the next free block. A block is taken by
 * advancing that word, which fails once another copy has been published; a taken block keeps its
 * copy from ending, so that what describes the copy stays as it is for whoever holds a block of it.
 */
#include "transfer/copier.h"

#include "base/thread.h"

#include <linux/futex.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BLOCK_BYTES  (128u << 10)
#define WORTH_BYTES  (512u << 10) /* below, waking the helper costs more than it brings */
#define HELPER_SPINS 4000         /* about the time between two pieces of a staged copy */
#define CALLER_SPINS 500          /* longer than a block takes: the helper has lost its processor */
#define ALONE_MOST   1024

static struct {
    uint64_t next; /* number of the copy << 32 | next free block */
    uint32_t blocks;
    uint8_t *dst;
    const uint8_t *src;
    size_t bytes;
    uint32_t finished; /* blocks */
    uint32_t number;   /* of the copy; what the helper sleeps on */
    uint32_t asleep;
} job;
static uint32_t started, ready;
static uint32_t taken;          /* a copy is using the helper; holds what follows */
static uint32_t alone, penalty; /* copies to do without it, and how many the next time */

static void pause_briefly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Takes and copies one block of a copy; false when there is none left to take. */
static bool work(uint32_t number)
{
    uint64_t next = __atomic_load_n(&job.next, __ATOMIC_ACQUIRE);
    do {
        if (next >> 32 != number ||
            (uint32_t)next >= __atomic_load_n(&job.blocks, __ATOMIC_RELAXED))
            return false;
    } while (!__atomic_compare_exchange_n(&job.next, &next, next + 1, true, __ATOMIC_ACQUIRE,
                                          __ATOMIC_ACQUIRE));
    size_t start = (size_t)(uint32_t)next * BLOCK_BYTES, left = job.bytes - start;
    memcpy(job.dst + start, job.src + start, left < BLOCK_BYTES ? left : BLOCK_BYTES);
    __atomic_fetch_add(&job.finished, 1, __ATOMIC_RELEASE);
    return true;
}

static bool has_new_copy(uint32_t number)
{
    for (int i = 0; i < HELPER_SPINS; i++) {
        if (__atomic_load_n(&job.number, __ATOMIC_ACQUIRE) != number)
            return true;
        pause_briefly();
    }
    return false;
}

static void help(void *arg)
{
    (void)arg;
    for (;;) {
        uint32_t number = __atomic_load_n(&job.number, __ATOMIC_ACQUIRE);
        while (work(number)) {
        }
        if (has_new_copy(number))
            continue;
        __atomic_store_n(&job.asleep, 1, __ATOMIC_SEQ_CST);
        syscall(SYS_futex, &job.number, FUTEX_WAIT_PRIVATE, number, NULL, NULL, 0);
        __atomic_store_n(&job.asleep, 0, __ATOMIC_RELAXED);
    }
}

static void publish(uint8_t *dst, const uint8_t *src, size_t bytes)
{
    uint32_t number = job.number + 1;
    job.dst = dst;
    job.src = src;
    job.bytes = bytes;
    __atomic_store_n(&job.blocks, (uint32_t)((bytes + BLOCK_BYTES - 1) / BLOCK_BYTES),
                     __ATOMIC_RELAXED);
    __atomic_store_n(&job.finished, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&job.next, (uint64_t)number << 32, __ATOMIC_RELEASE);
    __atomic_store_n(&job.number, number, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&job.asleep, __ATOMIC_SEQ_CST))
        syscall(SYS_futex, &job.number, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* False when the helper was not there to finish its block: the processors are busy. */
static bool wait_for_helper(void)
{
    int i = 0;
    for (; __atomic_load_n(&job.finished, __ATOMIC_ACQUIRE) != job.blocks; i++) {
        if (i < CALLER_SPINS)
            pause_briefly();
        else
            sched_yield();
    }
    return i <= CALLER_SPINS;
}

/* Where the program needs all processors a helper only keeps it waiting: after each such copy it is
 * left out for twice as many. */
static void judge(bool in_time)
{
    if (in_time)
        penalty /= 2;
    else
        alone = penalty = penalty * 2 + 16 < ALONE_MOST ? penalty * 2 + 16 : ALONE_MOST;
}

void gb_copier_start(void)
{
    cpu_set_t processors;
    if (__atomic_exchange_n(&started, 1, __ATOMIC_ACQ_REL))
        return;
    if (sched_getaffinity(0, sizeof processors, &processors) != 0)
        return;
    int count = 0;
    for (size_t i = 0; i < sizeof processors / sizeof(long); i++)
        count += __builtin_popcountl(((const unsigned long *)&processors)[i]);
    if (count > 1 && gb_thread_start(help, NULL, "gpuboost-copy"))
        __atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
}

/* Blocks are counted in 32 bits: 512 TiB. */
void gb_copier_copy(void *dst, const void *src, size_t bytes)
{
    if (bytes < WORTH_BYTES || !__atomic_load_n(&ready, __ATOMIC_ACQUIRE) ||
        __atomic_exchange_n(&taken, 1, __ATOMIC_ACQUIRE)) {
        memcpy(dst, src, bytes);
        return;
    }
    if (alone) {
        alone--;
        memcpy(dst, src, bytes);
    } else {
        publish(dst, src, bytes);
        while (work(job.number)) {
        }
        judge(wait_for_helper());
    }
    __atomic_store_n(&taken, 0, __ATOMIC_RELEASE);
}

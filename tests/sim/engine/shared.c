/* shared.c: what other processes, and agents that no stream orders, see of a device. See shared.h.
 *
 * Under the virtual clock work happens only when its process calls or waits. Another process that
 * waits for an event therefore says so in the event's mark, and a thread of the process that
 * records it does what it takes; under the real clock work comes to its end by itself.
 * Thread rule: sim_lock, but for gpusim_peek, which needs none. Failure rule: see shared.h.
 */
#include "shared.h"
#include "engine.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MARKS       65536
#define BOARD_BYTES (MARKS * sizeof(struct sim_mark))
#define MOST_BOARDS 64
#define LOOK_NS     500000

static int board_file = -1;
static struct sim_mark *board; /* of the events that are recorded here */
static _Atomic unsigned mark_count;

static struct {
    struct sim_event *event;
    uint32_t generation;
} marked[MARKS];

static struct {
    struct sim_shared of;
    struct sim_mark *board;
} others[MOST_BOARDS];
static unsigned other_count;

__attribute__((visibility("default"))) bool gpusim_peek(CUdeviceptr address, void *out,
                                                        size_t bytes)
{
    size_t left;
    const char *at = sim_life == SIM_ALIVE ? sim_mem_alias(address, &left) : NULL;
    if (!at || left < bytes)
        return false;
    memcpy(out, at, bytes);
    return true;
}

/* --- files of other processes --- */

void sim_shared_fill(struct sim_shared *shared, int file)
{
    struct stat status;
    shared->process = getpid();
    shared->file = file;
    shared->inode = fstat(file, &status) == 0 ? status.st_ino : 0;
}

int sim_shared_open(const struct sim_shared *shared)
{
    char path[64];
    struct stat status;
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)shared->process, (int)shared->file);
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file >= 0 && (fstat(file, &status) != 0 || status.st_ino != shared->inode)) {
        close(file);
        return -1;
    }
    return file;
}

static struct sim_mark *map_board(int file)
{
    void *at = mmap(NULL, BOARD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return at == MAP_FAILED ? NULL : at;
}

/* --- events that others wait for --- */

static bool is_asked_for(unsigned slot)
{
    const struct sim_mark *mark = &board[slot];
    return (int64_t)(mark->asked_for - mark->done) > 0;
}

static void *do_what_is_asked_for(void *unused)
{
    struct timespec pause = {.tv_nsec = LOOK_NS};
    while (sim_life == SIM_ALIVE) {
        nanosleep(&pause, NULL);
        for (unsigned slot = 0; slot < mark_count; slot++) {
            if (!is_asked_for(slot))
                continue;
            sim_lock();
            struct sim_event *event = marked[slot].event;
            if (event->live && event->generation == marked[slot].generation && event->op)
                sim_wait_op(event->op);
            sim_unlock();
        }
    }
    return unused;
}

static bool start_board(void)
{
    pthread_t thread;
    if (board)
        return true;
    board_file = memfd_create("gpusim events", MFD_CLOEXEC);
    if (board_file < 0 || ftruncate(board_file, BOARD_BYTES) != 0)
        return false;
    board = map_board(board_file);
    if (!board || !sim.virtual_clock)
        return board != NULL;
    bool made = sim_thread_create(&thread, do_what_is_asked_for);
    if (made)
        pthread_detach(thread);
    return made;
}

/* What the event stands for now is a record too. */
static void report_earlier_work(struct sim_event *event)
{
    struct sim_op *before = event->op;
    if (!before)
        return;
    struct sim_op *op = sim_mark_record(event);
    sim_op_after(op, before);
    event->op = op;
    event->mark->recorded = op->write.value;
    sim_op_submit_loose(event->context->legacy, op);
    sim_op_drop(before);
}

bool sim_mark_share(struct sim_event *event, struct sim_shared *shared)
{
    if (!event->mark) {
        if (!start_board() || mark_count == MARKS)
            return false;
        marked[mark_count].event = event;
        marked[mark_count].generation = event->generation;
        event->mark = &board[mark_count++];
        report_earlier_work(event);
    }
    sim_shared_fill(shared, board_file);
    shared->ordinal = (uint64_t)(event->mark - board);
    return true;
}

struct sim_mark *sim_mark_open(const struct sim_shared *shared)
{
    if (shared->ordinal >= MARKS)
        return NULL;
    for (unsigned i = 0; i < other_count; i++)
        if (others[i].of.process == shared->process && others[i].of.inode == shared->inode)
            return &others[i].board[shared->ordinal];
    int file = other_count < MOST_BOARDS ? sim_shared_open(shared) : -1;
    struct sim_mark *marks = file >= 0 ? map_board(file) : NULL;
    if (file >= 0)
        close(file);
    if (!marks)
        return NULL;
    others[other_count].of = *shared;
    others[other_count++].board = marks;
    return &marks[shared->ordinal];
}

struct sim_op *sim_mark_record(struct sim_event *event)
{
    struct sim_op *op = sim_op_new(SIM_OP_WRITE, SIM_NO_UNIT, 0);
    op->write = (struct sim_write){.dst = (uint64_t)(uintptr_t)&event->mark->done,
                                   .value = event->mark->recorded + 1,
                                   .bytes = sizeof(uint64_t)};
    return op;
}

struct sim_op *sim_mark_wait(struct sim_event *event)
{
    struct sim_op *op = sim_op_new(SIM_OP_WAIT, SIM_NO_UNIT, 0);
    op->wait = (struct sim_wait){.src = (uint64_t)(uintptr_t)&event->mark->done,
                                 .value = event->mark->recorded,
                                 .bytes = sizeof(uint64_t),
                                 .condition = CU_STREAM_WAIT_VALUE_GEQ,
                                 .asked_for = &event->mark->asked_for};
    return op;
}

bool sim_mark_done(struct sim_event *event, uint64_t records)
{
    bool done = (int64_t)(event->mark->done - records) >= 0;
    if (!done)
        event->mark->asked_for = records;
    return done;
}

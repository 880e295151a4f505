/* core_fakes.h: a clock that stands still until it is told, and stacks and a record that are ours;
 * in place of clock.c, lock.c, lifecycle.c, pystack.c, native_stack.c and record.c. One thread
 * only. For the tests of the stall model; each includes it once. */
#ifndef CORE_FAKES_H
#define CORE_FAKES_H

#include "base/lock.h"
#include "options/config.h"
#include "record/record.h"
#include "stack/native_stack.h"
#include "stack/pystack.h"
#include "stall/call.h"
#include "stall/site.h"
#include "stall/stall.h"
#include "stall/stamp.h"

#define US        ((uint64_t)1000)
#define MS        (1000 * US)
#define LATE      (20 * US) /* a call that took this long is looked at */
#define STREAM(n) ((CUstream)(uintptr_t)(0x1000 + 64 * (n)))
#define EVENT(n)  ((CUevent)(uintptr_t)(0x500000 + 48 * (n)))

static uint64_t clock_ns = 1000 * MS;
static uint64_t call_ns; /* how long the call that is being accounted took */

uint64_t gb_late_ticks;

uint64_t gb_now_ns(void)
{
    return clock_ns;
}

void gb_clock_start(void)
{
}

void gb_clock_calibrate(void)
{
}

uint64_t gb_ticks_to_ns(uint64_t ticks)
{
    (void)ticks;
    return call_ns;
}

void gb_lock_acquire(gb_lock *lock)
{
    (void)lock;
}

bool gb_lock_try(gb_lock *lock)
{
    (void)lock;
    return true;
}

bool gb_lock_acquire_for(gb_lock *lock, uint64_t timeout_ns)
{
    (void)lock, (void)timeout_ns;
    return true;
}

void gb_lock_release(gb_lock *lock)
{
    (void)lock;
}

/* ---- always armed ---- */

uint32_t gb_state = GB_STATE_ARMED;

bool gb_lifecycle_arm(void)
{
    return true;
}

bool gb_lifecycle_off(void)
{
    return false;
}

/* ---- the Python stack is a number ---- */

static uint32_t stack;
__attribute__((unused)) static int stacks_taken;

uint32_t gb_pystack_capture(void)
{
    stacks_taken++;
    return stack;
}

int gb_pystack_frames(uint32_t id, struct gb_pyframe *out, int max)
{
    (void)id, (void)out, (void)max;
    return 0;
}

const char *gb_pystack_status(void)
{
    return "";
}

void gb_pystack_after_fork(void)
{
}

int gb_native_stack_capture(void **pcs, int max)
{
    (void)pcs, (void)max;
    return 0;
}

const char *gb_native_stack_status(void)
{
    return "";
}

void gb_native_frame_name(const void *pc, char *buf, size_t size)
{
    (void)pc, (void)size;
    *buf = 0;
}

/* ---- the record is the last event ---- */

static struct gb_stall_event said;
__attribute__((unused)) static int said_count;

void gb_record_stall(const struct gb_stall_event *event)
{
    said = *event;
    said_count++;
}

void gb_record_open(void)
{
}

void gb_record_device(int ordinal, const char *name)
{
    (void)ordinal, (void)name;
}

void gb_record_close(void)
{
}

const char *gb_record_path(void)
{
    return "";
}

void gb_record_after_fork(void)
{
}

/* ---- calls of a program: each takes `ns` of the clock, from the line whose stack is `stack` ----
 */

__attribute__((unused)) static struct gb_site *site_of_line(unsigned hook, uint32_t line)
{
    return gb_site_find(hook, line, NULL);
}

static struct gb_call begin(unsigned hook, CUstream stream)
{
    struct gb_call call;
    gb_thread.outer_frame = 0; /* every call is a thread's own */
    gb_call_begin(&call, hook, stream, __builtin_frame_address(0), NULL);
    return call;
}

static void pass(uint64_t ns)
{
    clock_ns += ns;
}

/* The call began `ns` ago and returns now. */
static void took(uint64_t ns)
{
    call_ns = ns;
    gb_late_ticks = ns >= LATE ? 0 : UINT64_MAX;
}

static void sync_stream(CUstream stream, uint64_t ns)
{
    struct gb_call call = begin(GB_HOOK_cudaStreamSynchronize, stream);
    pass(ns);
    took(ns);
    gb_stall_stream(&call, true);
}

__attribute__((unused)) static void sync_event(CUevent event, uint64_t ns)
{
    struct gb_call call = begin(GB_HOOK_cudaEventSynchronize, NULL);
    pass(ns);
    took(ns);
    gb_stall_event(&call, event, true);
}

__attribute__((unused)) static void sync_gpu(uint64_t ns)
{
    struct gb_call call = begin(GB_HOOK_cudaDeviceSynchronize, NULL);
    struct gb_snapshot given;
    gb_gpu_snapshot(gb_gpu_here(), &given);
    pass(ns);
    took(ns);
    gb_stall_gpu(&call, gb_gpu_here(), &given, true);
}

__attribute__((unused)) static void query_stream(CUstream stream, bool done)
{
    struct gb_call call = begin(GB_HOOK_cudaStreamQuery, stream);
    took(0);
    gb_stall_query(&call, done ? call.stream : NULL, call.seq);
}

static void copy(const struct gb_copy *what, CUstream stream, uint64_t ns)
{
    struct gb_call call = begin(GB_HOOK_cudaMemcpyAsync, stream);
    call.background = gb_copy_is_background(what);
    pass(ns);
    took(ns);
    gb_stall_copy(&call, what, true);
}

static void copy_h2d(CUstream stream, size_t bytes, uint64_t ns)
{
    copy(&(struct gb_copy){GB_COPY_H2D, (void *)0x7000000, (void *)0x100000, bytes, true}, stream,
         ns);
}

__attribute__((unused)) static void copy_d2h(CUstream stream, size_t bytes, uint64_t ns)
{
    copy(&(struct gb_copy){GB_COPY_D2H, (void *)0x100000, (void *)0x7000000, bytes, true}, stream,
         ns);
}

__attribute__((unused)) static uint64_t idle_total(void)
{
    struct gb_totals totals;
    gb_totals_read(&totals);
    return totals.idle_ns;
}

#endif

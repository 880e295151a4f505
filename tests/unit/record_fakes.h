/* record_fakes.h: a site table, totals and stacks made by hand, in place of the real ones.
 *
 * For the tests of the record and the summary; each includes it once. fake_reset gives an empty
 * table in which only the overflow site exists.
 */
#ifndef RECORD_FAKES_H
#define RECORD_FAKES_H

#include <stdio.h>
#include <string.h>

#include "record/record.h"
#include "stack/native_stack.h"
#include "stack/pystack.h"
#include "stall/site.h"

enum { FAKE_SYNC, FAKE_COPY, FAKE_FREE, FAKE_HOOKS };

static struct gb_site fake_sites[GB_SITE_MAX];
static uint32_t fake_site_count;
static struct gb_totals fake_totals;
static struct gb_named_count fake_counts[8];
static int fake_count_count;
static struct gb_pyframe fake_stacks[16][4]; /* by stack id; ends at a NULL file */
static const char *fake_python = "on: CPython 3.11.7, fixed table";

uint32_t gb_site_count(void)
{
    return fake_site_count;
}

struct gb_site *gb_site_at(uint32_t id)
{
    return &fake_sites[id];
}

const char *gb_hook_name(unsigned hook)
{
    static const char *const names[] = {"cudaStreamSynchronize", "cudaMemcpyAsync", "cudaFree"};
    return names[hook];
}

const char *gb_hook_family(unsigned hook)
{
    static const char *const families[] = {"sync", "copy", "free"};
    return families[hook];
}

void gb_totals_read(struct gb_totals *out)
{
    *out = fake_totals;
}

int gb_named_counts(struct gb_named_count *out, int max)
{
    int n = fake_count_count < max ? fake_count_count : max;
    memcpy(out, fake_counts, (size_t)n * sizeof *out);
    return n;
}

uint32_t gb_pystack_capture(void)
{
    return 0;
}

int gb_pystack_frames(uint32_t id, struct gb_pyframe *out, int max)
{
    int n = 0;
    while (id < 16 && n < 4 && n < max && fake_stacks[id][n].file) {
        out[n] = fake_stacks[id][n];
        n++;
    }
    return n;
}

const char *gb_pystack_status(void)
{
    return fake_python;
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
    return "off: no libunwind";
}

void gb_native_frame_name(const void *pc, char *buf, size_t size)
{
    snprintf(buf, size, "libtorch_cuda.so+0x%lx", (unsigned long)(uintptr_t)pc);
}

static inline void fake_reset(void)
{
    memset(fake_sites, 0, sizeof fake_sites);
    memset(&fake_totals, 0, sizeof fake_totals);
    memset(fake_stacks, 0, sizeof fake_stacks);
    fake_site_count = 1;
    fake_count_count = 0;
    fake_python = "on: CPython 3.11.7, fixed table";
}

static inline struct gb_site *fake_site(uint16_t hook, uint32_t stack, uint64_t calls,
                                        uint64_t idle_ns)
{
    struct gb_site *s = &fake_sites[fake_site_count];
    s->id = fake_site_count++;
    s->hook = hook;
    s->stack_id = stack;
    s->calls = calls;
    s->idle_ns = idle_ns;
    s->bubbles = idle_ns ? calls : 0;
    strcpy(s->module, "libtorch_cuda.so");
    return s;
}

static inline void fake_count(const char *name, uint64_t count)
{
    fake_counts[fake_count_count++] = (struct gb_named_count){name, count};
}

static inline void fake_stack(uint32_t id, int index, const char *file, int line, const char *func)
{
    fake_stacks[id][index] = (struct gb_pyframe){file, func, line};
}

#endif

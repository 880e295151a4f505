/* call_log.c: one line per call, the same in two runs that do the same.
 *
 * Handles and addresses are written as ordinals of their creation, host memory by its kind:
 * s3 stream, e3 event, c1 context, d5+64 device allocation, p2+0 page-locked, r2+0 registered,
 * m1+0 managed, i1+0 another process's, host. Text of the runtime stand-in goes through the same
 * hands. GPUSIM_LOG_ADDRESSES=1 adds what tests/checker/call_log.py describes. Thread rule:
 * sim_lock or its own lock. Failure rule: a log that cannot be opened is off.
 */
#include "engine.h"

#include "../driver/log_args.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool sim_log_on, sim_log_addresses;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *file;
static uint64_t next_thread;

static __thread bool giving_results;
static __thread char behind[16384]; /* what stands behind the result */

void sim_log_start(void)
{
    if (!*SIM_TEXT(LOG))
        return;
    file = fopen(SIM_TEXT(LOG), "ae");
    if (!file)
        fprintf(stderr, "gpusim: cannot write %s\n", SIM_TEXT(LOG));
    else
        setvbuf(file, NULL, _IOLBF, 1 << 16);
    sim_log_on = file != NULL;
    sim_log_addresses = sim_log_on && SIM_NUMBER(LOG_ADDRESSES) != 0;
}

void sim_log_line(const char *layer, const char *name, const char *args, int result)
{
    if (sim_life == SIM_FORKED)
        return;
    pthread_mutex_lock(&lock);
    if (!sim_thread.ordinal)
        sim_thread.ordinal = ++next_thread;
    bool per_thread = sim_log_addresses && sim_thread.per_thread_default;
    fprintf(file, "%lu %s %s%s(%s) = %d%s\n", sim_thread.ordinal, layer, name,
            per_thread ? "_per_thread" : "", args, result, behind);
    behind[0] = 0;
    pthread_mutex_unlock(&lock);
}

/* --- what an address or a handle is called --- */

static void name_address(char *text, size_t size, uint64_t address)
{
    static const char letters[] = {
        [SIM_UNKNOWN] = '?', [SIM_DEVICE] = 'd',   [SIM_POOL] = 'q',   [SIM_VMM] = 'v',
        [SIM_MANAGED] = 'm', [SIM_IMPORTED] = 'i', [SIM_PINNED] = 'p', [SIM_REGISTERED] = 'r'};
    struct sim_range range;
    if (address == 0)
        snprintf(text, size, "0");
    else if (sim_object_name(address, text, size))
        return;
    else if (sim_memory_find(address, &range) && sim_log_addresses &&
             (range.kind == SIM_VMM || range.kind == SIM_REGISTERED))
        snprintf(text, size, "%c+%lu", letters[range.kind], address);
    else if (sim_memory_find(address, &range))
        snprintf(text, size, "%c%lu+%lu", letters[range.kind], range.ordinal, address - range.base);
    else
        snprintf(text, size, sim_log_addresses ? "%s+%lu" : "%s",
                 sim_is_device_address(address) ? "gone" : "host", address);
}

static void add_behind(const char *format, ...)
{
    size_t used = strlen(behind);
    va_list list;
    va_start(list, format);
    size_t more = (size_t)vsnprintf(behind + used, sizeof(behind) - used, format, list);
    va_end(list);
    if (more >= sizeof(behind) - used)
        behind[used] = 0;
}

static void put(const char *text)
{
    char *args = sim_thread.args;
    size_t used = strlen(args);
    if (giving_results)
        return;
    snprintf(args + used, sizeof(sim_thread.args) - used, "%s%s", used ? ", " : "", text);
}

void sim_arg_number(long long value)
{
    char text[32];
    snprintf(text, sizeof(text), "%lld", value);
    put(text);
}

void sim_arg_unsigned(unsigned long long value)
{
    char text[32];
    snprintf(text, sizeof(text), "%llu", value);
    put(text);
}

void sim_arg_size(size_t value)
{
    sim_arg_unsigned(value);
}

void sim_arg_float(float value)
{
    char text[32];
    snprintf(text, sizeof(text), "%g", (double)value);
    put(text);
}

/* An unsigned long long is a device address in most places, small numbers elsewhere. */
void sim_arg_address(CUdeviceptr value)
{
    if (value < 4096)
        sim_arg_unsigned(value);
    else
        sim_arg_pointer((const void *)value);
}

void sim_arg_pointer(const void *value)
{
    char text[64];
    name_address(text, sizeof(text), (uint64_t)value);
    put(text);
}

void sim_arg_stream(CUstream value)
{
    if ((uint64_t)value <= 2)
        put(value ? value == CU_STREAM_LEGACY ? "legacy" : "per-thread"
            : sim_log_addresses && sim_thread.per_thread_default ? "per-thread"
                                                                 : "0");
    else
        sim_arg_pointer(value);
}

void sim_arg_text(const char *value)
{
    char text[64];
    snprintf(text, sizeof(text), "\"%s\"", value ? value : "");
    put(text);
}

void sim_arg_graph(const void *value)
{
    char text[32];
    snprintf(text, sizeof(text), sim_log_addresses && value ? "g%lu" : "*", (uint64_t)value);
    put(text);
}

void sim_arg_config(const CUlaunchConfig *value)
{
    if (sim_log_addresses && value)
        sim_arg_stream(value->hStream);
    else
        put("*");
}

void sim_arg_result(void *const *value)
{
    char text[64];
    put("*");
    if (!giving_results || !value)
        return;
    name_address(text, sizeof(text), (uint64_t)*value);
    if (strncmp(text, "host", 4) != 0)
        add_behind(" %s", text);
}

void sim_arg_graph_result(void *const *value)
{
    put("*");
    if (giving_results && value)
        add_behind(" g%lu", (uint64_t)*value);
}

void sim_arg_other(const char *unused, ...)
{
    (void)unused;
    put("*");
}

/* --- GPUSIM_LOG_ADDRESSES --- */

void sim_log_results(bool on)
{
    giving_results = on;
}

void sim_log_rows(const char *how, uint64_t address, size_t bytes, size_t rows, size_t pitch)
{
    char text[64];
    if (!sim_log_addresses)
        return;
    name_address(text, sizeof(text), address);
    if (rows > 1)
        add_behind(" %s %s:%lu*%lu/%lu", how, text, bytes, rows, pitch);
    else
        add_behind(" %s %s:%lu", how, text, bytes);
}

void sim_log_range(const char *how, uint64_t address, size_t bytes)
{
    sim_log_rows(how, address, bytes, 1, 0);
}

void sim_log_copy(const struct sim_copy *box)
{
    for (size_t i = 0; i < box->depth; i++)
        sim_log_rows("reads", box->src + i * box->src_slice, box->width, box->height,
                     box->src_pitch);
    for (size_t i = 0; i < box->depth; i++)
        sim_log_rows("writes", box->dst + i * box->dst_slice, box->width, box->height,
                     box->dst_pitch);
}

void sim_log_host_function(const void *data)
{
    char text[64];
    if (!sim_log_addresses)
        return;
    name_address(text, sizeof(text), (uint64_t)data);
    sim_log_line("note", "starts", text, 0);
}

__attribute__((visibility("default"))) void gpusim_note_access(const void *address, size_t bytes,
                                                               int writes);

void gpusim_note_access(const void *address, size_t bytes, int writes)
{
    char text[96];
    if (!sim_log_addresses)
        return;
    name_address(text, 64, (uint64_t)address);
    snprintf(text + strlen(text), 32, ", %lu", bytes);
    sim_log_line("note", writes ? "writes" : "reads", text, 0);
}

/* --- the runtime stand-in's lines --- */

/* Replaces every 0x... of a text by what it is called. */
static void normalise(char *out, size_t size, const char *in)
{
    size_t used = 0;
    while (*in && used + 64 < size) {
        if (in[0] == '0' && in[1] == 'x') {
            char *end;
            name_address(out + used, size - used, strtoull(in, &end, 16));
            used += strlen(out + used);
            in = end;
        } else {
            out[used++] = *in++;
        }
    }
    out[used] = 0;
}

__attribute__((visibility("default"))) void gpusim_log_call(const char *layer, const char *format,
                                                            ...);

void gpusim_log_call(const char *layer, const char *format, ...)
{
    if (!sim_log_on || sim_life == SIM_FORKED)
        return;
    char text[512], clean[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    normalise(clean, sizeof(clean), text);
    pthread_mutex_lock(&lock);
    if (!sim_thread.ordinal)
        sim_thread.ordinal = ++next_thread;
    fprintf(file, "%lu %s %s\n", sim_thread.ordinal, layer, clean);
    pthread_mutex_unlock(&lock);
}

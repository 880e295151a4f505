/* pystack_probe.c: lets a Python program look at its own stack through preload/stack/pystack*.c.
 *
 * Built by tests/e2e/test_pystack.py together with the library's sources, loaded with ctypes:
 * CDLL releases the GIL around each call, PyDLL holds it, as the two kinds of C extensions do.
 */
#include "base/elf.h"
#include "stack/native_stack.h"
#include "stack/pystack.h"
#include "stack/pystack_internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROBE __attribute__((visibility("default")))

PROBE uint32_t probe_capture(void);
PROBE int probe_frames(uint32_t id, struct gb_pyframe *out, int max);
PROBE const char *probe_status(void);
PROBE void probe_after_fork(void);
PROBE uint32_t probe_capture_many(int n);
PROBE uint32_t probe_foreign_thread(void);
PROBE uint32_t probe_callback_thread(void (*callback)(void));
PROBE void probe_lines(int format, const uint8_t *table, size_t bytes, int first, int step,
                       int count, int *out);
PROBE int probe_field_count(void);
PROBE const char *probe_mutated_proof(int field, int delta);
PROBE void probe_lock(void);
PROBE void probe_unlock(void);
PROBE uint32_t probe_capture_locked(void);
PROBE int probe_native(char *names, int max);
PROBE const char *probe_native_status(void);
PROBE const char *probe_symbol_module(const char *symbol);

uint32_t probe_capture(void)
{
    return gb_pystack_capture();
}

int probe_frames(uint32_t id, struct gb_pyframe *out, int max)
{
    return gb_pystack_frames(id, out, max);
}

const char *probe_status(void)
{
    return gb_pystack_status();
}

void probe_after_fork(void)
{
    gb_pystack_after_fork();
}

/* The same stack n times; UINT32_MAX - 1 when the answers differ. */
uint32_t probe_capture_many(int n)
{
    uint32_t first = gb_pystack_capture();
    while (n-- > 0)
        if (gb_pystack_capture() != first)
            return UINT32_MAX - 1;
    return first;
}

static void *foreign(void *out)
{
    *(uint32_t *)out = gb_pystack_capture();
    return NULL;
}

/* A C thread that Python has never seen. */
uint32_t probe_foreign_thread(void)
{
    pthread_t thread;
    uint32_t id = 12345;
    pthread_create(&thread, NULL, foreign, &id);
    pthread_join(thread, NULL);
    return id;
}

struct attach {
    void (*callback)(void);
    uint32_t before, after;
};

static void *attaching(void *arg)
{
    struct attach *a = arg;
    a->before = gb_pystack_capture();
    a->callback(); /* ctypes attaches the thread for the call, as torch's autograd threads do */
    a->after = gb_pystack_capture();
    return NULL;
}

uint32_t probe_callback_thread(void (*callback)(void))
{
    struct attach a = {callback, 1, 1};
    pthread_t thread;
    pthread_create(&thread, NULL, attaching, &a);
    pthread_join(thread, NULL);
    return a.before + a.after;
}

void probe_lines(int format, const uint8_t *table, size_t bytes, int first, int step, int count,
                 int *out)
{
    for (int i = 0; i < count; i++)
        out[i] = gb_py_line((enum gb_py_lines)format, table, bytes, first, (int64_t)i * step);
}

/* The fields of the layout that are offsets, in order, as an array. */
static uint16_t *layout_field(struct gb_py_layout *l, int field)
{
    return (uint16_t *)((char *)l + offsetof(struct gb_py_layout, tstate_frame)) + field;
}

int probe_field_count(void)
{
    return (int)((offsetof(struct gb_py_layout, position) -
                  offsetof(struct gb_py_layout, tstate_frame)) /
                 sizeof(uint16_t));
}

/* The proof of the calling thread's stack with one number of the layout changed. "skip": this
 * version has no such field. */
const char *probe_mutated_proof(int field, int delta)
{
    struct gb_py_process py;
    if (gb_py_find(&py))
        return "not found";
    uint16_t *number = layout_field(&py.layout, field);
    if (*number == GB_PY_NONE)
        return "skip";
    *number = (uint16_t)(*number + delta);
    const char *wrong = gb_py_proof(&py, (uintptr_t)py.thread_state());
    return wrong ? wrong : "proven";
}

static pthread_mutex_t library_lock = PTHREAD_MUTEX_INITIALIZER;

void probe_lock(void)
{
    pthread_mutex_lock(&library_lock);
}

void probe_unlock(void)
{
    pthread_mutex_unlock(&library_lock);
}

/* Called with the GIL released: takes the lock, gives another thread half a second to take the GIL
 * and want the lock, then captures. */
uint32_t probe_capture_locked(void)
{
    pthread_mutex_lock(&library_lock);
    usleep(500000);
    uint32_t id = gb_pystack_capture();
    pthread_mutex_unlock(&library_lock);
    return id;
}

/* Native frames of this call, one name a line. */
int probe_native(char *names, int max)
{
    void *pcs[64];
    int n = gb_native_stack_capture(pcs, 64);
    names[0] = 0;
    for (int i = 0; i < n; i++) {
        char name[256];
        gb_native_frame_name(pcs[i], name, sizeof name);
        if ((int)(strlen(names) + strlen(name) + 2) < max)
            strcat(strcat(names, name), "\n");
    }
    return n;
}

const char *probe_native_status(void)
{
    return gb_native_stack_status();
}

const char *probe_symbol_module(const char *symbol)
{
    static struct gb_elf_module m;
    const void *found = gb_elf_find("pystack_probe", symbol);
    return found && gb_elf_module_of(found, &m) ? m.name : "";
}

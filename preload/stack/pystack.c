/* pystack.c: set-up, the walk over the calling thread's own frames, first sight of a stack.
 *
 * Why reading without the GIL is right: only the owning thread pushes and pops its frames, it is
 * inside a C call while we look, frames hold strong references to their code, code to its texts and
 * tables, and all of these are immutable. Nothing here takes the GIL: another thread may hold it
 * and wait for a lock of ours or of the driver. Thread rule: any thread may capture; set-up is done
 * by one, the others get 0 meanwhile. Failure rule: in doubt 0 frames, with the reason in the
 * status.
 */
#include "stack/pystack_internal.h"

#include "base/lock.h"

#include <stdio.h>
#include <string.h>

#define BACK_OFF_CALLS 1024 /* without Python: look at calls 1, 2, 4 ... 1024, then each 1024th */
#define MAX_LINKS      (4 * GB_PYSTACK_MAX_FRAMES) /* frames and shims together */
#define PATIENCE_NS                                                                                \
    20000000u /* for the lock; its holder needs microseconds, unless it is a                       \
                 signal's victim below us on this very stack */
#define PLACE_HIDDEN GB_PY_ID_MAX

enum phase { PHASE_SEARCH, PHASE_BUSY, PHASE_WAIT_FRAMES, PHASE_ON, PHASE_OFF };

/* At most about 12 MiB of address space, touched only as it fills. */
static const struct gb_py_limits limits = {.map_slots = 1 << 17,
                                           .text_bytes = 4 << 20,
                                           .texts = 1 << 15,
                                           .places = 1 << 16,
                                           .stacks = 1 << 15,
                                           .pool = 1 << 20};

static struct gb_py_process python;
static struct gb_py_table table;
static uint32_t phase;    /* enum phase */
static uint64_t searches; /* captures before Python was found */
static gb_lock table_lock;
static char status_text[160];

/* ---- the walk ---- */

#define MULTIPLIER_A UINT64_C(0x9e3779b97f4a7c15)
#define MULTIPLIER_B UINT64_C(0xd6e8feb86659fd93)
#define MULTIPLIER_C UINT64_C(0xa0761d6478bd642f)

static inline uint64_t fold(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t load_word(uintptr_t p)
{
    return *(const uint64_t *)p;
}

/* Hash of a str: the cached one, else (3.9-3.11 do not hash file names) its length and end. A short
 * one has 8 readable bytes all the same, since allocations are multiples of 16; those behind an
 * ASCII text are left out, behind another they are at least always the same. */
static inline uint64_t guard_text(const struct gb_py_layout *l, uintptr_t text)
{
    uint64_t length = load_word(text + l->str_length), hash = load_word(text + l->str_length + 8);
    if (GB_LIKELY(hash != UINT64_MAX) || length == 0)
        return hash ^ length;
    bool ascii = GB_PY_STR_ASCII(*(const uint32_t *)(text + l->str_state));
    uint64_t end[2] = {0, 0};
    const char *data = (const char *)text + (ascii ? l->str_ascii : l->str_compact);
    if (length < 8) {
        uint64_t start = load_word((uintptr_t)data);
        return length ^ (ascii ? start << (64 - 8 * length) : start) * MULTIPLIER_A;
    }
    memcpy(end, data + length - 8, 8);
    if (length >= 16)
        memcpy(end + 1, data + length - 16, 8);
    return length ^ end[0] * MULTIPLIER_A ^ end[1] * MULTIPLIER_B;
}

/* What tells a code object from a later one at the same address. 3.12 and later number their code
 * objects (co_version); before, the names, the first line and three words of the line table (all of
 * it up to 24 bytes) must do. A bytes object's allocation is never smaller than 48 bytes, so that
 * its first word is readable even when it is empty; in a short one the other two reach back into
 * the header, which does no harm. */
static inline uint64_t guard_of(const struct gb_py_layout *l, uintptr_t code, bool versioned)
{
    if (versioned)
        return *(const uint32_t *)(code + l->code_version);
    uintptr_t lines = load_word(code + l->code_linetable), data = lines + l->bytes_data;
    uint64_t size = load_word(lines + l->bytes_size);
    uint64_t head = load_word(data), middle = load_word(data + size / 2 - 4);
    uint64_t tail = load_word(data + size - 8);
    uint64_t first = *(const uint32_t *)(code + l->code_firstlineno);
    return guard_text(l, load_word(code + l->code_name)) ^
           guard_text(l, load_word(code + l->code_filename)) * MULTIPLIER_C ^
           (lines + (first << 40) + (size << 20) + tail) * MULTIPLIER_B ^
           (head + (middle << 32 | middle >> 32)) * MULTIPLIER_A;
}

/* One hash over the frames of this thread, innermost first; *count is how many. With `out`, the
 * frames themselves too. Inlined twice, so that `versioned` (3.12 and later, where every frame has
 * an owner and points at its instruction) costs no test in the loop. */
static inline __attribute__((always_inline)) uint64_t walk(uintptr_t tstate, bool versioned,
                                                           struct gb_py_frame *out, int *count)
{
    const struct gb_py_layout *l = &python.layout;
    const size_t code_at = l->frame_code, previous_at = l->frame_previous;
    const size_t position_at = l->frame_position, owner_at = l->frame_owner;
    const bool owned = versioned || l->frame_owner != GB_PY_NONE;
    const bool pointed = versioned || l->position == GB_PY_POINTER;
    uintptr_t frame = load_word(tstate + l->tstate_frame);
    uint64_t hash = 0;
    int n = 0;
    if (l->cframe_frame != GB_PY_NONE)
        frame = load_word(frame + l->cframe_frame);
    for (int links = 0; frame && n < GB_PYSTACK_MAX_FRAMES && links < MAX_LINKS; links++) {
        uintptr_t this = frame;
        frame = load_word(this + previous_at);
        unsigned owner = owned ? *(const uint8_t *)(this + owner_at) : 0;
        if (GB_UNLIKELY(owner >= GB_PY_OWNER_SHIM))
            continue;
        uintptr_t code = load_word(this + code_at) & ~(uintptr_t)1; /* 3.14: tagged */
        uint64_t position =
            pointed ? load_word(this + position_at) : *(const uint32_t *)(this + position_at);
        uint64_t guard = guard_of(l, code, versioned);
        uint64_t key = fold(code + guard * MULTIPLIER_C, position ^ MULTIPLIER_A);
        if (out)
            out[n] = (struct gb_py_frame){code, position, key, owner};
        hash = ((hash << 29 | hash >> 35) ^ key) * MULTIPLIER_B;
        n++;
    }
    *count = n;
    return fold(hash ^ MULTIPLIER_A, MULTIPLIER_C);
}

/* ---- first sight ---- */

/* Place of a frame, PLACE_HIDDEN when the interpreter hides it too, 0 when the table is full. */
static uint32_t place_of(const struct gb_py_frame *frame, struct gb_py_code *code)
{
    uint32_t place = gb_py_map_get(&table.place_by_key, frame->key);
    if (place)
        return place;
    if (gb_py_code_read(&python, gb_py_read_plain, frame, code) || code->hidden) {
        place = PLACE_HIDDEN;
    } else {
        int line = gb_py_line(python.layout.lines, (const uint8_t *)code->table, code->table_bytes,
                              code->firstlineno, code->lasti);
        uint32_t file = gb_py_table_text(&table, code->file, code->file_bytes);
        uint32_t func = gb_py_table_text(&table, code->func, code->func_bytes);
        place = file && func ? gb_py_table_place(&table, file, func, line) : 0;
    }
    if (place)
        gb_py_map_put(&table.place_by_key, frame->key, place);
    return place;
}

static uint32_t intern(uint64_t key, const struct gb_py_frame *frames, int count)
{
    uint32_t places[GB_PYSTACK_MAX_FRAMES], n = 0;
    struct gb_py_code code;
    for (int i = 0; i < count; i++) {
        uint32_t place = place_of(&frames[i], &code);
        if (!place)
            return GB_PYSTACK_OVERFLOW;
        if (place != PLACE_HIDDEN)
            places[n++] = place;
    }
    if (n == 0)
        return 0;
    uint32_t id = gb_py_table_stack(&table, places, n);
    if (!id)
        return GB_PYSTACK_OVERFLOW;
    gb_py_map_put(&table.stack_by_key, key, id);
    return id;
}

static GB_COLD uint32_t first_sight(uintptr_t tstate, bool versioned)
{
    struct gb_py_frame frames[GB_PYSTACK_MAX_FRAMES];
    int count;
    if (__atomic_load_n(&table.full, __ATOMIC_RELAXED))
        return GB_PYSTACK_OVERFLOW;
    uint64_t key = walk(tstate, versioned, frames, &count);
    if (!gb_lock_acquire_for(&table_lock, PATIENCE_NS))
        return GB_PYSTACK_OVERFLOW;
    uint32_t id = gb_py_map_get(&table.stack_by_key, key); /* another thread was first? */
    if (!id)
        id = intern(key, frames, count);
    gb_lock_release(&table_lock);
    return id;
}

/* ---- set-up ---- */

static bool worth_a_search(void)
{
    uint64_t n = __atomic_add_fetch(&searches, 1, __ATOMIC_RELAXED);
    return n <= BACK_OFF_CALLS ? (n & (n - 1)) == 0 : n % BACK_OFF_CALLS == 0;
}

static bool finalizing(uintptr_t tstate)
{
    uintptr_t by = __atomic_load_n(
        (const uintptr_t *)(python.runtime + python.layout.runtime_finalizing), __ATOMIC_RELAXED);
    return by && by != tstate; /* daemon threads' states are being torn down */
}

static enum phase switch_off(const char *why)
{
    const char *name = python.version[0] ? "CPython " : "";
    snprintf(status_text, sizeof status_text, "off: %s%s%s%s", name, python.version,
             name[0] ? ": " : "", why);
    return PHASE_OFF;
}

static enum phase prove(void)
{
    uintptr_t tstate = (uintptr_t)python.thread_state();
    if (!tstate || finalizing(tstate))
        return PHASE_WAIT_FRAMES;
    const char *wrong = gb_py_proof(&python, tstate);
    if (wrong && !wrong[0])
        return PHASE_WAIT_FRAMES;
    if (wrong) {
        char text[96];
        snprintf(text, sizeof text, "failed the start-up proof: %s", wrong);
        return switch_off(text);
    }
    if (!gb_py_table_init(&table, &limits))
        return switch_off("no memory for its tables");
    snprintf(status_text, sizeof status_text, "on: CPython %s, %s", python.version,
             python.layout.published ? "published offsets" : "fixed table");
    return PHASE_ON;
}

/* Takes the search or the proof a step further; true when captures may go on. No lock is held over
 * the search: it takes the loader's lock, which a thread on its way into a hook may hold. */
static GB_COLD bool set_up(void)
{
    uint32_t now = __atomic_load_n(&phase, __ATOMIC_ACQUIRE);
    if (now == PHASE_ON)
        return true;
    if (now == PHASE_BUSY || now == PHASE_OFF || (now == PHASE_SEARCH && !worth_a_search()))
        return false;
    if (!__atomic_compare_exchange_n(&phase, &now, PHASE_BUSY, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED))
        return false;
    uint32_t next = PHASE_SEARCH;
    const char *wrong = now == PHASE_SEARCH ? gb_py_find(&python) : NULL;
    if (!wrong)
        next = prove();
    else if (wrong[0])
        next = switch_off(wrong);
    __atomic_store_n(&phase, next, __ATOMIC_RELEASE);
    return next == PHASE_ON;
}

/* ---- interface ---- */

uint32_t gb_pystack_capture(void)
{
    if (GB_UNLIKELY(__atomic_load_n(&phase, __ATOMIC_ACQUIRE) != PHASE_ON) && !set_up())
        return 0;
    uintptr_t tstate = (uintptr_t)python.thread_state();
    if (!tstate || finalizing(tstate))
        return 0;
    bool versioned = python.layout.code_version != GB_PY_NONE;
    int count;
    uint64_t key = versioned ? walk(tstate, true, NULL, &count) : walk(tstate, false, NULL, &count);
    if (!count)
        return 0;
    uint32_t id = gb_py_map_get(&table.stack_by_key, key);
    return GB_LIKELY(id) ? id : first_sight(tstate, versioned);
}

int gb_pystack_frames(uint32_t id, struct gb_pyframe *out, int max)
{
    if (__atomic_load_n(&phase, __ATOMIC_ACQUIRE) != PHASE_ON)
        return 0;
    return gb_py_table_frames(&table, id, out, max);
}

const char *gb_pystack_status(void)
{
    uint32_t now = __atomic_load_n(&phase, __ATOMIC_ACQUIRE);
    if (now == PHASE_ON || now == PHASE_OFF)
        return status_text;
    return now == PHASE_SEARCH ? "no Python in this process" : "waiting for the first Python frame";
}

void gb_pystack_after_fork(void)
{
    /* A thread that does not exist here was at work on the table: what is complete can be read, but
     * nothing may be added. Half a set-up is begun again. */
    if (__atomic_load_n(&table_lock.state, __ATOMIC_RELAXED))
        table.full = true;
    table_lock = (gb_lock){0};
    if (__atomic_load_n(&phase, __ATOMIC_RELAXED) == PHASE_BUSY)
        __atomic_store_n(&phase, PHASE_SEARCH, __ATOMIC_RELEASE);
}

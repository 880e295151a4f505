/* pystack_internal.h: what the pystack*.c files share. Nothing outside them includes it.
 *
 *   pystack_layout.c   which interpreter is this, and where are its fields
 *   pystack_code.c     a code object's names and table, read through a reader, checked
 *   pystack_proof.c    the start-up proof: one live stack read with reads that cannot fault
 *   pystack_lines.c    instruction to line: pure
 *   pystack_table.c    interned texts, places and stacks, and the lock-free look-up: pure
 *   pystack.c          set-up, the walk, first sight
 */
#ifndef GB_PYSTACK_INTERNAL_H
#define GB_PYSTACK_INTERNAL_H

#include "base/gb.h"
#include "stack/pystack.h"

/* ---- layout: byte offsets in one interpreter, LP64 ---- */

enum gb_py_lines { GB_PY_LNOTAB, GB_PY_PAIRS, GB_PY_LOCATIONS };
enum gb_py_position {
    GB_PY_BYTES,  /* f_lasti is a byte index (3.9) */
    GB_PY_UNITS,  /* f_lasti counts two-byte units (3.10) */
    GB_PY_POINTER /* the frame points at the instruction (3.11 and later) */
};
#define GB_PY_NONE 0xffff /* this version has no such field */

/* Bits of the word at str_state, the same in every build with a GIL (PyASCIIObject.state). */
#define GB_PY_STR_KIND(state)    (((state) >> 2) & 7)
#define GB_PY_STR_COMPACT(state) (((state) >> 5) & 1)
#define GB_PY_STR_ASCII(state)   (((state) >> 6) & 1)

struct gb_py_layout {
    uint16_t minor;
    uint16_t runtime_finalizing;
    uint16_t tstate_frame; /* the frame, or the cframe where there is one */
    uint16_t cframe_frame;
    uint16_t frame_previous, frame_code, frame_position, frame_owner;
    uint16_t code_firstlineno, code_filename, code_name, code_qualname, code_linetable;
    uint16_t code_bytecode, code_firsttraceable, code_version;
    uint16_t ob_type, ob_size;
    uint16_t bytes_size, bytes_data;
    uint16_t str_length, str_state, str_ascii, str_compact;
    uint16_t position, lines; /* enum gb_py_position, enum gb_py_lines */
    bool published;           /* from _PyRuntime.debug_offsets */
};

struct gb_py_process {
    struct gb_py_layout layout;
    void *(*thread_state)(void); /* PyGILState_GetThisThreadState: a TLS read, no lock, no GIL */
    uintptr_t runtime;           /* &_PyRuntime */
    uintptr_t code_type, str_type, bytes_type;
    char version[16]; /* "3.11.7" */
};

/* Finds the interpreter of this process. NULL: found; "": there is none; else why it is refused. */
const char *gb_py_find(struct gb_py_process *out);
/* Pure: the layout for a version as in Py_Version (0x030b07f0). NULL or why there is none. */
const char *gb_py_layout_choose(uint32_t version, const void *runtime, struct gb_py_layout *out);
/* Pure: "3.11.7 (main, ...)", "3.13.0rc2" to the form of Py_Version; 0 when it is not one. */
uint32_t gb_py_version_parse(const char *text);

/* ---- code objects ---- */

#define GB_PY_FILE_BYTES 4096
#define GB_PY_FUNC_BYTES 1024

struct gb_py_code {
    bool hidden; /* the frame has not reached its first line: the interpreter hides it too */
    int firstlineno;
    int64_t lasti; /* byte index of the instruction, negative before the first */
    uintptr_t table;
    size_t table_bytes;
    size_t file_bytes, func_bytes;
    char file[GB_PY_FILE_BYTES]; /* UTF-8, cut at the end when longer, no final zero */
    char func[GB_PY_FUNC_BYTES];
};

/* Copies n bytes at address `from`; false if they cannot be read. */
typedef bool (*gb_py_reader)(void *out, uintptr_t from, size_t n);
bool gb_py_read_plain(void *out, uintptr_t from, size_t n);

/* One frame as the walk sees it. */
struct gb_py_frame {
    uintptr_t code;
    uint64_t position;
    uint64_t key; /* hash of code, position and guard */
    unsigned owner;
};
#define GB_PY_OWNER_GENERATOR 1
#define GB_PY_OWNER_SHIM      3 /* this and above: the interpreter's own C frame, no code */

/* NULL when the frame's code object is what it should be, else what is wrong. */
const char *gb_py_code_read(const struct gb_py_process *py, gb_py_reader read,
                            const struct gb_py_frame *frame, struct gb_py_code *out);

/* ---- proof ---- */

/* Walks the stack of a thread state without ever faulting. NULL: every frame is as the layout says;
 * "": there is no frame to judge by; else what is wrong. */
const char *gb_py_proof(const struct gb_py_process *py, uintptr_t tstate);

/* ---- lines ---- */

/* Line of the instruction at byte index lasti, -1 if it has none. Any bytes are accepted. */
int gb_py_line(enum gb_py_lines format, const uint8_t *table, size_t bytes, int firstlineno,
               int64_t lasti);

/* ---- table ---- */

/* A slot holds the upper 44 bits of a key and a 20-bit id in one word, so that a reader without the
 * lock sees both or neither, and a full map may be wiped under its feet. */
#define GB_PY_ID_BITS 20
#define GB_PY_ID_MAX  ((1u << GB_PY_ID_BITS) - 1)

struct gb_py_map {
    uint64_t *slots;
    uint32_t mask;
    uint32_t used;
};

struct gb_py_limits { /* powers of two */
    uint32_t map_slots;
    uint32_t text_bytes;
    uint32_t texts, places, stacks;
    uint32_t pool; /* frames of all stacks together */
};

struct gb_py_place {
    uint32_t file, func; /* offsets of their texts */
    int32_t line;
};

struct gb_py_stack {
    uint32_t first, count; /* in the pool */
};

struct gb_py_table {
    struct gb_py_map stack_by_key, place_by_key;
    struct gb_py_limits limits;
    char *text;
    struct gb_py_place *places;
    struct gb_py_stack *stacks;
    uint32_t *pool;
    uint32_t *text_index, *place_index, *stack_index;
    uint32_t text_used, text_count, place_count, pool_used;
    uint32_t stack_count; /* released after the stack is complete */
    bool full;
};

/* Reserves the memory of all tables (touched only as used); false if there is none. */
bool gb_py_table_init(struct gb_py_table *t, const struct gb_py_limits *limits);
/* These need the caller's lock. They return 0 when the table is full. */
uint32_t gb_py_table_text(struct gb_py_table *t, const char *text, size_t bytes);
uint32_t gb_py_table_place(struct gb_py_table *t, uint32_t file, uint32_t func, int line);
uint32_t gb_py_table_stack(struct gb_py_table *t, const uint32_t *places, uint32_t count);
void gb_py_map_put(struct gb_py_map *m, uint64_t key, uint32_t id);
/* Needs no lock. */
int gb_py_table_frames(const struct gb_py_table *t, uint32_t id, struct gb_pyframe *out, int max);

static inline uint32_t gb_py_map_get(const struct gb_py_map *m, uint64_t key)
{
    for (uint32_t i = (uint32_t)key;; i++) {
        uint64_t slot = __atomic_load_n(&m->slots[i & m->mask], __ATOMIC_ACQUIRE);
        if (!slot)
            return 0;
        if ((slot ^ key) >> GB_PY_ID_BITS == 0)
            return (uint32_t)slot & GB_PY_ID_MAX;
    }
}

#endif

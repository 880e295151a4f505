/* pystack_table.c: texts, places (file, function, line) and stacks, each kept once.
 *
 * Ids are canonical: whatever code objects, instructions or addresses led there, the same chain of
 * places has the same id. In front of that stand two maps from frame and stack hashes, which are
 * only caches: they are wiped when crowded. Thread rule: the caller holds its lock to write;
 * gb_py_map_get and gb_py_table_frames need none, since records are complete before their id is
 * released. Failure rule: when a table is full, 0; memory is never moved or freed.
 */
#include "stack/pystack_internal.h"

#include <string.h>
#include <sys/mman.h>

static uint32_t hash_bytes(const void *data, size_t n)
{
    const uint8_t *p = data;
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 0x100000001b3u;
    return (uint32_t)(h ^ (h >> 32));
}

static void *carve(char **at, size_t bytes)
{
    void *p = *at;
    *at += (bytes + 63) & ~(size_t)63;
    return p;
}

/* A first pass at a made-up address only adds up the sizes. Indexes have two slots an entry. */
static size_t lay_out(struct gb_py_table *t, char *at)
{
    const struct gb_py_limits *l = &t->limits;
    char *start = at;
    t->stack_by_key.slots = carve(&at, l->map_slots * sizeof(uint64_t));
    t->place_by_key.slots = carve(&at, l->map_slots * sizeof(uint64_t));
    t->text = carve(&at, l->text_bytes);
    t->places = carve(&at, l->places * sizeof *t->places);
    t->stacks = carve(&at, l->stacks * sizeof *t->stacks);
    t->pool = carve(&at, l->pool * sizeof *t->pool);
    t->text_index = carve(&at, 2 * l->texts * sizeof(uint32_t));
    t->place_index = carve(&at, 2 * l->places * sizeof(uint32_t));
    t->stack_index = carve(&at, 2 * l->stacks * sizeof(uint32_t));
    return (size_t)(at - start);
}

bool gb_py_table_init(struct gb_py_table *t, const struct gb_py_limits *limits)
{
    memset(t, 0, sizeof *t);
    t->limits = *limits;
    void *memory = mmap(NULL, lay_out(t, (char *)64), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    lay_out(t, memory);
    t->stack_by_key.mask = t->place_by_key.mask = limits->map_slots - 1;
    t->text_used = t->place_count = 1; /* 0 means "none" everywhere */
    return true;
}

void gb_py_map_put(struct gb_py_map *m, uint64_t key, uint32_t id)
{
    uint32_t i = (uint32_t)key & m->mask;
    if (m->used >= m->mask / 4 * 3) {
        for (uint32_t k = 0; k <= m->mask; k++)
            __atomic_store_n(&m->slots[k], 0, __ATOMIC_RELAXED);
        m->used = 0;
    }
    while (__atomic_load_n(&m->slots[i], __ATOMIC_RELAXED))
        i = (i + 1) & m->mask;
    uint64_t slot = (key & ~(uint64_t)GB_PY_ID_MAX) | id;
    __atomic_store_n(&m->slots[i], slot, __ATOMIC_RELEASE);
    m->used++;
}

uint32_t gb_py_table_text(struct gb_py_table *t, const char *text, size_t bytes)
{
    uint32_t mask = 2 * t->limits.texts - 1, i = hash_bytes(text, bytes) & mask;
    for (; t->text_index[i]; i = (i + 1) & mask) {
        const char *known = t->text + t->text_index[i];
        if (strncmp(known, text, bytes) == 0 && known[bytes] == 0)
            return t->text_index[i];
    }
    if (t->text_count >= t->limits.texts || bytes >= t->limits.text_bytes - t->text_used) {
        t->full = true;
        return 0;
    }
    uint32_t at = t->text_used;
    memcpy(t->text + at, text, bytes);
    t->text[at + bytes] = 0;
    t->text_used += (uint32_t)bytes + 1;
    t->text_count++;
    t->text_index[i] = at;
    return at;
}

uint32_t gb_py_table_place(struct gb_py_table *t, uint32_t file, uint32_t func, int line)
{
    struct gb_py_place place = {file, func, line};
    uint32_t mask = 2 * t->limits.places - 1, i = hash_bytes(&place, sizeof place) & mask;
    for (; t->place_index[i]; i = (i + 1) & mask)
        if (memcmp(&t->places[t->place_index[i]], &place, sizeof place) == 0)
            return t->place_index[i];
    if (t->place_count >= t->limits.places) {
        t->full = true;
        return 0;
    }
    t->places[t->place_count] = place;
    t->place_index[i] = t->place_count;
    return t->place_count++;
}

uint32_t gb_py_table_stack(struct gb_py_table *t, const uint32_t *places, uint32_t count)
{
    uint32_t bytes = count * (uint32_t)sizeof *places;
    uint32_t mask = 2 * t->limits.stacks - 1, i = hash_bytes(places, bytes) & mask;
    for (; t->stack_index[i]; i = (i + 1) & mask) {
        const struct gb_py_stack *s = &t->stacks[t->stack_index[i] - 1];
        if (s->count == count && memcmp(t->pool + s->first, places, bytes) == 0)
            return t->stack_index[i];
    }
    uint32_t known = t->stack_count;
    if (known >= t->limits.stacks || count > t->limits.pool - t->pool_used) {
        t->full = true;
        return 0;
    }
    memcpy(t->pool + t->pool_used, places, bytes);
    t->stacks[known] = (struct gb_py_stack){t->pool_used, count};
    t->pool_used += count;
    __atomic_store_n(&t->stack_count, known + 1, __ATOMIC_RELEASE);
    t->stack_index[i] = known + 1;
    return known + 1;
}

int gb_py_table_frames(const struct gb_py_table *t, uint32_t id, struct gb_pyframe *out, int max)
{
    if (id == 0 || id > __atomic_load_n(&t->stack_count, __ATOMIC_ACQUIRE))
        return 0;
    const struct gb_py_stack *s = &t->stacks[id - 1];
    int n = (int)s->count < max ? (int)s->count : max;
    for (int i = 0; i < n; i++) {
        const struct gb_py_place *p = &t->places[t->pool[s->first + (uint32_t)i]];
        out[i] = (struct gb_pyframe){t->text + p->file, t->text + p->func, p->line};
    }
    return n > 0 ? n : 0;
}

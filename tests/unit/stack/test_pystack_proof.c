/* test_pystack_proof.c: the start-up proof over made-up process images, good and broken in every
 * way: it must accept the good ones and never fault. No Python is involved. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>
#include <sys/mman.h>

#include "stack/pystack_internal.h"

#define PAGE 4096

static uint32_t next_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 33);
}

/* A page that ends where unreadable memory begins: reading one byte too far is a fault. */
static uint8_t *page_before_nothing(void)
{
    uint8_t *p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(p != MAP_FAILED);
    assert_int_equal(mprotect(p + PAGE, PAGE, PROT_NONE), 0);
    return p;
}

struct image {
    char *memory; /* one page, the next one is unreadable */
    struct gb_py_process py;
    uintptr_t tstate;
};

enum {
    TYPES = 64,
    TSTATE = 128,
    CFRAME = 256,
    FRAMES = 320,
    CODE = 1024,
    NAMES = 1536,
    TABLE = 1792
};

static void put(struct image *m, size_t at, uint64_t value)
{
    memcpy(m->memory + at, &value, 8);
}

static uintptr_t address(const struct image *m, size_t at)
{
    return (uintptr_t)m->memory + at;
}

static void make_text(struct image *m, size_t at, const char *text)
{
    const struct gb_py_layout *l = &m->py.layout;
    put(m, at + l->ob_type, m->py.str_type);
    put(m, at + l->str_length, strlen(text));
    put(m, at + l->str_state, 1 << 2 | 1 << 5 | 1 << 6); /* one byte a character, compact, ASCII */
    memcpy(m->memory + at + l->str_ascii, text, strlen(text) + 1);
}

static void make_frame(struct image *m, size_t at, size_t previous)
{
    const struct gb_py_layout *l = &m->py.layout;
    put(m, at + l->frame_previous, previous ? address(m, previous) : 0);
    put(m, at + l->frame_code, address(m, CODE));
    put(m, at + l->frame_position,
        l->position == GB_PY_POINTER ? address(m, CODE) + l->code_bytecode + 4 : 2);
}

/* A process of one code object and three frames in the layout of 3.`minor`. */
static void make_image(struct image *m, uint32_t minor)
{
    const struct gb_py_layout *l = &m->py.layout;
    memset(m->memory, 0, PAGE);
    memset(&m->py, 0, sizeof m->py);
    assert_null(gb_py_layout_choose(0x030000f0 | minor << 16, m->memory, &m->py.layout));
    m->py.code_type = address(m, TYPES);
    m->py.str_type = address(m, TYPES + 8);
    m->py.bytes_type = address(m, TYPES + 16);
    m->tstate = address(m, TSTATE);
    if (l->cframe_frame == GB_PY_NONE) {
        put(m, TSTATE + l->tstate_frame, address(m, FRAMES));
    } else {
        put(m, TSTATE + l->tstate_frame, address(m, CFRAME));
        put(m, CFRAME + l->cframe_frame, address(m, FRAMES));
    }
    for (size_t i = 0; i < 3; i++)
        make_frame(m, FRAMES + i * 192, i < 2 ? FRAMES + (i + 1) * 192 : 0);
    put(m, CODE + l->ob_size, 20);
    put(m, CODE + l->ob_type, m->py.code_type);
    put(m, CODE + l->code_firstlineno, 7);
    put(m, CODE + l->code_filename, address(m, NAMES));
    put(m, CODE + l->code_name, address(m, NAMES + 128));
    if (l->code_qualname != GB_PY_NONE)
        put(m, CODE + l->code_qualname, address(m, NAMES + 128));
    put(m, CODE + l->code_linetable, address(m, TABLE));
    make_text(m, NAMES, "train.py");
    make_text(m, NAMES + 128, "step");
    put(m, TABLE + l->ob_type, m->py.bytes_type);
    put(m, TABLE + l->bytes_size, 4);
    put(m, TABLE + l->bytes_data, 0x02e802e8);
}

static void good_images_are_proven(void **state)
{
    (void)state;
    struct image m = {.memory = (char *)page_before_nothing()};
    for (uint32_t minor = 9; minor <= 12; minor++) {
        struct gb_py_code code;
        make_image(&m, minor);
        const char *wrong = gb_py_proof(&m.py, m.tstate);
        if (wrong)
            print_message("3.%u: %s\n", minor, wrong);
        assert_null(wrong);
        struct gb_py_frame f = {.code = address(&m, CODE), .position = 2};
        if (m.py.layout.position == GB_PY_POINTER)
            f.position = f.code + m.py.layout.code_bytecode + 4;
        assert_null(gb_py_code_read(&m.py, gb_py_read_plain, &f, &code));
        assert_memory_equal(code.file, "train.py", 8);
        assert_int_equal(code.func_bytes, 4);
        assert_int_equal(code.lasti, minor == 9 ? 2 : 4);
        assert_false(code.hidden);
    }
    munmap(m.memory, 2 * PAGE);
}

static void a_thread_without_frames_proves_nothing(void **state)
{
    (void)state;
    struct image m = {.memory = (char *)page_before_nothing()};
    make_image(&m, 10);
    put(&m, TSTATE + m.py.layout.tstate_frame, 0);
    assert_string_equal(gb_py_proof(&m.py, m.tstate), "");
    munmap(m.memory, 2 * PAGE);
}

static void circles_end(void **state)
{
    (void)state;
    struct image m = {.memory = (char *)page_before_nothing()};
    make_image(&m, 10);
    put(&m, FRAMES + 384 + m.py.layout.frame_previous, address(&m, FRAMES));
    assert_string_equal(gb_py_proof(&m.py, m.tstate), "a chain of frames that is a circle");
    munmap(m.memory, 2 * PAGE);
}

/* A value that does harm: NULL, not mapped, unaligned, the edge of the page, or just noise. */
static uint64_t poison(const struct image *m, uint64_t *seed)
{
    switch (next_random(seed) % 8) {
    case 0:
        return 0;
    case 1:
        return 8;
    case 2:
        return address(m, PAGE - next_random(seed) % 64);
    case 3:
        return address(m, next_random(seed) % (2 * PAGE));
    case 4:
        return address(m, (next_random(seed) % PAGE) & ~7u);
    case 5:
        return UINT64_MAX - next_random(seed) % 64;
    case 6:
        return 0xffff800000000000u;
    default:
        return (uint64_t)next_random(seed) << 32 | next_random(seed);
    }
}

static void broken_images_never_fault(void **state)
{
    (void)state;
    struct image m = {.memory = (char *)page_before_nothing()};
    uint64_t seed = 42;
    int refused = 0, rounds = 20000;
    for (int round = 0; round < rounds; round++) {
        make_image(&m, 9 + (uint32_t)round % 4);
        for (unsigned hits = 1 + next_random(&seed) % 4; hits > 0; hits--)
            put(&m, next_random(&seed) % 228 * 8, poison(&m, &seed));
        m.tstate = round % 50 ? m.tstate : poison(&m, &seed);
        const char *wrong = gb_py_proof(&m.py, m.tstate);
        refused += wrong != NULL;
    }
    assert_in_range(refused, rounds / 10, rounds);
    munmap(m.memory, 2 * PAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_images_are_proven),
        cmocka_unit_test(a_thread_without_frames_proves_nothing),
        cmocka_unit_test(circles_end),
        cmocka_unit_test(broken_images_never_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

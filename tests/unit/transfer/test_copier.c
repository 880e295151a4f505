/* test_copier.c: copies with a helper give the same bytes, return only when all of them are read
 * and written, and several at once do not meet. */
#include "transfer/copier.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MOST_BYTES (6u << 20)

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

static size_t some_size(uint64_t *state)
{
    return (size_t)(next_random(state) % MOST_BYTES >> next_random(state) % 12) + 1;
}

/* One value a copy: what a late reader or writer leaves behind shows at once. */
static bool copies_right(uint64_t seed, int rounds)
{
    uint8_t *src = malloc(MOST_BYTES), *dst = malloc(MOST_BYTES + 64);
    bool right = src && dst;
    for (int i = 0; i < rounds && right; i++) {
        size_t bytes = some_size(&seed);
        memset(src, i & 0x7f, bytes);
        src[bytes / 2] = 0x80;
        memset(dst, 0xff, bytes + 64);
        gb_copier_copy(dst, src, bytes);
        memset(src, 0xee, bytes);
        for (size_t k = 0; k < bytes && right; k++)
            right = dst[k] == (k == bytes / 2 ? 0x80 : i & 0x7f);
        right = right && dst[bytes] == 0xff && dst[bytes + 63] == 0xff;
    }
    free(src);
    free(dst);
    return right;
}

static void without_a_helper(void **state)
{
    (void)state;
    assert_true(copies_right(1, 50));
}

static void with_a_helper(void **state)
{
    (void)state;
    gb_copier_start();
    gb_copier_start();
    assert_true(copies_right(2, 300));
}

static void *thread(void *seed)
{
    return copies_right((uintptr_t)seed, 100) ? seed : NULL;
}

static void several_threads_at_once(void **state)
{
    (void)state;
    pthread_t threads[3];
    for (uintptr_t i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, thread, (void *)(i + 10)), 0);
    for (uintptr_t i = 0; i < 3; i++) {
        void *right = NULL;
        pthread_join(threads[i], &right);
        assert_non_null(right);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_helper),
        cmocka_unit_test(with_a_helper),
        cmocka_unit_test(several_threads_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_site.c: the table of call sites: what makes two calls one site, threads that meet at a new
 * one, and the overflow site. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/hooks.h"
#include "in_child.h"
#include "record/counters.h"
#include "stack/pystack.h"
#include "stall/site.h"

static int identity_scenario(int unused)
{
    const char *here = (const char *)(uintptr_t)identity_scenario;
    (void)unused;
    CHECK(gb_site_count() == 1 && gb_site_at(0)->id == 0);
    struct gb_site *a = gb_site_find(GB_HOOK_cudaMemcpyAsync, 5, here);
    CHECK(a->id == 1 && gb_site_count() == 2 && gb_site_at(1) == a);
    CHECK(a->stack_id == 5 && a->hook == GB_HOOK_cudaMemcpyAsync);
    CHECK(gb_site_find(GB_HOOK_cudaMemcpyAsync, 5, here) == a);
    CHECK(gb_site_find(GB_HOOK_cudaMemcpy, 5, here) != a);
    CHECK(gb_site_find(GB_HOOK_cudaMemcpyAsync, 6, here) != a);
    CHECK(gb_site_find(GB_HOOK_cudaMemcpyAsync, GB_PYSTACK_OVERFLOW, here) != a);
    struct gb_site *native = gb_site_find(GB_HOOK_cudaMemcpyAsync, 0, here);
    CHECK(native != a && native->stack_id == 0);
    CHECK(gb_site_find(GB_HOOK_cudaMemcpyAsync, 0, here + 1) != native);
    CHECK(gb_site_find(GB_HOOK_cudaMemcpyAsync, 0, here) == native);
    CHECK(gb_site_count() == 7);
    CHECK(gb_site_at(GB_SITE_MAX) == gb_site_at(0) && gb_site_at(UINT32_MAX) == gb_site_at(0));
    return 0;
}

static void a_site_is_a_stack_and_an_entry_point(void **state)
{
    (void)state;
    assert_scenario(identity_scenario, 0);
}

static int module_scenario(int unused)
{
    (void)unused;
    struct gb_site *ours = gb_site_find(0, 1, (const void *)(uintptr_t)module_scenario);
    struct gb_site *libc = gb_site_find(0, 2, (const void *)(uintptr_t)lldiv);
    struct gb_site *none = gb_site_find(0, 3, (const void *)16);
    CHECK(strcmp(ours->module, "test_site") == 0);
    CHECK(strncmp(libc->module, "libc.so", 7) == 0 || strcmp(libc->module, "test_site") == 0);
    CHECK(strcmp(none->module, "") == 0);
    return 0;
}

static void it_knows_the_module_of_its_caller(void **state)
{
    (void)state;
    assert_scenario(module_scenario, 0);
}

static int full_scenario(int unused)
{
    (void)unused;
    for (uint32_t stack = 1; stack < GB_SITE_MAX; stack++) {
        struct gb_site *site = gb_site_find(0, stack, NULL);
        CHECK(site->id == stack && site->stack_id == stack);
    }
    CHECK(gb_site_count() == GB_SITE_MAX && gb_counters.sites_full == 0);
    for (uint32_t stack = GB_SITE_MAX; stack < GB_SITE_MAX + 100; stack++)
        CHECK(gb_site_find(0, stack, NULL) == gb_site_at(0));
    CHECK(gb_counters.sites_full == 100 && gb_site_count() == GB_SITE_MAX);
    for (uint32_t stack = 1; stack < GB_SITE_MAX; stack++) /* those in it are found as before */
        CHECK(gb_site_find(0, stack, NULL)->stack_id == stack);
    CHECK(gb_counters.sites_full == 100);
    gb_site_native(gb_site_at(0)); /* it stands for many places: none is named */
    CHECK(gb_site_at(0)->native_count == 0);
    return 0;
}

static void the_rest_goes_to_the_overflow_site(void **state)
{
    (void)state;
    assert_scenario(full_scenario, 0);
}

#define STACKS 500

static struct gb_site *found[4][STACKS];

static void *finder(void *number)
{
    int me = (int)(intptr_t)number;
    for (uint32_t i = 0; i < STACKS; i++) {
        uint32_t stack = me & 1 ? i : STACKS - 1 - i; /* from both ends, so that they meet */
        struct gb_site *site = gb_site_find(3, stack + 1, NULL);
        found[me][stack] = site->stack_id == stack + 1 && site->hook == 3 ? site : NULL;
        for (int count = 0; count < 10; count++)
            GB_COUNT(site->calls, 1);
    }
    return NULL;
}

static int threads_scenario(int unused)
{
    pthread_t threads[4];
    (void)unused;
    for (intptr_t i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, finder, (void *)i) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    CHECK(gb_site_count() == STACKS + 1);
    for (int stack = 0; stack < STACKS; stack++) {
        CHECK(found[0][stack]); /* complete when it was found */
        for (int i = 1; i < 4; i++)
            CHECK(found[i][stack] == found[0][stack]);
        CHECK(GB_READ(found[0][stack]->calls) == 40);
    }
    return 0;
}

static void threads_find_the_same_site(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++)
        assert_scenario(threads_scenario, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_site_is_a_stack_and_an_entry_point),
        cmocka_unit_test(it_knows_the_module_of_its_caller),
        cmocka_unit_test(the_rest_goes_to_the_overflow_site),
        cmocka_unit_test(threads_find_the_same_site),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

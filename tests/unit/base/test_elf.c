/* test_elf.c: symbol and module look-up over the objects of this very process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/elf.h"

/* Exported from the executable only with -rdynamic; found or not, it must never be found by NULL,
 * since this executable contains elf.c and so is "our own library". */
int test_elf_marker(void);
int test_elf_marker(void)
{
    return 42;
}

static void finds_libc_functions(void **state)
{
    (void)state;
    assert_ptr_equal(gb_elf_find("libc.so", "getpid"), dlsym(RTLD_DEFAULT, "getpid"));
    assert_ptr_equal(gb_elf_find(NULL, "getpid"), dlsym(RTLD_DEFAULT, "getpid"));
    assert_ptr_equal(gb_elf_find(NULL, "environ"), dlsym(RTLD_DEFAULT, "environ"));
}

static void finds_what_moved_in_glibc_2_34(void **state)
{
    (void)state;
    static const char *const names[] = {"pthread_create", "dladdr", "dlopen", "dlclose",
                                        "sem_post"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_ptr_equal(gb_elf_find(NULL, names[i]), dlsym(RTLD_DEFAULT, names[i]));
}

/* pthread_cond_wait has an old (2.2.5) and a default (2.3.2) version in every x86-64 glibc. */
static void prefers_the_default_version(void **state)
{
    (void)state;
    void *old = dlvsym(RTLD_DEFAULT, "pthread_cond_wait", "GLIBC_2.2.5");
    void *current = dlvsym(RTLD_DEFAULT, "pthread_cond_wait", "GLIBC_2.3.2");
    if (!old || !current || old == current) {
        print_message("only one version of pthread_cond_wait here: not x86-64 glibc\n");
        skip();
    }
    assert_ptr_equal(gb_elf_find(NULL, "pthread_cond_wait"), current);
}

static void leaves_out_what_is_not_defined(void **state)
{
    (void)state;
    assert_null(gb_elf_find(NULL, "gb_no_such_symbol"));
    assert_null(gb_elf_find("libnothere.so", "getpid"));
    assert_null(gb_elf_find(NULL, "")); /* the empty name is symbol 0 of every table */
    assert_null(gb_elf_find(NULL, "test_elf_marker"));
    /* libcmocka uses printf and does not define it. */
    assert_null(gb_elf_find("libcmocka.so", "vsnprintf"));
    assert_non_null(gb_elf_find("libcmocka.so", "_assert_true"));
}

/* memcpy is an IFUNC in x86-64 glibc: its symbol value is the resolver, useless to a caller. */
static void leaves_out_ifuncs(void **state)
{
    (void)state;
    void *found = gb_elf_find("libc.so", "strlen");
    assert_true(found == NULL || found == dlsym(RTLD_DEFAULT, "strlen"));
}

static void leaves_out_the_vdso(void **state)
{
    (void)state;
    struct gb_elf_module m;
    void *found = gb_elf_find(NULL, "clock_gettime");
    assert_non_null(found);
    assert_true(gb_elf_module_of(found, &m));
    assert_non_null(strstr(m.name, "libc"));
    assert_null(gb_elf_find(NULL, "__vdso_clock_gettime"));
}

struct count {
    int objects, named;
};

static int check_object(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    struct count *n = arg;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        struct gb_elf_module m;
        if (info->dlpi_phdr[i].p_type != PT_LOAD)
            continue;
        const char *first = (const char *)info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        assert_true(gb_elf_module_of(first, &m));
        assert_true(gb_elf_module_of(first + info->dlpi_phdr[i].p_memsz - 1, &m));
        assert_int_equal(m.base, info->dlpi_addr);
        assert_true(m.start <= (uintptr_t)first && (uintptr_t)first < m.end);
        n->named += m.name[0] != 0;
        n->objects++;
    }
    return 0;
}

static void knows_every_module(void **state)
{
    (void)state;
    struct count n = {0, 0};
    dl_iterate_phdr(check_object, &n);
    assert_true(n.objects > 4);
    assert_int_equal(n.named, n.objects);
}

static void names_the_executable(void **state)
{
    (void)state;
    struct gb_elf_module m;
    assert_true(gb_elf_module_of((const void *)&test_elf_marker, &m));
    assert_string_equal(m.name, program_invocation_short_name);
}

static void stack_and_heap_are_no_module(void **state)
{
    (void)state;
    struct gb_elf_module m;
    int local = 0;
    assert_false(gb_elf_module_of(&local, &m));
    assert_false(gb_elf_module_of(NULL, &m));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_libc_functions),
        cmocka_unit_test(finds_what_moved_in_glibc_2_34),
        cmocka_unit_test(prefers_the_default_version),
        cmocka_unit_test(leaves_out_what_is_not_defined),
        cmocka_unit_test(leaves_out_ifuncs),
        cmocka_unit_test(leaves_out_the_vdso),
        cmocka_unit_test(knows_every_module),
        cmocka_unit_test(names_the_executable),
        cmocka_unit_test(stack_and_heap_are_no_module),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

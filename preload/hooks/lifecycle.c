/* lifecycle.c: constructor, arming, fork, exit. See lifecycle.h for the rules.
 *
 * __register_atfork is what pthread_atfork calls in every glibc; pthread_atfork itself is not in
 * libc.so.6 before 2.34. The handler is registered at arm time only: the many processes that never
 * use CUDA are left alone, and a child of such a process may arm itself.
 */
#include "hooks/lifecycle.h"

#include "base/elf.h"
#include "base/log.h"
#include "cuda/driver_api.h"
#include "gpu/debt.h"
#include "gpu/inflight.h"
#include "options/config.h"
#include "options/environment.h"
#include "record/record.h"
#include "stack/pystack.h"
#include "stall/call.h"
#include "stall/stall.h"

#include <errno.h>
#include <string.h>

uint32_t gb_state;

extern int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
                             void *dso_handle);
extern void *__dso_handle __attribute__((visibility("hidden")));

/* Is `name` one of the comma-separated names? Blanks around a name do not count. */
static bool is_listed(const char *list, const char *name)
{
    size_t length = strlen(name);
    while (*list) {
        list += strspn(list, ", \t");
        size_t entry = strcspn(list, ",");
        size_t trimmed = entry;
        while (trimmed && (list[trimmed - 1] == ' ' || list[trimmed - 1] == '\t'))
            trimmed--;
        if (trimmed == length && strncmp(list, name, length) == 0)
            return true;
        list += entry;
    }
    return false;
}

static bool is_wanted_here(void)
{
    const char *program = program_invocation_short_name;
    if (gb_config.disable)
        return false;
    if (*gb_config.only && !is_listed(gb_config.only, program))
        return false;
    return !is_listed(gb_config.not_in, program);
}

__attribute__((constructor)) static void load(void)
{
    if (__atomic_load_n(&gb_state, __ATOMIC_RELAXED) != GB_STATE_NEW)
        return;
    gb_log_start();
    gb_config_load();
    __atomic_store_n(&gb_state, is_wanted_here() ? GB_STATE_IDLE : GB_STATE_OFF, __ATOMIC_RELEASE);
}

bool gb_lifecycle_off(void)
{
    if (GB_UNLIKELY(__atomic_load_n(&gb_state, __ATOMIC_RELAXED) == GB_STATE_NEW))
        load(); /* a look-up by the constructor of a library that was initialised before us */
    return __atomic_load_n(&gb_state, __ATOMIC_RELAXED) == GB_STATE_OFF;
}

static void child_of_fork(void)
{
    gb_elf_after_fork();
    gb_pystack_after_fork();
    gb_record_after_fork();
    gb_thread_forget_stream();
    gb_debt_after_fork();
    __atomic_store_n(&gb_state, GB_STATE_OFF, __ATOMIC_RELAXED);
}

GB_COLD bool gb_lifecycle_arm(void)
{
    uint32_t expected = GB_STATE_IDLE;
    if (gb_lifecycle_off() ||
        !__atomic_compare_exchange_n(&gb_state, &expected, GB_STATE_ARMING, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
        return expected == GB_STATE_ARMED;
    int kept_errno = errno;
    gb_clock_start();
    gb_driver_load();
    gb_environment_reload();
    gb_config_report();
    gb_record_open();
    gb_stall_calibrate();
    gb_clock_calibrate();
    __register_atfork(gb_elf_before_fork, gb_elf_after_fork, child_of_fork, &__dso_handle);
    __atomic_store_n(&gb_state, GB_STATE_ARMED, __ATOMIC_RELEASE);
    errno = kept_errno;
    return true;
}

/* Libraries whose destructors run later still call hooks: they pass through. */
__attribute__((destructor)) static void unload(void)
{
    uint32_t state = __atomic_exchange_n(&gb_state, GB_STATE_OFF, __ATOMIC_ACQ_REL);
    if (state == GB_STATE_ARMED)
        gb_record_close();
}

/* environment.c: the few foreign variables we use. See environment.h for the rules. */
#include "options/environment.h"

#include <stdlib.h>
#include <string.h>

struct gb_environment gb_environment;

static bool is_decimal(const char *text)
{
    return *text && text[strspn(text, "0123456789")] == 0;
}

/* The first of the names (up to NULL) that is set and fits; `decimal` passes over other values. */
static void take_first(const char *const *names, bool decimal, char *out, size_t size)
{
    out[0] = 0;
    for (; *names; names++) {
        const char *value = secure_getenv(*names);
        size_t length = value ? strlen(value) : 0;
        if (length == 0 || length >= size || (decimal && !is_decimal(value)))
            continue;
        memcpy(out, value, length + 1);
        return;
    }
}

void gb_environment_reload(void)
{
    const char *blocking = secure_getenv("CUDA_LAUNCH_BLOCKING");
    gb_environment.launch_blocking = blocking && *blocking && strcmp(blocking, "0") != 0;
}

void gb_environment_load(void)
{
    static const char *const home[] = {"HOME", NULL};
    static const char *const state_home[] = {"XDG_STATE_HOME", NULL};
    static const char *const rank[] = {"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK",
                                       NULL};
    static const char *const job[] = {"SLURM_JOB_ID", "TORCHELASTIC_RUN_ID", "PBS_JOBID",
                                      "LSB_JOBID", NULL};
    struct gb_environment *e = &gb_environment;
    take_first(home, false, e->home, sizeof e->home);
    take_first(state_home, false, e->state_home, sizeof e->state_home);
    take_first(rank, true, e->rank, sizeof e->rank);
    take_first(job, false, e->job, sizeof e->job);
}

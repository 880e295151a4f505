/* fault.c: scripted failures, GPUSIM_FAULT="call:nth:error[,...]".
 *
 * The call is an exported name or one without its version; nth counts its calls from 1, or is * for
 * every one; the error is a number or a name of errors.def. An error after which a real context is
 * unusable stays in the current context (CUDA Driver API, CUresult: "must be terminated and
 * relaunched"). Thread rule: sim_lock. Failure rule: a rule that cannot be read is said once on
 * stderr.
 */
#include "entry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_RULES 64

static struct rule {
    char call[64];
    uint64_t nth, seen; /* nth 0: every call */
    CUresult error;
} rules[MOST_RULES];
static unsigned rule_count;
static bool loaded;

/* cuMemAlloc means every version of it, cuMemAlloc_v2 that one. */
static bool is_called(unsigned entry, const char *call)
{
    return strcmp(sim_entry_name(entry), call) == 0 || strcmp(sim_symbols[entry].name, call) == 0;
}

static bool parse_rule(char *text, struct rule *rule)
{
    char *rest, *call = strtok_r(text, ":", &rest);
    char *nth = strtok_r(NULL, ":", &rest), *error = strtok_r(NULL, ":", &rest);
    if (!call || !nth || !error)
        return false;
    rule->nth = strcmp(nth, "*") == 0 ? 0 : strtoull(nth, NULL, 10);
    char *end;
    rule->error = (CUresult)strtol(error, &end, 10);
    if (*end && !sim_error_of_name(error, &rule->error))
        return false;
    snprintf(rule->call, sizeof(rule->call), "%s", call);
    for (unsigned entry = 0; entry < SIM_ENTRY_COUNT; entry++)
        if (is_called(entry, call))
            return true;
    return false;
}

static void load(void)
{
    loaded = true;
    char *text = strdup(SIM_TEXT(FAULT)), *rest;
    for (char *one = strtok_r(text, ",", &rest); one; one = strtok_r(NULL, ",", &rest)) {
        if (rule_count < MOST_RULES && parse_rule(one, &rules[rule_count]))
            rule_count++;
        else
            fprintf(stderr, "gpusim: GPUSIM_FAULT: cannot read a rule for \"%s\"\n", one);
    }
    free(text);
}

static bool is_sticky(CUresult error)
{
    switch (error) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
        return true;
    default:
        return false;
    }
}

bool sim_fault_for(unsigned entry, CUresult *error)
{
    if (!loaded)
        load();
    bool hit = false;
    for (unsigned i = 0; i < rule_count && !hit; i++) {
        if (!is_called(entry, rules[i].call))
            continue;
        hit = ++rules[i].seen == rules[i].nth || rules[i].nth == 0;
        if (hit)
            *error = rules[i].error;
    }
    struct sim_context *context = hit && is_sticky(*error) ? sim_current() : NULL;
    if (context)
        context->sticky = *error;
    return hit;
}

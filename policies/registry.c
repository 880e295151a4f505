/* registry.c: asks the policies of registry.def in their order. See policy.h for the rules. */
#include "policies/policy.h"

#include "options/config.h"

bool gb_policies_copy(struct gb_call *call, const struct gb_copy *copy)
{
#define GB_POLICY(name, option, profile)                                                           \
    if (gb_config_policy_on((enum gb_switch)gb_config.option, profile) &&                          \
        gb_policy_##name.copy(call, copy))                                                         \
        return true;
#include "policies/registry.def"
    return false;
}

void gb_policy_totals(struct gb_totals *totals)
{
#define GB_POLICY(name, option, profile) gb_policy_##name.totals(totals);
#include "policies/registry.def"
}

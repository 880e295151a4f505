/* policy.h: the interface of everything that changes a call of the program.
 *
 * A policy is asked before the real call. It either does the whole job itself, with every promise
 * of the native call kept, and says true; or it declines, counts why, and the real call is made
 * with the original arguments. A policy that began and failed declines too: whatever it gave to the
 * stream is overwritten by the real call, whose result is the program's.
 * Thread rule: the application's thread, inside its call, no lock held.
 */
#ifndef GB_POLICY_H
#define GB_POLICY_H

#include "record/record.h"
#include "stall/call.h"

struct gb_policy {
    const char *name;
    bool (*copy)(struct gb_call *call, const struct gb_copy *copy);
    void (*totals)(struct gb_totals *totals); /* its share of the run's totals */
};

#define GB_POLICY(name, option, profile) extern const struct gb_policy gb_policy_##name;
#include "policies/registry.def"

/* Asks every policy that is on, in the order of registry.def; only about copies that block. */
bool gb_policies_copy(struct gb_call *call, const struct gb_copy *copy);
/* A wait for the call's stream, right behind a copy: may it be left out? (elide.c) */
bool gb_elide_wait(struct gb_call *call, const struct gb_copied *copied);
void gb_policy_totals(struct gb_totals *totals);

#endif

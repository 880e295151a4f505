/* site.h: the bounded table of call sites: who stalled, how often, how long.
 *
 * A site is a hooked entry point and a Python stack, or the calling instruction where there is
 * none. Lookup is lock-free; a new site takes one lock. When the table is full further sites land
 * in the overflow site 0. All counters are relaxed; readers see a slightly old but never torn
 * value.
 */
#ifndef GB_SITE_H
#define GB_SITE_H

#include "base/gb.h"

#define GB_SITE_MAX 4096

struct gb_site {
    uint32_t id;          /* index in the table; 0 is the overflow site */
    uint32_t stack_id;    /* pystack.h; 0: no Python frames */
    uint16_t hook;        /* enum gb_hook */
    char module[48];      /* native module of the caller, "" unknown */
    uint8_t native_count; /* native frames, only where there are no Python frames */
    const void *native_pcs[16];

    gb_counter calls;      /* hooked calls that were timed */
    gb_counter bytes;      /* bytes moved by them */
    gb_counter blocked_ns; /* return - entry */
    gb_counter max_blocked_ns;
    gb_counter queued_ns;   /* part of blocked_ns in which earlier work of the stream ran */
    gb_counter transfer_ns; /* part of blocked_ns in which the copy itself ran */
    gb_counter unsplit_ns;  /* part of blocked_ns that could not be split: reported n/a */
    gb_counter idle_ns;     /* GPU idle time charged to this site (bubble and transfer) */
    gb_counter bubbles;     /* how many bubbles make up idle_ns */
    gb_counter staged;      /* calls that the staging policy served */
    gb_counter elided;      /* waits that were not made */
};

/* Number of sites in use (site 0 always exists) and access by index, for the record and summary. */
uint32_t gb_site_count(void);
struct gb_site *gb_site_at(uint32_t id);
/* The site of a call: by its Python stack, or by the calling instruction where there is none. */
struct gb_site *gb_site_find(unsigned hook, uint32_t stack_id, const void *caller);
/* Native frames of the calling thread into a site that has no Python frames; once, after a stall.
 */
void gb_site_native(struct gb_site *site);
/* Name of the hooked entry point ("cudaMemcpyAsync") and of its family ("copy", "sync", ...). */
const char *gb_hook_name(unsigned hook);
const char *gb_hook_family(unsigned hook);

#endif

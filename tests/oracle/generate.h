/* generate.h: what the parts of the generator share.
 *
 * Thread rule: none. Failure rule: an operation that does not fit is left out.
 */
#ifndef ORACLE_GENERATE_H
#define ORACLE_GENERATE_H

#include "oracle.h"

struct maker {
    struct program *program;
    struct order *order;
    uint64_t random;
    uint32_t most;
    uint8_t thread;
    bool tied;  /* within a capture or a hold: only events may order */
    bool quiet; /* the program's temper: the host has little to notice */
};

uint32_t draw(struct maker *maker, uint32_t below);
bool chance(struct maker *maker, unsigned percent);
uint32_t draw_bytes(struct maker *maker, uint32_t most);
unsigned draw_stream(struct maker *maker);
unsigned draw_block(struct maker *maker, bool device);
/* Appends an operation, after those that order it; false where it does not fit. */
bool emit(struct maker *maker, struct op op);
void settle_copy_form(struct maker *maker, struct op *op);

/* generate_work.c: one operation of a random kind */
struct op make_work(struct maker *maker);
struct op make_upload(struct maker *maker, unsigned stream);
struct op make_kernel(struct maker *maker);
struct op make_fill(struct maker *maker, unsigned block);

/* generate_groups.c: groups of operations that belong together */
void make_capture(struct maker *maker);
void make_hold(struct maker *maker);
void make_chain(struct maker *maker, struct op call);
void make_witness(struct maker *maker, struct op copy);
void make_block(struct maker *maker, unsigned block);
void renew_block(struct maker *maker);
void renew_stream(struct maker *maker);
void renew_event(struct maker *maker);
void give_block_back(struct maker *maker, unsigned block);

/* generate_quiet.c: what a library may make faster, and who would notice */
struct op make_quiet_work(struct maker *maker);
void make_blocking_copy(struct maker *maker);

#endif

/* main.c: the oracle's command line.
 *
 *   oracle run SEED COUNT OPS     runs programs SEED ... SEED+COUNT-1; a line each:
 *                                 "program SEED HASH", "program SEED race"
 *   oracle trace SEED OPS         runs one, prints what was seen of every operation
 *   oracle show SEED OPS          prints one
 *   --adversary N                 which schedules (default 0); --limit S  seconds a program may
 * take
 *   --keep I,J-K,...              only these operations; what then means nothing is left out
 *   --without too-long,...        without these calls that must fail
 *   --after N                     behind the N programs before it, whole, in the same process
 * Thread rule: see execute.c. Failure rule: "program SEED hang" and status 3 when one takes too
 * long, status 2 and a message when the oracle cannot go on.
 */
#include "oracle.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ADVERSARIES 16

static struct program program;
static bool keep[OPS_MOST], keeps;
static uint64_t adversary, after;
static unsigned limit_s = 60;

static void on_alarm(int signal)
{
    char text[64];
    int bytes = snprintf(text, sizeof(text), "program %lu hang\n", (unsigned long)program.seed);
    (void)signal;
    _exit(write(STDOUT_FILENO, text, (size_t)bytes) == bytes ? 3 : 4);
}

static void parse_keep(const char *text)
{
    keeps = true;
    while (*text) {
        char *end;
        unsigned long first = strtoul(text, &end, 10), last = first;
        if (*end == '-')
            last = strtoul(end + 1, &end, 10);
        if (end == text || last >= OPS_MOST || (*end && *end != ','))
            give_up("--keep: %s", text);
        for (unsigned long i = first; i <= last; i++)
            keep[i] = true;
        text = *end ? end + 1 : end;
    }
}

static uint32_t without;

static void parse_without(char *text)
{
    static const char *const names[WRONG_CALLS] = {"no-target",   "too-long", "zero-bytes",
                                                   "null-source", "bad-kind", "no-event"};
    for (char *word = strtok(text, ","); word; word = strtok(NULL, ",")) {
        unsigned mode = 0;
        while (mode < WRONG_CALLS && strcmp(word, names[mode]) != 0)
            mode++;
        if (mode == WRONG_CALLS)
            give_up("--without: %s", word);
        without |= 1u << mode;
    }
}

/* Takes the options out of the arguments. */
static int parse_options(int argc, char **argv)
{
    int left = 1;
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (more && strcmp(argv[i], "--adversary") == 0)
            adversary = strtoull(argv[++i], NULL, 10);
        else if (more && strcmp(argv[i], "--limit") == 0)
            limit_s = (unsigned)atoi(argv[++i]);
        else if (more && strcmp(argv[i], "--keep") == 0)
            parse_keep(argv[++i]);
        else if (more && strcmp(argv[i], "--without") == 0)
            parse_without(argv[++i]);
        else if (more && strcmp(argv[i], "--after") == 0)
            after = strtoull(argv[++i], NULL, 10);
        else
            argv[left++] = argv[i];
    }
    return left;
}

/* The program of a seed; false when what is kept of it has a race. */
static bool make(uint64_t seed, uint32_t ops)
{
    program_generate(&program, seed, ops);
    return program_prepare(&program, keeps ? keep : NULL, without);
}

static void run_one(uint64_t seed, uint32_t ops, bool trace)
{
    if (!make(seed, ops)) {
        printf("program %lu race\n", (unsigned long)seed);
        return;
    }
    alarm(limit_s);
    uint64_t hash = execute(&program, seed * ADVERSARIES + adversary, trace);
    alarm(0);
    printf("program %lu %016lx\n", (unsigned long)seed, (unsigned long)hash);
    fflush(stdout);
}

/* What they leave behind in a library is a part of the next program's start. */
static void run_before(uint64_t seed, uint32_t ops)
{
    for (uint64_t before = after < seed ? seed - after : 1; after && before < seed; before++) {
        program_generate(&program, before, ops);
        if (program_prepare(&program, NULL, without))
            execute(&program, before * ADVERSARIES + adversary, false);
    }
}

static void show(uint64_t seed, uint32_t ops)
{
    bool tidy = make(seed, ops);
    for (uint32_t i = 0; i < program.count; i++) {
        if (program.ops[i].kind == NOTHING)
            continue;
        op_print(&program.ops[i], i);
        puts(program.ops[i].loose ? " (either answer)" : "");
    }
    if (!tidy)
        puts("race");
}

int main(int argc, char **argv)
{
    argc = parse_options(argc, argv);
    const char *verb = argc > 1 ? argv[1] : "";
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    uint32_t ops = argc > 3 ? (uint32_t)atoi(argv[argc - 1]) : 0;
    bool run = strcmp(verb, "run") == 0, trace = strcmp(verb, "trace") == 0;
    if (argc != (run ? 5 : 4) || (!run && !trace && strcmp(verb, "show") != 0))
        give_up("usage: oracle run SEED COUNT OPS | trace SEED OPS | show SEED OPS");
    if (!run && !trace) {
        show(seed, ops);
        return 0;
    }
    signal(SIGALRM, on_alarm);
    execute_start();
    run_before(seed, ops);
    for (uint64_t last = seed + (run ? strtoull(argv[3], NULL, 10) : 1); seed < last; seed++)
        run_one(seed, ops, trace);
    return 0;
}

/* in_child.h: runs a scenario in a forked child, so that it finds the library's tables as they were
 * at the start. A scenario returns 0, or stops at the first CHECK that does not hold. */
#ifndef IN_CHILD_H
#define IN_CHILD_H

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);          \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

static int in_child(int (*scenario)(int), int argument)
{
    int status = -1;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        static const int fatal[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
        for (unsigned i = 0; i < sizeof fatal / sizeof *fatal; i++)
            signal(fatal[i], SIG_DFL); /* cmocka would go on with its own tests */
        _exit(scenario(argument));
    }
    return child > 0 && waitpid(child, &status, 0) == child ? status : -1;
}

#define assert_scenario(scenario, argument) assert_int_equal(in_child(scenario, argument), 0)

#endif

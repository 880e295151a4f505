/* check.h: what the test programs share. A failed check is said on stderr and ends the program. */
#ifndef CHECK_H
#define CHECK_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s:", __FILE__, __LINE__, #condition);                         \
            fprintf(stderr, " " __VA_ARGS__);                                                      \
            fputc('\n', stderr);                                                                   \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* Runs the case that the first argument names. */
struct check_case {
    const char *name;
    void (*run)(void);
};
#define CHECK_MAIN(...)                                                                            \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        static const struct check_case cases[] = {__VA_ARGS__};                                    \
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)                                  \
            if (argc > 1 && strcmp(argv[1], cases[i].name) == 0) {                                 \
                cases[i].run();                                                                    \
                puts("done");                                                                      \
                return 0;                                                                          \
            }                                                                                      \
        fprintf(stderr, "no such case: %s\n", argc > 1 ? argv[1] : "(none)");                      \
        return 2;                                                                                  \
    }

/* Is the address in the library under test? */
static inline bool is_ours(const void *address)
{
    Dl_info info;
    return dladdr(address, &info) && strstr(info.dli_fname, "libgpuboost");
}

#endif

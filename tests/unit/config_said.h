/* config_said.h: loading a configuration and hearing what is said about it.
 *
 * For the tests of options; each includes it once. fd 2 goes to a file while `report` runs.
 */
#ifndef CONFIG_SAID_H
#define CONFIG_SAID_H

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "options/config_internal.h"

static char said[65536];

static inline const char *report(void)
{
    char name[] = "/tmp/test_config.XXXXXX";
    int file = mkstemp(name), kept = dup(2);
    dup2(file, 2);
    gb_config_report();
    dup2(kept, 2);
    close(kept);
    ssize_t n = pread(file, said, sizeof said - 1, 0);
    said[n > 0 ? n : 0] = 0;
    close(file);
    unlink(name);
    return said;
}

static inline void clear(void)
{
    for (size_t i = 0; i < GB_OPTION_COUNT; i++)
        unsetenv(gb_options[i].name);
    unsetenv("GPUBOOST_RNIG");
    unsetenv("GPUBOOST_PYTHON");
}

static inline void load_with(const char *name, const char *value)
{
    clear();
    setenv(name, value, 1);
    gb_config_load();
}

#endif

/* rpath.c: a library that opens another one which only its own DT_RPATH leads to, as torch's do
 * with the parts of cuDNN. */
#include <dlfcn.h>

int opens(const char *name);
int opens(const char *name)
{
    return dlopen(name, RTLD_NOW) != 0;
}

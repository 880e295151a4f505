/* chain.c: a chain of libraries that all define the same functions and hand on to the next one with
 * RTLD_NEXT, as OpenMP runtimes do with ompt_start_tool. Built several times: as LAST, as a link in
 * between, and without LINK as the program. hooked: a name that the library under test hooks. */
#include "check.h"

#ifdef LINK
int depth(int so_far);
int cuStreamSynchronize(void *stream);

int depth(int so_far)
{
#ifdef LAST
    return so_far + 1;
#else
    int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, "depth");
    if (!next || next == depth || so_far > 10)
        return -1;
    int found = next(so_far + 1);
    return found;
#endif
}

int cuStreamSynchronize(void *stream)
{
#ifdef LAST
    return *(int *)stream += 1;
#else
    int (*next)(void *) = (int (*)(void *))dlsym(RTLD_NEXT, "cuStreamSynchronize");
    if (!next || next == cuStreamSynchronize || *(int *)stream > 10)
        return -1;
    *(int *)stream += 1;
    int found = next(stream);
    return found;
#endif
}
#else
extern int depth(int so_far);
extern int cuStreamSynchronize(void *stream);

int main(void)
{
    int links = 0;
    CHECK(depth(0) == 3, "%d", depth(0));
    CHECK(cuStreamSynchronize(&links) == 3, "%d", links);
    puts("done");
    return 0;
}
#endif

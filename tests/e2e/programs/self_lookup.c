/* self_lookup.c: a library that looks itself up, as libcudnn does, under names that begin like
 * those of the driver. */
#include <dlfcn.h>

static int answer(void)
{
    return 42;
}

/* clang-format off */
#define NAMES(F) \
    F(cudnnCreate) F(cublasCreate_v2) F(cuFileRead) F(cuptiActivityEnable) \
    F(curl_easy_init) F(cufftPlan1d) F(cuMemAlloc_v2x) F(cudaMallocWithLogging)
/* clang-format on */
#define DEFINE(name)                                                                               \
    int name(void);                                                                                \
    int name(void)                                                                                 \
    {                                                                                              \
        return answer();                                                                           \
    }
NAMES(DEFINE)

/* The first name that does not lead back here; NULL: all do. */
const char *wrong_name(const char *path);
const char *wrong_name(const char *path)
{
    void *self = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    if (!self)
        return "(not loaded)";
#define COMPARE(name)                                                                              \
    if (dlsym(self, #name) != (void *)name || dlsym(RTLD_DEFAULT, #name) != (void *)name)          \
        return #name;
    NAMES(COMPARE)
    return 0;
}

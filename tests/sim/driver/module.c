/* module.c: functions by name. No device code runs, so a module is only a place to ask for names.
 *
 * One handle per kernel name for the process, made by gpusim_function (the runtime stand-in) or by
 * cuModuleGetFunction and its like.
 * Thread rule: the table has its own lock. Failure rule: NULL when memory is out.
 */
#include "entry.h"

#include "log_args.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS        4096
#define FUNCTION_MAGIC 0x66756E63u
#define MODULE_MAGIC   0x6D6F6475u

struct function {
    uint32_t magic;
    struct function *next;
    char name[];
};

struct module {
    uint32_t magic;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct function *buckets[BUCKETS];

static size_t bucket_of(const char *name)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    return hash % BUCKETS;
}

static struct function *find_or_make(const char *name)
{
    struct function **bucket = &buckets[bucket_of(name)], *function = *bucket;
    while (function && strcmp(function->name, name) != 0)
        function = function->next;
    if (function)
        return function;
    size_t length = strlen(name) + 1;
    function = malloc(sizeof(*function) + length);
    if (!function)
        return NULL;
    function->magic = FUNCTION_MAGIC;
    memcpy(function->name, name, length);
    function->next = *bucket;
    *bucket = function;
    return function;
}

__attribute__((visibility("default"))) CUfunction gpusim_function(const char *mangled_name)
{
    pthread_mutex_lock(&lock);
    struct function *function = find_or_make(mangled_name);
    pthread_mutex_unlock(&lock);
    return (CUfunction)function;
}

const char *sim_function_name(CUfunction handle)
{
    const struct function *function = (const struct function *)handle;
    return function && function->magic == FUNCTION_MAGIC ? function->name : NULL;
}

void sim_arg_function(CUfunction value)
{
    const char *name = sim_function_name(value);
    char text[64];
    snprintf(text, sizeof(text), "%.60s", name ? name : "?");
    sim_arg_text(text);
}

/* --- modules and libraries --- */

static CUresult make_module(void **handle)
{
    struct module *module = malloc(sizeof(*module));
    if (!module)
        return CUDA_ERROR_OUT_OF_MEMORY;
    module->magic = MODULE_MAGIC;
    *handle = module;
    return CUDA_SUCCESS;
}

static bool is_module(const void *handle)
{
    return handle && ((const struct module *)handle)->magic == MODULE_MAGIC;
}

static CUresult end_module(void *handle)
{
    if (!is_module(handle))
        return CUDA_ERROR_INVALID_HANDLE;
    ((struct module *)handle)->magic = 0;
    free(handle);
    return CUDA_SUCCESS;
}

CUresult drv_cuModuleLoad(CUmodule *module, const char *path)
{
    FILE *file = path ? fopen(path, "re") : NULL;
    if (!file)
        return CUDA_ERROR_FILE_NOT_FOUND;
    fclose(file);
    return make_module((void **)module);
}

CUresult drv_cuModuleLoadData(CUmodule *module, const void *image)
{
    return image ? make_module((void **)module) : CUDA_ERROR_INVALID_VALUE;
}

CUresult drv_cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count,
                                CUjit_option *options, void **values)
{
    (void)count, (void)options, (void)values;
    return drv_cuModuleLoadData(module, image);
}

CUresult drv_cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
    return drv_cuModuleLoadData(module, image);
}

CUresult drv_cuModuleUnload(CUmodule module)
{
    return end_module(module);
}

CUresult drv_cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    if (!is_module(module))
        return CUDA_ERROR_INVALID_HANDLE;
    *function = gpusim_function(name);
    return *function ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult drv_cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *bytes, CUmodule module,
                                  const char *name)
{
    (void)address, (void)bytes, (void)name;
    return is_module(module) ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_HANDLE;
}

CUresult drv_cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
    *mode = CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}

CUresult drv_cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jit_options,
                               void **jit_values, unsigned jit_count, CUlibraryOption *options,
                               void **values, unsigned count)
{
    (void)jit_options, (void)jit_values, (void)jit_count, (void)options, (void)values, (void)count;
    return code ? make_module((void **)library) : CUDA_ERROR_INVALID_VALUE;
}

CUresult drv_cuLibraryUnload(CUlibrary library)
{
    return end_module(library);
}

CUresult drv_cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
    return drv_cuModuleGetFunction((CUfunction *)kernel, (CUmodule)library, name);
}

CUresult drv_cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
    *module = (CUmodule)library;
    return is_module(library) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult drv_cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
    *function = (CUfunction)kernel;
    return sim_function_name(*function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult drv_cuFuncGetModule(CUmodule *module, CUfunction function)
{
    static struct module all = {MODULE_MAGIC};
    *module = (CUmodule)&all;
    return sim_function_name(function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult drv_cuFuncGetName(const char **name, CUfunction function)
{
    *name = sim_function_name(function);
    return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

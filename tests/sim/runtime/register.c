/* register.c: what nvcc-compiled objects tell the runtime when they are loaded.
 *
 * Only the pair (host function, mangled kernel name) matters here: no device code runs. torch
 * registers some ten thousand kernels while it is imported, so this must be cheap and must not
 * load the driver (CUDA C++ Programming Guide, "Initialization": lazily, at the first call).
 * Thread rule: a readers-writer lock around one table. Failure rule: a kernel that cannot be kept
 * is unknown at launch: cudaErrorInvalidDeviceFunction.
 */
#include "runtime.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct kernel {
    const void *host_function;
    const char *name; /* in the registering object's constant data */
    _Atomic(CUfunction) function;
};

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct kernel *table;
static size_t table_size; /* a power of two */
static size_t table_used;

static size_t slot_of(const struct kernel *entries, size_t size, const void *host_function)
{
    size_t slot = ((uintptr_t)host_function >> 4) * 0x9E3779B97F4A7C15u >> 20 & (size - 1);
    while (entries[slot].host_function && entries[slot].host_function != host_function)
        slot = (slot + 1) & (size - 1);
    return slot;
}

static int grow(void)
{
    size_t size = table_size ? table_size * 2 : 4096;
    struct kernel *bigger = calloc(size, sizeof(*bigger));
    if (!bigger)
        return 0;
    for (size_t i = 0; i < table_size; i++)
        if (table[i].host_function) {
            struct kernel *to = &bigger[slot_of(bigger, size, table[i].host_function)];
            to->host_function = table[i].host_function;
            to->name = table[i].name;
            atomic_init(&to->function, atomic_load(&table[i].function));
        }
    free(table);
    table = bigger;
    table_size = size;
    return 1;
}

static void remember(const void *host_function, const char *name)
{
    pthread_rwlock_wrlock(&lock);
    if (table_used * 2 < table_size || grow()) {
        struct kernel *entry = &table[slot_of(table, table_size, host_function)];
        table_used += entry->host_function == NULL;
        entry->host_function = host_function;
        entry->name = name;
        atomic_store(&entry->function, NULL);
    }
    pthread_rwlock_unlock(&lock);
}

CUfunction rt_function(const void *host_function)
{
    CUfunction function = NULL;
    pthread_rwlock_rdlock(&lock);
    if (table_size) {
        struct kernel *entry = &table[slot_of(table, table_size, host_function)];
        function = atomic_load_explicit(&entry->function, memory_order_acquire);
        if (entry->host_function && !function && rt_driver.function) {
            function = rt_driver.function(entry->name);
            atomic_store_explicit(&entry->function, function, memory_order_release);
        }
    }
    pthread_rwlock_unlock(&lock);
    return function;
}

/* --- called by generated code (crt/host_runtime.h has the prototypes, for C++ only) --- */

#pragma GCC visibility push(default)
void **__cudaRegisterFatBinary(void *fat_binary);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
char __cudaInitModule(void **handle);
void __cudaRegisterVar(void **handle, char *host_variable, char *device_address,
                       const char *device_name, int external, size_t bytes, int constant,
                       int global);
void __cudaRegisterFunction(void **handle, const char *host_function, char *device_function,
                            const char *device_name, int thread_limit, uint3 *thread, uint3 *block,
                            dim3 *block_size, dim3 *grid_size, int *warp_size);
#pragma GCC visibility pop

void **__cudaRegisterFatBinary(void *fat_binary)
{
    void **handle = malloc(sizeof(*handle));
    if (handle)
        *handle = fat_binary;
    return handle;
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
    (void)handle;
}

void __cudaUnregisterFatBinary(void **handle)
{
    free(handle);
}

char __cudaInitModule(void **handle)
{
    (void)handle;
    return 1;
}

void __cudaRegisterVar(void **handle, char *host_variable, char *device_address,
                       const char *device_name, int external, size_t bytes, int constant,
                       int global)
{
    (void)handle, (void)host_variable, (void)device_address, (void)device_name;
    (void)external, (void)bytes, (void)constant, (void)global;
}

void __cudaRegisterFunction(void **handle, const char *host_function, char *device_function,
                            const char *device_name, int thread_limit, uint3 *thread, uint3 *block,
                            dim3 *block_size, dim3 *grid_size, int *warp_size)
{
    (void)handle, (void)device_function, (void)thread_limit, (void)thread, (void)block;
    (void)block_size, (void)grid_size, (void)warp_size;
    remember(host_function, device_name);
}

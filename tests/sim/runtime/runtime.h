/* runtime.h: what the files of the runtime stand-in (libcudart.so.12) share.
 *
 * Every exported entry point has the same shape: RT_ENTER logs it and brings up what it needs,
 * RT_RETURN translates the driver's answer and keeps the thread's last error.
 * Thread rule: any thread; the only shared state is guarded by one mutex (context.c) and one
 * read-mostly table (register.c). Failure rule: the driver's error is the answer, never an abort.
 */
#ifndef SIM_RUNTIME_H
#define SIM_RUNTIME_H

#pragma GCC visibility push(default)
#include <cuda_runtime_api.h>
#pragma GCC visibility pop
#include <cuda.h>
#include <cudaTypedefs.h>
#include <stddef.h>

/* The driver's functions, NULL where it has none. */
struct rt_driver {
#define DRIVER(name, type) type name;
#include "driver.def"
#undef DRIVER
    void (*log_call)(const char *layer, const char *format, ...);
    CUfunction (*function)(const char *mangled_name);
    PFN_cuGetProcAddress_v12000 get_proc_address;
};

extern struct rt_driver rt_driver;

/* What an entry point needs before it may run. */
enum rt_need {
    RT_NEEDS_DRIVER,  /* libcuda.so.1 is loaded and initialised */
    RT_NEEDS_CONTEXT, /* and this thread has a current context */
};

cudaError_t rt_begin(enum rt_need need);
cudaError_t rt_set_error(cudaError_t error);
cudaError_t rt_translate(CUresult result);
int rt_current_device(void);
/* The driver function of a registered host stand-in for a kernel; NULL when there is none. */
CUfunction rt_function(const void *host_function);

#define RT_LOG(...)                                                                                \
    do {                                                                                           \
        if (rt_driver.log_call)                                                                    \
            rt_driver.log_call("rt", __VA_ARGS__);                                                 \
    } while (0)

#define RT_ENTER(need, ...)                                                                        \
    cudaError_t rt_status = rt_begin(need);                                                        \
    RT_LOG(__VA_ARGS__);                                                                           \
    if (rt_status != cudaSuccess)                                                                  \
    return rt_set_error(rt_status)

#define RT_RETURN(error) return rt_set_error(error)

/* Calls a driver function that may be missing. */
#define RT_CALL(name, ...)                                                                         \
    (rt_driver.name ? rt_translate(rt_driver.name(__VA_ARGS__)) : cudaErrorSymbolNotFound)

/* The last line of an entry point that passes its arguments on. */
#define RT_FORWARD(name, ...) RT_RETURN(RT_CALL(name, __VA_ARGS__))

#endif

/* context.c: the driver behind the runtime, the primary contexts and each thread's device and
 * error.
 *
 * The driver is found the way libcudart 12.8 finds it: dlopen("libcuda.so.1"), dlsym of
 * cuGetProcAddress_v2, everything else through that. Contexts are made at the first call that
 * needs one (cudaSetDevice included, as since CUDA 12.0).
 * Thread rule: one mutex for the one-time work, thread-local device and error.
 * Failure rule: a missing driver answers cudaErrorInsufficientDriver, like the real one.
 */
#include "runtime.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

#define MAX_DEVICES        64
#define CUDA_VERSION_ASKED 12080

struct rt_driver rt_driver;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(CUcontext) primary[MAX_DEVICES];
static atomic_int load_state; /* 0 not tried, 1 usable, 2 no driver */
static atomic_int device_count = -1;

static _Thread_local int thread_device;
static _Thread_local int context_device = -1; /* whose primary context this thread has current */
static _Thread_local cudaError_t last_error;

static void *resolve(const char *name)
{
    void *function = NULL;
    CUdriverProcAddressQueryResult status;
    CUresult result = rt_driver.get_proc_address(name, &function, CUDA_VERSION_ASKED,
                                                 CU_GET_PROC_ADDRESS_DEFAULT, &status);
    return result == CUDA_SUCCESS ? function : NULL;
}

static int load_driver(void)
{
    void *handle = dlopen("libcuda.so.1", RTLD_NOW);
    if (!handle)
        return 2;
    *(void **)&rt_driver.get_proc_address = dlsym(handle, "cuGetProcAddress_v2");
    if (!rt_driver.get_proc_address)
        return 2;
#define DRIVER(name, type) rt_driver.name = (type)resolve(#name);
#include "driver.def"
#undef DRIVER
    *(void **)&rt_driver.log_call = dlsym(handle, "gpusim_log_call");
    *(void **)&rt_driver.function = dlsym(handle, "gpusim_function");
    return rt_driver.cuInit && rt_driver.cuDeviceGetCount ? 1 : 2;
}

static cudaError_t begin_driver(void)
{
    if (atomic_load_explicit(&load_state, memory_order_acquire) == 0) {
        pthread_mutex_lock(&lock);
        if (atomic_load_explicit(&load_state, memory_order_relaxed) == 0)
            atomic_store_explicit(&load_state, load_driver(), memory_order_release);
        pthread_mutex_unlock(&lock);
    }
    if (atomic_load_explicit(&load_state, memory_order_acquire) == 2)
        return cudaErrorInsufficientDriver;
    if (atomic_load_explicit(&device_count, memory_order_acquire) >= 0)
        return cudaSuccess;
    int count = 0;
    CUresult result = rt_driver.cuInit(0);
    if (result == CUDA_SUCCESS)
        result = rt_driver.cuDeviceGetCount(&count);
    if (result == CUDA_SUCCESS)
        atomic_store_explicit(&device_count, count, memory_order_release);
    return rt_translate(result);
}

static cudaError_t make_context_current(int device)
{
    CUcontext context = atomic_load_explicit(&primary[device], memory_order_acquire);
    if (!context) {
        pthread_mutex_lock(&lock);
        context = atomic_load_explicit(&primary[device], memory_order_relaxed);
        CUresult result = CUDA_SUCCESS;
        if (!context)
            result = rt_driver.cuDevicePrimaryCtxRetain(&context, device);
        if (result == CUDA_SUCCESS)
            atomic_store_explicit(&primary[device], context, memory_order_release);
        pthread_mutex_unlock(&lock);
        if (result != CUDA_SUCCESS)
            return rt_translate(result);
    }
    CUresult result = rt_driver.cuCtxSetCurrent(context);
    if (result == CUDA_SUCCESS)
        context_device = device;
    return rt_translate(result);
}

cudaError_t rt_begin(enum rt_need need)
{
    if (need == RT_NEEDS_CONTEXT && context_device >= 0 && context_device == thread_device)
        return cudaSuccess;
    cudaError_t error = begin_driver();
    if (error != cudaSuccess || need == RT_NEEDS_DRIVER)
        return error;
    if (atomic_load_explicit(&device_count, memory_order_relaxed) == 0)
        return cudaErrorNoDevice;
    return make_context_current(thread_device);
}

cudaError_t rt_set_error(cudaError_t error)
{
    if (error != cudaSuccess)
        last_error = error;
    return error;
}

/* Since CUDA 10.1 the runtime's error numbers are the driver's. */
cudaError_t rt_translate(CUresult result)
{
    return (cudaError_t)result;
}

int rt_current_device(void)
{
    return thread_device;
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = last_error;
    last_error = cudaSuccess;
    RT_LOG("cudaGetLastError() = %d", (int)error);
    return error;
}

cudaError_t cudaPeekAtLastError(void)
{
    RT_LOG("cudaPeekAtLastError() = %d", (int)last_error);
    return last_error;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    RT_ENTER(RT_NEEDS_DRIVER, "cudaGetDeviceCount");
    *count = atomic_load_explicit(&device_count, memory_order_relaxed);
    RT_RETURN(*count ? cudaSuccess : cudaErrorNoDevice);
}

cudaError_t cudaGetDevice(int *device)
{
    RT_ENTER(RT_NEEDS_DRIVER, "cudaGetDevice() = %d", thread_device);
    *device = thread_device;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    RT_ENTER(RT_NEEDS_DRIVER, "cudaSetDevice(%d)", device);
    if (device < 0 || device >= atomic_load_explicit(&device_count, memory_order_relaxed))
        RT_RETURN(cudaErrorInvalidDevice);
    thread_device = device;
    RT_RETURN(rt_begin(RT_NEEDS_CONTEXT));
}

cudaError_t cudaInitDevice(int device, unsigned int device_flags, unsigned int flags)
{
    (void)device_flags, (void)flags;
    RT_ENTER(RT_NEEDS_DRIVER, "cudaInitDevice(%d)", device);
    int before = thread_device;
    cudaError_t error = cudaSetDevice(device);
    thread_device = before;
    RT_RETURN(error);
}

cudaError_t cudaSetDeviceFlags(unsigned int flags)
{
    RT_LOG("cudaSetDeviceFlags(%u)", flags);
    return cudaSuccess;
}

cudaError_t cudaGetDeviceFlags(unsigned int *flags)
{
    *flags = cudaDeviceScheduleAuto;
    return cudaSuccess;
}

cudaError_t cudaDeviceReset(void)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaDeviceReset");
    atomic_store(&primary[thread_device], NULL);
    context_device = -1;
    RT_FORWARD(cuDevicePrimaryCtxReset, thread_device);
}

cudaError_t cudaDeviceSynchronize(void)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaDeviceSynchronize");
    RT_FORWARD(cuCtxSynchronize);
}

/* device.c: what the simulated devices are. Numbers are those of a mid-size Ampere GPU, so that
 * PyTorch takes the paths of compute capability 8.6.
 *
 * Thread rule: constant data. Failure rule: INVALID_DEVICE; an attribute without a value is 0.
 */
#include "entry.h"

#include <stdio.h>
#include <string.h>

#define DRIVER_VERSION 12080

CUresult drv_cuInit(unsigned flags)
{
    return flags ? CUDA_ERROR_INVALID_VALUE : sim_start();
}

CUresult drv_cuDriverGetVersion(int *version)
{
    *version = DRIVER_VERSION;
    return CUDA_SUCCESS;
}

struct sim_device *sim_device_of(CUdevice device)
{
    return device >= 0 && device < sim.device_count ? &sim.devices[device] : NULL;
}

CUresult drv_cuDeviceGet(CUdevice *device, int ordinal)
{
    if (!sim_device_of(ordinal))
        return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult drv_cuDeviceGetCount(int *count)
{
    *count = sim.device_count;
    return CUDA_SUCCESS;
}

CUresult drv_cuDeviceGetName(char *name, int size, CUdevice device)
{
    if (!sim_device_of(device))
        return CUDA_ERROR_INVALID_DEVICE;
    snprintf(name, (size_t)size, "SIMULATED GPU %d (gpusim)", device);
    return CUDA_SUCCESS;
}

CUresult drv_cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    if (!sim_device_of(device))
        return CUDA_ERROR_INVALID_DEVICE;
    memcpy(uuid->bytes, "gpusim simulated", sizeof(uuid->bytes));
    uuid->bytes[15] = (char)device;
    return CUDA_SUCCESS;
}

CUresult drv_cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
    return drv_cuDeviceGetUuid(uuid, device);
}

CUresult drv_cuDeviceGetLuid(char *luid, unsigned *mask, CUdevice device)
{
    (void)luid, (void)mask, (void)device;
    return CUDA_ERROR_NOT_SUPPORTED; /* Windows only */
}

CUresult drv_cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    if (!sim_device_of(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *bytes = (size_t)SIM_NUMBER(MEMORY);
    return CUDA_SUCCESS;
}

CUresult drv_cuDeviceComputeCapability(int *major, int *minor, CUdevice device)
{
    if (!sim_device_of(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *major = 8;
    *minor = 6;
    return CUDA_SUCCESS;
}

static const struct {
    CUdevice_attribute name;
    int value;
} attributes[] = {
#define ATTRIBUTE(name, value) {CU_DEVICE_ATTRIBUTE_##name, value},
#include "attributes.def"
#undef ATTRIBUTE
};

/* GPUSIM_ATTRIBUTES: other kinds of machines, such as those where the device reads pageable memory.
 */
static bool is_overridden(CUdevice_attribute name, int *value)
{
    const char *rule = SIM_TEXT(ATTRIBUTES);
    int number, wanted, used;
    while (sscanf(rule, "%d:%d%n", &number, &wanted, &used) == 2) {
        if (number == (int)name) {
            *value = wanted;
            return true;
        }
        rule += used;
        rule += *rule == ',';
    }
    return false;
}

CUresult drv_cuDeviceGetAttribute(int *value, CUdevice_attribute name, CUdevice device)
{
    if (!sim_device_of(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (name <= 0 || name >= CU_DEVICE_ATTRIBUTE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    if (is_overridden(name, value))
        return CUDA_SUCCESS;
    *value = 0;
    for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++)
        if (attributes[i].name == name)
            *value = attributes[i].value;
    if (name == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)
        *value = device + 1;
    if (name == CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT)
        *value = (int)SIM_NUMBER(COPY_ENGINES);
    return CUDA_SUCCESS;
}

CUresult drv_cuDeviceGetPCIBusId(char *id, int size, CUdevice device)
{
    if (!sim_device_of(device))
        return CUDA_ERROR_INVALID_DEVICE;
    snprintf(id, (size_t)size, "0000:%02x:00.0", device + 1);
    return CUDA_SUCCESS;
}

CUresult drv_cuDeviceGetByPCIBusId(CUdevice *device, const char *id)
{
    unsigned domain, bus;
    if (sscanf(id, "%x:%x", &domain, &bus) != 2 || !sim_device_of((int)bus - 1))
        return CUDA_ERROR_INVALID_DEVICE;
    *device = (int)bus - 1;
    return CUDA_SUCCESS;
}

CUresult drv_cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    if (!sim_device_of(device) || !sim_device_of(peer))
        return CUDA_ERROR_INVALID_DEVICE;
    *can = device != peer;
    return CUDA_SUCCESS;
}

CUresult drv_cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute name, CUdevice device,
                                     CUdevice peer)
{
    if (!sim_device_of(device) || !sim_device_of(peer) || device == peer)
        return CUDA_ERROR_INVALID_DEVICE;
    *value = name == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED;
    return CUDA_SUCCESS;
}

CUresult drv_cuDeviceGetExecAffinitySupport(int *can, CUexecAffinityType type, CUdevice device)
{
    (void)type;
    if (!sim_device_of(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *can = 0;
    return CUDA_SUCCESS;
}

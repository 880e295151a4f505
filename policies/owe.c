/* owe.c: when a call may return early. See owe.h for the rules. */
#include "policies/owe.h"

#include "cuda/driver_api.h"
#include "gpu/capture.h"
#include "gpu/copy_place.h"
#include "gpu/exported.h"
#include "gpu/live.h"
#include "options/config.h"
#include "options/environment.h"
#include "record/counters.h"

gb_counter *gb_why_not_place(const struct gb_call *call, const struct gb_copy *copy)
{
    CUcontext context = NULL;
    CUstreamCaptureStatus capturing = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    if (!gb_driver_ready() || !call->stream ||
        gb_driver.cuCtxGetCurrent(&context) != CUDA_SUCCESS || context != call->stream->context)
        return &gb_counters.h2d_context;
    if (gb_capture_is_open() ||
        gb_driver.cuStreamIsCapturing(call->handle, &capturing) != CUDA_SUCCESS ||
        capturing != CU_STREAM_CAPTURE_STATUS_NONE)
        return &gb_counters.h2d_capture;
    if (gb_exported_touch((CUdeviceptr)(uintptr_t)copy->dst, copy->bytes))
        return &gb_counters.h2d_exported;
    switch (gb_copy_place(call->handle, context, copy)) {
    case GB_PLACE_FITS:
        return NULL;
    case GB_PLACE_CONTEXT:
        return &gb_counters.h2d_context;
    case GB_PLACE_COHERENT:
        return &gb_counters.h2d_coherent;
    case GB_PLACE_SOURCE:
        return &gb_counters.h2d_registered;
    default:
        return &gb_counters.h2d_destination;
    }
}

bool gb_may_owe_here(const struct gb_call *call)
{
    if (gb_environment.launch_blocking)
        return gb_declines(&gb_counters.owe_blocking);
    if (gb_capture_is_open())
        return gb_declines(&gb_counters.owe_capture);
    if (gb_outstanding())
        return gb_declines(&gb_counters.owe_outstanding);
    if (gb_exported_any())
        return gb_declines(&gb_counters.owe_exported);
    if (gb_gpus_are_shared() && gb_config.elide != GB_SWITCH_WIDE)
        return gb_declines(&gb_counters.owe_shared);
    return gb_live(call) || gb_declines(&gb_counters.owe_unseen);
}

bool gb_may_owe(const struct gb_call *call, const struct gb_copy *copy)
{
    return gb_config.early && copy->async && !gb_thread.waits && gb_may_owe_here(call);
}

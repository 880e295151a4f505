/* test_hook_table.c: which hook a name means, by symbol and by cuGetProcAddress.
 *
 * The table here is written from NVIDIA's cudaTypedefs.h and not from hooks.def: for each name that
 * cuGetProcAddress knows, the variants that exist, from which version each is given out, and
 * whether it is hooked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "cuda/hooks.h"
#include "stall/site.h"

#define LEGACY     CU_GET_PROC_ADDRESS_LEGACY_STREAM
#define PER_THREAD CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM

static const struct {
    const char *name;
    int since;              /* of the newest variant that is not newer than CUDA 12.8 */
    const char *symbol;     /* hooked for it */
    const char *per_thread; /* hooked for its per-thread form, NULL: none */
} apis[] = {
    {"cuMemcpyHtoD", 3020, "cuMemcpyHtoD_v2", "cuMemcpyHtoD_v2_ptds"},
    {"cuMemcpyHtoDAsync", 3020, "cuMemcpyHtoDAsync_v2", "cuMemcpyHtoDAsync_v2_ptsz"},
    {"cuMemcpyDtoH", 3020, "cuMemcpyDtoH_v2", "cuMemcpyDtoH_v2_ptds"},
    {"cuMemcpyDtoHAsync", 3020, "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoHAsync_v2_ptsz"},
    {"cuMemcpyDtoD", 3020, "cuMemcpyDtoD_v2", "cuMemcpyDtoD_v2_ptds"},
    {"cuMemcpyDtoDAsync", 3020, "cuMemcpyDtoDAsync_v2", "cuMemcpyDtoDAsync_v2_ptsz"},
    {"cuMemcpy", 4000, "cuMemcpy", "cuMemcpy_ptds"},
    {"cuMemcpyAsync", 4000, "cuMemcpyAsync", "cuMemcpyAsync_ptsz"},
    {"cuMemcpyPeerAsync", 4000, "cuMemcpyPeerAsync", "cuMemcpyPeerAsync_ptsz"},
    {"cuMemcpy2D", 3020, "cuMemcpy2D_v2", "cuMemcpy2D_v2_ptds"},
    {"cuMemcpy2DUnaligned", 3020, "cuMemcpy2DUnaligned_v2", "cuMemcpy2DUnaligned_v2_ptds"},
    {"cuMemcpy2DAsync", 3020, "cuMemcpy2DAsync_v2", "cuMemcpy2DAsync_v2_ptsz"},
    {"cuMemcpy3D", 3020, "cuMemcpy3D_v2", "cuMemcpy3D_v2_ptds"},
    {"cuMemcpy3DAsync", 3020, "cuMemcpy3DAsync_v2", "cuMemcpy3DAsync_v2_ptsz"},
    {"cuMemsetD8", 3020, "cuMemsetD8_v2", NULL},
    {"cuMemsetD32", 3020, "cuMemsetD32_v2", NULL},
    {"cuMemsetD8Async", 3020, "cuMemsetD8Async", "cuMemsetD8Async_ptsz"},
    {"cuMemsetD16Async", 3020, "cuMemsetD16Async", "cuMemsetD16Async_ptsz"},
    {"cuMemsetD32Async", 3020, "cuMemsetD32Async", "cuMemsetD32Async_ptsz"},
    {"cuLaunchKernel", 4000, "cuLaunchKernel", "cuLaunchKernel_ptsz"},
    {"cuLaunchKernelEx", 11060, "cuLaunchKernelEx", "cuLaunchKernelEx_ptsz"},
    {"cuLaunchCooperativeKernel", 9000, "cuLaunchCooperativeKernel",
     "cuLaunchCooperativeKernel_ptsz"},
    {"cuLaunchHostFunc", 10000, "cuLaunchHostFunc", "cuLaunchHostFunc_ptsz"},
    {"cuStreamAddCallback", 5000, "cuStreamAddCallback", "cuStreamAddCallback_ptsz"},
    {"cuGraphLaunch", 10000, "cuGraphLaunch", "cuGraphLaunch_ptsz"},
    {"cuEventRecord", 2000, "cuEventRecord", "cuEventRecord_ptsz"},
    {"cuEventRecordWithFlags", 11010, "cuEventRecordWithFlags", "cuEventRecordWithFlags_ptsz"},
    {"cuStreamWaitEvent", 3020, "cuStreamWaitEvent", "cuStreamWaitEvent_ptsz"},
    {"cuStreamSynchronize", 2000, "cuStreamSynchronize", "cuStreamSynchronize_ptsz"},
    {"cuCtxSynchronize", 2000, "cuCtxSynchronize", NULL},
    {"cuEventSynchronize", 2000, "cuEventSynchronize", NULL},
    {"cuStreamQuery", 2000, "cuStreamQuery", "cuStreamQuery_ptsz"},
    {"cuEventQuery", 2000, "cuEventQuery", NULL},
    {"cuMemAlloc", 3020, "cuMemAlloc_v2", NULL},
    {"cuMemAllocAsync", 11020, "cuMemAllocAsync", "cuMemAllocAsync_ptsz"},
    {"cuStreamWaitValue32", 11070, "cuStreamWaitValue32_v2", "cuStreamWaitValue32_v2_ptsz"},
    {"cuStreamWaitValue64", 11070, "cuStreamWaitValue64_v2", "cuStreamWaitValue64_v2_ptsz"},
    {"cuStreamWriteValue32", 11070, "cuStreamWriteValue32_v2", "cuStreamWriteValue32_v2_ptsz"},
    {"cuStreamWriteValue64", 11070, "cuStreamWriteValue64_v2", "cuStreamWriteValue64_v2_ptsz"},
    {"cuStreamBatchMemOp", 11070, "cuStreamBatchMemOp_v2", "cuStreamBatchMemOp_v2_ptsz"},
    {"cuWaitExternalSemaphoresAsync", 10000, "cuWaitExternalSemaphoresAsync",
     "cuWaitExternalSemaphoresAsync_ptsz"},
    {"cuSignalExternalSemaphoresAsync", 10000, "cuSignalExternalSemaphoresAsync",
     "cuSignalExternalSemaphoresAsync_ptsz"},
    {"cuMemHostGetDevicePointer", 3020, "cuMemHostGetDevicePointer_v2", NULL},
    {"cuMemAllocManaged", 6000, "cuMemAllocManaged", NULL},
    {"cuMemAllocPitch", 3020, "cuMemAllocPitch_v2", NULL},
    {"cuMemFree", 3020, "cuMemFree_v2", NULL},
    {"cuMemFreeAsync", 11020, "cuMemFreeAsync", "cuMemFreeAsync_ptsz"},
    {"cuMemAllocHost", 3020, "cuMemAllocHost_v2", NULL},
    {"cuMemHostAlloc", 2020, "cuMemHostAlloc", NULL},
    {"cuMemFreeHost", 2000, "cuMemFreeHost", NULL},
    {"cuMemHostRegister", 6050, "cuMemHostRegister_v2", NULL},
    {"cuMemHostUnregister", 4000, "cuMemHostUnregister", NULL},
    {"cuCtxSetCurrent", 4000, "cuCtxSetCurrent", NULL},
    {"cuCtxPushCurrent", 4000, "cuCtxPushCurrent_v2", NULL},
    {"cuCtxPopCurrent", 4000, "cuCtxPopCurrent_v2", NULL},
    {"cuCtxDestroy", 4000, "cuCtxDestroy_v2", NULL},
    {"cuDevicePrimaryCtxReset", 11000, "cuDevicePrimaryCtxReset_v2", NULL},
    {"cuDevicePrimaryCtxRelease", 11000, "cuDevicePrimaryCtxRelease_v2", NULL},
    {"cuStreamBeginCapture", 10010, "cuStreamBeginCapture_v2", "cuStreamBeginCapture_v2_ptsz"},
    {"cuStreamEndCapture", 10000, "cuStreamEndCapture", "cuStreamEndCapture_ptsz"},
    {"cuMemcpyPeer", 4000, "cuMemcpyPeer", "cuMemcpyPeer_ptds"},
    {"cuMemcpy3DPeer", 4000, "cuMemcpy3DPeer", "cuMemcpy3DPeer_ptds"},
    {"cuMemcpy3DPeerAsync", 4000, "cuMemcpy3DPeerAsync", "cuMemcpy3DPeerAsync_ptsz"},
    {"cuMemcpyHtoAAsync", 3020, "cuMemcpyHtoAAsync_v2", NULL},
    {"cuMemcpyAtoHAsync", 3020, "cuMemcpyAtoHAsync_v2", NULL},
    {"cuMemcpyBatchAsync", 12080, "cuMemcpyBatchAsync", "cuMemcpyBatchAsync_ptsz"},
    {"cuMemsetD2D8Async", 3020, "cuMemsetD2D8Async", "cuMemsetD2D8Async_ptsz"},
    {"cuMemsetD2D8", 3020, "cuMemsetD2D8_v2", NULL},
    {"cuMemsetD2D16Async", 3020, "cuMemsetD2D16Async", "cuMemsetD2D16Async_ptsz"},
    {"cuMemsetD2D16", 3020, "cuMemsetD2D16_v2", NULL},
    {"cuMemsetD2D32Async", 3020, "cuMemsetD2D32Async", "cuMemsetD2D32Async_ptsz"},
    {"cuMemsetD2D32", 3020, "cuMemsetD2D32_v2", NULL},
    {"cuMemsetD16", 3020, "cuMemsetD16_v2", NULL},
    {"cuMemAllocFromPoolAsync", 11020, "cuMemAllocFromPoolAsync", "cuMemAllocFromPoolAsync_ptsz"},
    {"cuMemUnmap", 10020, "cuMemUnmap", NULL},
    {"cuMemRelease", 10020, "cuMemRelease", NULL},
    {"cuMemAddressFree", 10020, "cuMemAddressFree", NULL},
    {"cuMemPoolDestroy", 11020, "cuMemPoolDestroy", NULL},
    {"cuMemPoolTrimTo", 11020, "cuMemPoolTrimTo", NULL},
    {"cuIpcGetEventHandle", 4010, "cuIpcGetEventHandle", NULL},
    {"cuMemCreate", 10020, "cuMemCreate", NULL},
    {"cuMemGetInfo", 3020, "cuMemGetInfo_v2", NULL},
    {"cuModuleLoadData", 2000, "cuModuleLoadData", NULL},
    {"cuModuleLoadDataEx", 2010, "cuModuleLoadDataEx", NULL},
    {"cuLibraryLoadData", 12000, "cuLibraryLoadData", NULL},
    {"cuMemMap", 10020, "cuMemMap", NULL},
    {"cuMemExportToShareableHandle", 10020, "cuMemExportToShareableHandle", NULL},
    {"cuMemImportFromShareableHandle", 10020, "cuMemImportFromShareableHandle", NULL},
    {"cuMemGetHandleForAddressRange", 11070, "cuMemGetHandleForAddressRange", NULL},
    {"cuIpcGetMemHandle", 4010, "cuIpcGetMemHandle", NULL},
    {"cuMemPoolExportPointer", 11020, "cuMemPoolExportPointer", NULL},
    {"cuPointerSetAttribute", 6000, "cuPointerSetAttribute", NULL},
    {"cuStreamBeginCaptureToGraph", 12030, "cuStreamBeginCaptureToGraph",
     "cuStreamBeginCaptureToGraph_ptsz"},
    {"cuGraphInstantiateWithFlags", 11040, "cuGraphInstantiateWithFlags", NULL},
    {"cuGraphInstantiateWithParams", 12000, "cuGraphInstantiateWithParams",
     "cuGraphInstantiateWithParams_ptsz"},
    {"cuGraphUpload", 11010, "cuGraphUpload", "cuGraphUpload_ptsz"},
    {"cuGraphExecUpdate", 12000, "cuGraphExecUpdate_v2", NULL},
    {"cuGraphExecMemcpyNodeSetParams", 10020, "cuGraphExecMemcpyNodeSetParams", NULL},
    {"cuGraphExecMemsetNodeSetParams", 10020, "cuGraphExecMemsetNodeSetParams", NULL},
    {"cuGraphExecChildGraphNodeSetParams", 11010, "cuGraphExecChildGraphNodeSetParams", NULL},
    {"cuGraphExecNodeSetParams", 12020, "cuGraphExecNodeSetParams", NULL},
    {"cuStreamDestroy", 4000, "cuStreamDestroy_v2", NULL},
    {"cuIpcOpenMemHandle", 11000, "cuIpcOpenMemHandle_v2", NULL},
    {"cuDeviceGetName", 2000, "cuDeviceGetName", NULL},
};

static const int versions[] = {11000, 11010, 11020, 11030, 11040, 11050, 11060, 11070,
                               11080, 12000, 12010, 12020, 12030, 12040, 12050, 12060,
                               12080, 12090, 13000, 13010, 13020, 13030};
static const uint64_t flags[] = {0, LEGACY, PER_THREAD};

static void expect(const char *name, int version, uint64_t flag, const char *symbol)
{
    unsigned hook = gb_hook_of_api(name, version, flag);
    const char *got = hook < GB_HOOK_COUNT ? gb_hook_name(hook) : "none";
    if (strcmp(got, symbol) != 0)
        fail_msg("%s %d flags %d: %s instead of %s", name, version, (int)flag, got, symbol);
}

/* Where the per-thread form is not hooked, or there is none, the plain one is named; whoever asks
 * compares it with what the driver gave. */
static void every_name_at_every_version(void **state)
{
    (void)state;
    for (size_t i = 0; i < GB_ARRAY_LEN(apis); i++)
        for (size_t v = 0; v < GB_ARRAY_LEN(versions); v++)
            for (size_t f = 0; f < GB_ARRAY_LEN(flags); f++) {
                bool per_thread = flags[f] == PER_THREAD && apis[i].per_thread;
                const char *symbol = per_thread ? apis[i].per_thread : apis[i].symbol;
                expect(apis[i].name, versions[v], flags[f],
                       apis[i].since <= versions[v] ? symbol : "none");
            }
}

static void the_look_up_itself_has_two_versions(void **state)
{
    (void)state;
    for (size_t v = 0; v < GB_ARRAY_LEN(versions); v++)
        for (size_t f = 0; f < GB_ARRAY_LEN(flags); f++)
            expect("cuGetProcAddress", versions[v], flags[f],
                   versions[v] >= 12000   ? "cuGetProcAddress_v2"
                   : versions[v] >= 11030 ? "cuGetProcAddress"
                                          : "none");
}

static void the_time_between_events_has_two_versions(void **state)
{
    (void)state;
    for (size_t v = 0; v < GB_ARRAY_LEN(versions); v++)
        expect("cuEventElapsedTime", versions[v], 0,
               versions[v] >= 12080 ? "cuEventElapsedTime_v2" : "cuEventElapsedTime");
}

/* Old callers get old variants, with other parameters. */
static void a_variant_that_is_not_hooked_is_not_mistaken(void **state)
{
    (void)state;
    expect("cuMemcpyHtoD", 3000, 0, "none");                     /* 32-bit device pointers */
    expect("cuMemcpyHtoD", 6050, PER_THREAD, "cuMemcpyHtoD_v2"); /* the flag came with 7.0 */
    expect("cuMemHostRegister", 6000, 0, "none");
    expect("cuCtxDestroy", 3020, 0, "none");
    expect("cuDevicePrimaryCtxReset", 10020, 0, "none");
    expect("cuStreamBeginCapture", 10000, 0, "none");
    expect("cuStreamBeginCapture", 10010, 0, "cuStreamBeginCapture_v2");
}

static void every_driver_hook_is_in_the_table(void **state)
{
    unsigned expected = 2 + 2, driver = 0; /* cuGetProcAddress, cuEventElapsedTime */
    (void)state;
    for (size_t i = 0; i < GB_ARRAY_LEN(apis); i++)
        expected += 1 + (apis[i].per_thread != NULL);
    for (unsigned hook = 0; hook < GB_HOOK_COUNT; hook++)
        driver += gb_hook_is_driver(hook);
    assert_int_equal(driver, expected);
}

static void names_that_only_look_like_ours_are_not_hooked(void **state)
{
    (void)state;
    static const char *const names[] = {"",
                                        "c",
                                        "cu",
                                        "cuda",
                                        "cudnnCreate",
                                        "cublasCreate_v2",
                                        "dlsym",
                                        "cuInit",
                                        "cuFileRead",
                                        "curl_easy_init",
                                        "cuptiSubscribe",
                                        "cuMemcpyHtoD",
                                        "malloc",
                                        "cuMemcpy_v2",
                                        "cuMemcpy_pt",
                                        "cudaMemcpy_",
                                        "xcuMemcpy",
                                        "CUMEMCPY",
                                        "cuMemcpy ",
                                        "cudaMemcpyBatchAsync",
                                        "cuCtxSynchronize_v2",
                                        "cuLaunchKernelExC"};
    for (size_t i = 0; i < GB_ARRAY_LEN(names); i++) {
        assert_int_equal(gb_hook_of_symbol(names[i]), GB_HOOK_COUNT);
        if (strcmp(names[i], "cuMemcpyHtoD") != 0)
            assert_int_equal(gb_hook_of_api(names[i], 13000, 0), GB_HOOK_COUNT);
    }
    /* A look-up takes the name without its variant, and never one of the runtime's. */
    assert_int_equal(gb_hook_of_api("cuMemcpyHtoD_v2", 13000, 0), GB_HOOK_COUNT);
    assert_int_equal(gb_hook_of_api("cudaMemcpy", 13000, 0), GB_HOOK_COUNT);
}

#define HOOK_DRIVER(symbol, ...) extern char exported_##symbol __asm__(#symbol);
#define HOOK_RUNTIME(name, variant, ...)                                                           \
    extern char exported_##name##variant __asm__(#name #variant);
#include "cuda/hooks.def"

static void every_symbol_is_found_and_has_its_wrapper(void **state)
{
    (void)state;
#define EXPECT(name, hook, is_driver)                                                              \
    assert_int_equal(gb_hook_of_symbol(#name), hook);                                              \
    assert_string_equal(gb_hook_name(hook), #name);                                                \
    assert_ptr_equal(gb_hook_wrapper(hook), &exported_##name);                                     \
    assert_int_equal(gb_hook_is_driver(hook), is_driver);                                          \
    assert_int_equal(gb_hook_is_per_thread(hook), strstr(#name, "_ptsz") || strstr(#name, "_ptd"   \
                                                                                          "s"));
#define EXPECT_RUNTIME(name, hook)       EXPECT(name, hook, false)
#define HOOK_DRIVER(symbol, ...)         EXPECT(symbol, GB_HOOK_##symbol, true)
#define HOOK_RUNTIME(name, variant, ...) EXPECT_RUNTIME(name##variant, GB_HOOK_##name##variant)
#include "cuda/hooks.def"
}

static void families_are_those_of_a_reader(void **state)
{
    (void)state;
    assert_string_equal(gb_hook_family(GB_HOOK_cudaMemcpyAsync), "copy");
    assert_string_equal(gb_hook_family(GB_HOOK_cudaStreamSynchronize), "sync");
    assert_string_equal(gb_hook_family(GB_HOOK_cuCtxSynchronize), "sync");
    assert_string_equal(gb_hook_family(GB_HOOK_cuEventSynchronize), "sync");
    assert_string_equal(gb_hook_family(GB_HOOK_cudaHostAlloc), "host_alloc");
    assert_string_equal(gb_hook_family(GB_HOOK_COUNT), "");
    assert_string_equal(gb_hook_name(GB_HOOK_COUNT), "");
    assert_string_equal(gb_hook_name(UINT32_MAX), "");
}

/* A slot is never NULL, and one of an entry point that nothing defines answers so. */
static void a_slot_can_be_called_before_anything_is_loaded(void **state)
{
    (void)state;
    for (unsigned hook = 0; hook < GB_HOOK_COUNT; hook++)
        assert_non_null(gb_real.slot[hook]);
    assert_int_equal(gb_real.f.cuCtxSynchronize(), CUDA_ERROR_NOT_FOUND);
    assert_int_equal(gb_real.f.cudaDeviceSynchronize(), cudaErrorSymbolNotFound);
    assert_int_equal(gb_real.f.cuCtxSynchronize(), CUDA_ERROR_NOT_FOUND);
    assert_true(gb_real.slot[GB_HOOK_cuCtxSynchronize] != gb_lazy[GB_HOOK_cuCtxSynchronize]);
}

static void a_slot_changes_once(void **state)
{
    static char real, other;
    (void)state;
    assert_true(gb_resolve_to(GB_HOOK_cuEventQuery, &real));
    assert_true(gb_resolve_to(GB_HOOK_cuEventQuery, &real));
    assert_false(gb_resolve_to(GB_HOOK_cuEventQuery, &other));
    assert_ptr_equal(gb_real.slot[GB_HOOK_cuEventQuery], &real);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_name_at_every_version),
        cmocka_unit_test(the_time_between_events_has_two_versions),
        cmocka_unit_test(the_look_up_itself_has_two_versions),
        cmocka_unit_test(a_variant_that_is_not_hooked_is_not_mistaken),
        cmocka_unit_test(every_driver_hook_is_in_the_table),
        cmocka_unit_test(names_that_only_look_like_ours_are_not_hooked),
        cmocka_unit_test(every_symbol_is_found_and_has_its_wrapper),
        cmocka_unit_test(families_are_those_of_a_reader),
        cmocka_unit_test(a_slot_can_be_called_before_anything_is_loaded),
        cmocka_unit_test(a_slot_changes_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

"""Faults put into the library one at a time, each of which a test must notice (run.py)."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Mutant:
    name: str
    file: str
    old: str  # must stand `times` in the file
    new: str
    units: tuple = ()
    pytest: tuple = ()
    times: int = 1


FENCED = "stream->fenced_id != gb_debt_last()"
HOOKS, OWE, STAGE = "preload/cuda/hooks.def", "policies/owe.c", "policies/h2d_stage.c"


def pays_not(name, head):
    return Mutant(f"pay-{name}", HOOKS, f"{head}, pay,", f"{head}, neutral,")


MUTANTS = [
    Mutant("launch-fence", "preload/stall/stamp.h", f"||\n                    {FENCED}))", "))"),
    Mutant("record-fence", "preload/stall/stamp.h", f"!stream || {FENCED}))", "!stream))"),
    Mutant("no-fence", "preload/hooks/wrap_driver.c", "gb_debt_fence((CUstream)(handle))", "(void)0"),
    Mutant("no-pay", "preload/hooks/wrap_driver.c", "GB_OWED_pay(handle)     gb_debt_pay()", "GB_OWED_pay(handle) (void)0"),
    Mutant("query-pays-not", "preload/hooks/wrap_driver.c", "gb_debts.open && (pays)", "0 && (pays)"),
    pays_not("free", "HOOK_DRIVER(cuMemFree_v2, cuMemFree, 3020, , free"),
    pays_not("unmap", "HOOK_DRIVER(cuMemUnmap, cuMemUnmap, 10020, , vmm_unmap"),
    pays_not("capture", "HOOK_DRIVER(cuStreamBeginCapture_v2, cuStreamBeginCapture, 10010, , capture_begin"),
    pays_not("stream-destroy", "HOOK_DRIVER(cuStreamDestroy_v2, cuStreamDestroy, 4000, , stream_end"),
    pays_not("ipc", "HOOK_DRIVER(cuIpcGetMemHandle, cuIpcGetMemHandle, 4010, , export_block"),
    Mutant("owe-outstanding", OWE, "if (gb_outstanding())", "if (0)"),
    Mutant("owe-exported", OWE, "if (gb_exported_any())", "if (0)"),
    Mutant("place-exported", OWE, "if (gb_exported_touch((CUdeviceptr)(uintptr_t)copy->dst, copy->bytes))", "if (0)"),
    Mutant("owe-capture", OWE, "if (gb_capture_is_open())\n        return gb_declines", "if (0)\n        return gb_declines"),
    Mutant("stage-fence", STAGE, "gb_debt_fence(\n        call->handle);", ";"),
    Mutant("stage-writer", STAGE, "= gb_outstanding() & GB_HOST_RUNS;", "= false;"),
    Mutant("stage-reclaim", STAGE, "if (!chunk->in_use)\n        return true;", "return true;", ("policies/test_h2d_stage",)),
    Mutant("hop-arrived", STAGE, "gb_real.f.cuStreamWaitEvent(call->handle, region->arrived, 0) == CUDA_SUCCESS &&", ""),
    Mutant("hop-left", STAGE, "gb_real.f.cuEventRecord(region->left, call->handle) == CUDA_SUCCESS)", "true)"),
    Mutant("debt-not-opened", STAGE, "owes && gb_debt_open(call->stream, call->handle)", "owes"),
    Mutant("hop-retire", "preload/transfer/hop.c",
           "while (hop->count && gb_real.f.cuEventQuery(hop->regions[hop->first].left) == CUDA_SUCCESS)",
           "while (hop->count)"),
    Mutant("host-runs", "preload/gpu/inflight.c", "    gb_stream_host_sees(stream);\n", "    return;\n"),
    Mutant("d2h-seen", "preload/stall/stall.c", "gb_stream_host_sees(stream);", ";"),
    Mutant("source-end", "preload/gpu/copy_place.c", "||\n        !is_pageable(src + last))", ")", ("policies/test_h2d_decline",)),
    Mutant("destination-end", "preload/gpu/copy_place.c", "if (range_end >= end)", "if (1)", ("policies/test_h2d_decline",)),
]

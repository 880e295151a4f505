/* execute_work.c: fills, kernels, host functions and graphs.
 *
 * Thread rule: the thread that has the turn; host functions run in a thread of the driver.
 * Failure rule: see oracle.h.
 */
#include "execute.h"

#include "gpusim.h"

#include <time.h>

void run_fill(const struct op *op, struct result *result)
{
    CUdeviceptr to = world.blocks[op->out[0]].address + op->offset;
    CUstream stream = handle_of(op);
    uint32_t value = op->value;
    if (op->sync) {
        note(result, op->mode == 0   ? (int)cuMemsetD8(to, (unsigned char)value, op->bytes)
                     : op->mode == 1 ? (int)cuMemsetD32(to, value, op->bytes / 4)
                                     : (int)cudaMemset((void *)to, (int)value, op->bytes));
        return;
    }
    note(result, op->mode == 0   ? (int)cuMemsetD8Async(to, (unsigned char)value, op->bytes, stream)
                 : op->mode == 1 ? (int)cuMemsetD32Async(to, value, op->bytes / 4, stream)
                                 : (int)cudaMemsetAsync((void *)to, (int)value, op->bytes, stream));
}

static struct gpusim_operand operand(unsigned block)
{
    return (struct gpusim_operand){world.blocks[block].address, world.blocks[block].bytes};
}

/* Writes a hash of all it reads to all it writes. */
void run_kernel(const struct op *op, struct result *result)
{
    static CUfunction function;
    struct gpusim_op work = {.name = "oracle:f32",
                             .flops = 1000,
                             .input_count = op->in_count,
                             .output_count = op->out_count};
    for (unsigned i = 0; i < op->in_count; i++)
        work.inputs[i] = operand(op->in[i]);
    for (unsigned i = 0; i < op->out_count; i++)
        work.outputs[i] = operand(op->out[i]);
    if (!function)
        function = gpusim_function("gpusim::op");
    void *params[] = {&work};
    CUlaunchConfig config = {1, 1, 1, 64, 1, 1, 0, handle_of(op), NULL, 0};
    note(result, op->form
                     ? cuLaunchKernelEx(&config, function, params, NULL)
                     : cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, handle_of(op), params, NULL));
}

/* --- host functions: they read host memory, write host memory, and note when they ran --- */

static void do_call(struct call *call)
{
    uint64_t seen = hash_noted(call->value, call->from, call->from_bytes);
    fill_noted(call->to, call->to_bytes, seen);
    call->result->value = hash_bytes(call->result->value ^ seen, call->turn, 8);
    ++*call->turn;
}

static void CUDA_CB host_function(void *data)
{
    do_call(data);
}

static void CUDA_CB stream_callback(CUstream stream, CUresult status, void *data)
{
    struct call *call = data;
    (void)stream;
    call->result->value += status;
    do_call(call);
}

static void CUDA_CB wait_for_host(void *data)
{
    struct call *call = data;
    struct timespec short_time = {.tv_nsec = 20000};
    while (!call->let_go)
        nanosleep(&short_time, NULL);
    call->result->value += 1;
}

void run_host_call(const struct op *op, struct call *call, struct result *result)
{
    CUstream stream = handle_of(op);
    *call = (struct call){.result = result, .value = op->value};
    if (op->kind == HOLD && op->form) {
        note(result, cuStreamWaitValue32(stream, (CUdeviceptr)world.gate, ++world.gate_value,
                                         CU_STREAM_WAIT_VALUE_GEQ));
        return;
    }
    if (op->kind == HOLD) {
        note(result, cuLaunchHostFunc(stream, wait_for_host, call));
        return;
    }
    const struct memory *from = &world.blocks[op->in[0]], *to = &world.blocks[op->out[0]];
    call->from = (void *)from->address;
    call->to = (void *)to->address;
    call->from_bytes = from->bytes < 4096 ? from->bytes : 4096;
    call->to_bytes = to->bytes;
    call->turn = &world.turns[op->stream];
    if (op->form == 0)
        note(result, cuLaunchHostFunc(stream, host_function, call));
    else if (op->form == 1)
        note(result, cuStreamAddCallback(stream, stream_callback, call, 0));
    else
        note(result, (int)cudaLaunchHostFunc(stream, host_function, call));
}

void run_release(const struct op *hold, struct call *call)
{
    if (hold->form)
        *world.gate = world.gate_value;
    else
        call->let_go = 1;
}

/* --- graphs --- */

void run_graph(const struct op *op, struct result *result)
{
    CUgraph graph = NULL;
    CUgraphExec *exec = &world.graphs[op->graph];
    switch (op->kind) {
    case CAPTURE_BEGIN:
        note(result, cuStreamBeginCapture(handle_of(op), (CUstreamCaptureMode)op->mode));
        return;
    case CAPTURE_END:
        note(result, cuStreamEndCapture(handle_of(op), &graph));
        if (!graph)
            return;
        note(result, cuGraphInstantiateWithFlags(exec, graph, 0));
        note(result, cuGraphDestroy(graph));
        return;
    case GRAPH_LAUNCH:
        note(result, *exec ? (int)cuGraphLaunch(*exec, handle_of(op)) : -1);
        return;
    default:
        note(result, *exec ? (int)cuGraphExecDestroy(*exec) : -1);
        *exec = NULL;
    }
}

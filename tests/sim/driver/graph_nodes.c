/* graph_nodes.c: nodes added by hand and what they are.
 *
 * Thread rule: sim_lock. Failure rule: INVALID_VALUE for a node of another graph; NOT_SUPPORTED
 * for parameters that the engine does not keep.
 */
#include "entry.h"

#include "log_args.h"

#include <stdlib.h>

static struct sim_node *node_of(CUgraphNode handle)
{
    struct sim_node *node = (struct sim_node *)handle;
    return node && sim_graph_of((CUgraph)node->graph) ? node : NULL;
}

/* Takes the operation over. */
static CUresult add(CUgraphNode *handle, CUgraph graph_handle, const CUgraphNode *before,
                    size_t count, struct sim_op *op, CUgraphNodeType type)
{
    struct sim_graph *graph = sim_graph_of(graph_handle);
    unsigned *indices = graph && handle ? malloc((count + 1) * sizeof(*indices)) : NULL;
    bool good = indices != NULL;
    for (size_t i = 0; good && i < count; i++) {
        const struct sim_node *node = node_of(before[i]);
        good = node && node->graph == graph;
        if (good)
            indices[i] = node->index;
    }
    struct sim_node *node = good ? sim_graph_add(graph, op, type, indices, (unsigned)count) : NULL;
    free(indices);
    if (!node && op)
        sim_op_drop(op);
    if (node)
        *handle = (CUgraphNode)node;
    return node ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult drv_cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before,
                                 size_t count)
{
    return add(node, graph, before, count, NULL, CU_GRAPH_NODE_TYPE_EMPTY);
}

CUresult drv_cuGraphAddHostNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before,
                                size_t count, const CUDA_HOST_NODE_PARAMS *params)
{
    struct sim_op *op = sim_op_new(SIM_OP_HOST, SIM_NO_UNIT, 0);
    op->host.function = params->fn;
    op->host.data = params->userData;
    return add(node, graph, before, count, op, CU_GRAPH_NODE_TYPE_HOST);
}

CUresult drv_cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before,
                                  size_t count, const CUDA_MEMCPY3D *params, CUcontext context)
{
    (void)context;
    struct sim_copy box;
    CUresult result = sim_copy_box_of(params, &box);
    if (result != CUDA_SUCCESS)
        return result;
    bool to_device = sim_is_device_address(box.dst), from_device = sim_is_device_address(box.src);
    enum sim_unit_kind unit = to_device && from_device ? SIM_COMPUTE
                              : to_device              ? SIM_H2D
                                                       : SIM_D2H;
    double bytes = (double)box.width * (double)box.height * (double)box.depth;
    struct sim_op *op =
        sim_op_new(SIM_OP_COPY, unit, sim_transfer_ns(bytes, SIM_NUMBER(PINNED_GBPS)));
    op->copy = box;
    sim_log_copy(&box);
    return add(node, graph, before, count, op, CU_GRAPH_NODE_TYPE_MEMCPY);
}

CUresult drv_cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before,
                                  size_t count, const CUDA_MEMSET_NODE_PARAMS *params,
                                  CUcontext context)
{
    (void)context;
    struct sim_fill fill = {params->dst,    params->width * params->elementSize,
                            params->height, params->pitch,
                            params->value,  params->elementSize};
    sim_log_rows("writes", fill.dst, fill.width, fill.height, fill.pitch);
    return add(node, graph, before, count, sim_fill_operation(&fill), CU_GRAPH_NODE_TYPE_MEMSET);
}

CUresult drv_cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *before,
                                     size_t count, const CUDA_KERNEL_NODE_PARAMS *params)
{
    CUfunction function = params->func ? params->func : (CUfunction)params->kern;
    if (!sim_function_name(function))
        return CUDA_ERROR_INVALID_HANDLE;
    uint64_t blocks = (uint64_t)params->gridDimX * params->gridDimY * params->gridDimZ;
    uint64_t threads = (uint64_t)params->blockDimX * params->blockDimY * params->blockDimZ;
    struct sim_op *op = sim_kernel_operation(function, params->kernelParams, blocks, threads);
    return op ? add(node, graph, before, count, op, CU_GRAPH_NODE_TYPE_KERNEL)
              : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult drv_cuGraphAddEventRecordNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before,
                                       size_t count, CUevent handle)
{
    struct sim_event *event = sim_event_of(handle);
    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    CUresult result = add(node, graph, before, count, NULL, CU_GRAPH_NODE_TYPE_EVENT_RECORD);
    if (result == CUDA_SUCCESS)
        ((struct sim_node *)*node)->event = event;
    return result;
}

CUresult drv_cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before,
                                      size_t count, CUgraph child)
{
    if (!sim_graph_of(child))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = add(node, graph, before, count, NULL, CU_GRAPH_NODE_TYPE_GRAPH);
    if (result == CUDA_SUCCESS)
        ((struct sim_node *)*node)->child = sim_graph_copy(sim_graph_of(child));
    return result;
}

/* --- what a node is --- */

CUresult drv_cuGraphNodeGetType(CUgraphNode handle, CUgraphNodeType *type)
{
    struct sim_node *node = node_of(handle);
    if (!node || !type)
        return CUDA_ERROR_INVALID_VALUE;
    *type = node->type;
    return CUDA_SUCCESS;
}

CUresult drv_cuGraphNodeGetDependencies_v2(CUgraphNode handle, CUgraphNode *before,
                                           CUgraphEdgeData *data, size_t *count)
{
    struct sim_node *node = node_of(handle);
    if (!node || !count)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; before && i < *count; i++)
        before[i] =
            i < node->before_count ? (CUgraphNode)node->graph->nodes[node->before[i]] : NULL;
    for (size_t i = 0; data && i < *count; i++)
        data[i] = (CUgraphEdgeData){0};
    *count = node->before_count;
    return CUDA_SUCCESS;
}

CUresult drv_cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *before, size_t *count)
{
    return drv_cuGraphNodeGetDependencies_v2(node, before, NULL, count);
}

CUresult drv_cuGraphDestroyNode(CUgraphNode handle)
{
    struct sim_node *node = node_of(handle);
    if (!node)
        return CUDA_ERROR_INVALID_VALUE;
    node->removed = true;
    return CUDA_SUCCESS;
}

CUresult drv_cuGraphHostNodeGetParams(CUgraphNode handle, CUDA_HOST_NODE_PARAMS *params)
{
    struct sim_node *node = node_of(handle);
    if (!node || !node->op || node->type != CU_GRAPH_NODE_TYPE_HOST)
        return CUDA_ERROR_INVALID_VALUE;
    params->fn = node->op->host.function;
    params->userData = node->op->host.data;
    return CUDA_SUCCESS;
}

CUresult drv_cuGraphMemcpyNodeGetParams(CUgraphNode handle, CUDA_MEMCPY3D *params)
{
    struct sim_node *node = node_of(handle);
    if (!node || !node->op || node->type != CU_GRAPH_NODE_TYPE_MEMCPY)
        return CUDA_ERROR_INVALID_VALUE;
    const struct sim_copy *copy = &node->op->copy;
    *params = (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                              .srcDevice = copy->src,
                              .srcPitch = copy->src_pitch,
                              .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                              .dstDevice = copy->dst,
                              .dstPitch = copy->dst_pitch,
                              .WidthInBytes = copy->width,
                              .Height = copy->height,
                              .Depth = copy->depth};
    return CUDA_SUCCESS;
}

CUresult drv_cuGraphMemsetNodeGetParams(CUgraphNode handle, CUDA_MEMSET_NODE_PARAMS *params)
{
    struct sim_node *node = node_of(handle);
    if (!node || !node->op || node->type != CU_GRAPH_NODE_TYPE_MEMSET)
        return CUDA_ERROR_INVALID_VALUE;
    const struct sim_fill *fill = &node->op->fill;
    *params = (CUDA_MEMSET_NODE_PARAMS){.dst = fill->dst,
                                        .pitch = fill->pitch,
                                        .value = fill->value,
                                        .elementSize = fill->unit_bytes,
                                        .width = fill->width / fill->unit_bytes,
                                        .height = fill->height};
    return CUDA_SUCCESS;
}

CUresult drv_cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *params)
{
    (void)params;
    return node_of(node) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
}

CUresult drv_cuGraphChildGraphNodeGetGraph(CUgraphNode handle, CUgraph *graph)
{
    struct sim_node *node = node_of(handle);
    if (!node || !node->child)
        return CUDA_ERROR_INVALID_VALUE;
    *graph = (CUgraph)node->child;
    return CUDA_SUCCESS;
}

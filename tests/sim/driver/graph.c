/* graph.c: graphs and their executable form; nodes are in graph_nodes.c.
 *
 * Thread rule: sim_lock. Failure rule: an unknown handle answers INVALID_VALUE.
 */
#include "entry.h"

#include <stdio.h>
#include <stdlib.h>

#define EXEC_MAGIC 0x65786563u

static uint64_t next_exec;

static struct sim_exec *exec_of(CUgraphExec handle)
{
    struct sim_exec *exec = (struct sim_exec *)handle;
    return exec && exec->magic == EXEC_MAGIC ? exec : NULL;
}

CUresult drv_cuGraphCreate(CUgraph *graph, unsigned flags)
{
    if (!graph || flags)
        return CUDA_ERROR_INVALID_VALUE;
    *graph = (CUgraph)sim_graph_new();
    return *graph ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult drv_cuGraphDestroy(CUgraph handle)
{
    struct sim_graph *graph = sim_graph_of(handle);
    if (!graph)
        return CUDA_ERROR_INVALID_VALUE;
    sim_graph_end(graph);
    return CUDA_SUCCESS;
}

CUresult drv_cuGraphClone(CUgraph *clone, CUgraph handle)
{
    struct sim_graph *graph = sim_graph_of(handle);
    if (!clone || !graph)
        return CUDA_ERROR_INVALID_VALUE;
    *clone = (CUgraph)sim_graph_copy(graph);
    return *clone ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* --- executable graphs --- */

CUresult drv_cuGraphInstantiateWithFlags(CUgraphExec *handle, CUgraph graph_handle,
                                         unsigned long long flags)
{
    (void)flags;
    struct sim_graph *graph = sim_graph_of(graph_handle);
    if (!handle || !graph)
        return CUDA_ERROR_INVALID_VALUE;
    struct sim_exec *exec = calloc(1, sizeof(*exec));
    if (!exec)
        return CUDA_ERROR_OUT_OF_MEMORY;
    exec->magic = EXEC_MAGIC;
    exec->graph = sim_graph_copy(graph);
    exec->ordinal = ++next_exec;
    *handle = (CUgraphExec)exec;
    return CUDA_SUCCESS;
}

CUresult drv_cuGraphInstantiateWithParams(CUgraphExec *handle, CUgraph graph,
                                          CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
    CUresult result = drv_cuGraphInstantiateWithFlags(handle, graph, params->flags);
    params->hErrNode_out = NULL;
    params->result_out =
        result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
    return result;
}

CUresult drv_cuGraphUpload(CUgraphExec handle, CUstream stream)
{
    return exec_of(handle) && sim_stream_of(stream) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult capture_launch(struct sim_stream *stream, const struct sim_exec *exec)
{
    struct sim_capture *capture = stream->capture;
    if (capture->failure != CUDA_SUCCESS)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    struct sim_node *node = sim_graph_add(capture->graph, NULL, CU_GRAPH_NODE_TYPE_GRAPH,
                                          stream->capture_nodes, stream->capture_node_count);
    node->child = sim_graph_copy(exec->graph);
    sim_capture_set(stream, &node->index, 1, false);
    return CUDA_SUCCESS;
}

/* Launches of one executable graph do not overlap (CUDA Driver API, cuGraphLaunch). */
CUresult drv_cuGraphLaunch(CUgraphExec handle, CUstream stream_handle)
{
    struct sim_exec *exec = exec_of(handle);
    struct sim_stream *stream = sim_stream_of(stream_handle);
    if (!exec)
        return CUDA_ERROR_INVALID_VALUE;
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    if (stream->capture)
        return capture_launch(stream, exec);
    CUresult result = sim_capture_allows_stream(stream);
    if (result != CUDA_SUCCESS)
        return result;
    struct sim_op *before = exec->last;
    sim_graph_submit(stream, exec->graph, before, &exec->last);
    if (before)
        sim_op_drop(before);
    return CUDA_SUCCESS;
}

/* What was launched still runs. */
CUresult drv_cuGraphExecDestroy(CUgraphExec handle)
{
    struct sim_exec *exec = exec_of(handle);
    if (!exec)
        return CUDA_ERROR_INVALID_VALUE;
    if (exec->last)
        sim_op_drop(exec->last);
    sim_graph_end(exec->graph);
    exec->magic = 0;
    free(exec);
    return CUDA_SUCCESS;
}

static bool same_shape(const struct sim_graph *a, const struct sim_graph *b)
{
    bool same = a->count == b->count;
    for (unsigned i = 0; same && i < a->count; i++)
        same = a->nodes[i]->type == b->nodes[i]->type &&
               a->nodes[i]->before_count == b->nodes[i]->before_count;
    return same;
}

CUresult drv_cuGraphExecUpdate_v2(CUgraphExec handle, CUgraph graph_handle,
                                  CUgraphExecUpdateResultInfo *info)
{
    struct sim_exec *exec = exec_of(handle);
    struct sim_graph *graph = sim_graph_of(graph_handle);
    if (!exec || !graph || !info)
        return CUDA_ERROR_INVALID_VALUE;
    bool same = same_shape(exec->graph, graph);
    *info =
        (CUgraphExecUpdateResultInfo){.result = same ? CU_GRAPH_EXEC_UPDATE_SUCCESS
                                                     : CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED};
    if (!same)
        return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    sim_graph_end(exec->graph);
    exec->graph = sim_graph_copy(graph);
    return CUDA_SUCCESS;
}

/* --- looking at a graph --- */

CUresult drv_cuGraphGetNodes(CUgraph handle, CUgraphNode *nodes, size_t *count)
{
    struct sim_graph *graph = sim_graph_of(handle);
    if (!graph || !count)
        return CUDA_ERROR_INVALID_VALUE;
    size_t found = 0;
    for (unsigned i = 0; i < graph->count; i++) {
        if (graph->nodes[i]->removed)
            continue;
        if (nodes && found < *count)
            nodes[found] = (CUgraphNode)graph->nodes[i];
        found++;
    }
    for (size_t i = found; nodes && i < *count; i++)
        nodes[i] = NULL;
    *count = found;
    return CUDA_SUCCESS;
}

CUresult drv_cuGraphGetRootNodes(CUgraph handle, CUgraphNode *nodes, size_t *count)
{
    struct sim_graph *graph = sim_graph_of(handle);
    if (!graph || !count)
        return CUDA_ERROR_INVALID_VALUE;
    size_t found = 0;
    for (unsigned i = 0; i < graph->count; i++) {
        if (graph->nodes[i]->removed || graph->nodes[i]->before_count > 0)
            continue;
        if (nodes && found < *count)
            nodes[found] = (CUgraphNode)graph->nodes[i];
        found++;
    }
    *count = found;
    return CUDA_SUCCESS;
}

CUresult drv_cuGraphGetEdges_v2(CUgraph handle, CUgraphNode *from, CUgraphNode *to,
                                CUgraphEdgeData *data, size_t *count)
{
    struct sim_graph *graph = sim_graph_of(handle);
    if (!graph || !count)
        return CUDA_ERROR_INVALID_VALUE;
    size_t found = 0;
    for (unsigned i = 0; i < graph->count; i++) {
        for (unsigned b = 0; b < graph->nodes[i]->before_count; b++, found++) {
            if (!from || !to || found >= *count)
                continue;
            from[found] = (CUgraphNode)graph->nodes[graph->nodes[i]->before[b]];
            to[found] = (CUgraphNode)graph->nodes[i];
            if (data)
                data[found] = (CUgraphEdgeData){0};
        }
    }
    *count = found;
    return CUDA_SUCCESS;
}

CUresult drv_cuGraphDebugDotPrint(CUgraph handle, const char *path, unsigned flags)
{
    (void)flags;
    struct sim_graph *graph = sim_graph_of(handle);
    FILE *file = graph && path ? fopen(path, "we") : NULL;
    if (!file)
        return CUDA_ERROR_INVALID_VALUE;
    fputs("digraph gpusim {\n", file);
    for (unsigned i = 0; i < graph->count; i++) {
        fprintf(file, "  n%u [label=\"%u\"];\n", i, (unsigned)graph->nodes[i]->type);
        for (unsigned b = 0; b < graph->nodes[i]->before_count; b++)
            fprintf(file, "  n%u -> n%u;\n", graph->nodes[i]->before[b], i);
    }
    fputs("}\n", file);
    fclose(file);
    return CUDA_SUCCESS;
}

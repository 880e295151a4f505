/* capture.c: the entry points of stream capture; what a capture is and forbids is in
 * engine/capture.c.
 *
 * Thread rule: sim_lock; the node lists given out are the thread's own, valid until its next call.
 * Failure rule: as documented per call in the CUDA Driver API.
 */
#include "entry.h"

#include <stdlib.h>

CUresult drv_cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode)
{
    struct sim_stream *stream = sim_stream_of(handle);
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    if ((unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    return sim_capture_begin(stream, mode, NULL, NULL, 0);
}

/* Indices of the nodes; NULL when one is not of the graph. */
static unsigned *indices_of(const struct sim_graph *graph, const CUgraphNode *nodes, size_t count)
{
    unsigned *indices = malloc((count + 1) * sizeof(*indices));
    for (size_t i = 0; indices && i < count; i++) {
        const struct sim_node *node = (const struct sim_node *)nodes[i];
        if (!node || node->graph != graph) {
            free(indices);
            return NULL;
        }
        indices[i] = node->index;
    }
    return indices;
}

CUresult drv_cuStreamBeginCaptureToGraph(CUstream handle, CUgraph graph_handle,
                                         const CUgraphNode *nodes, const CUgraphEdgeData *edges,
                                         size_t count, CUstreamCaptureMode mode)
{
    (void)edges;
    struct sim_stream *stream = sim_stream_of(handle);
    struct sim_graph *graph = sim_graph_of(graph_handle);
    if (!stream || !graph)
        return CUDA_ERROR_INVALID_HANDLE;
    unsigned *indices = indices_of(graph, nodes, count);
    if (!indices)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sim_capture_begin(stream, mode, graph, indices, (unsigned)count);
    free(indices);
    return result;
}

CUresult drv_cuStreamEndCapture(CUstream handle, CUgraph *graph)
{
    struct sim_stream *stream = sim_stream_of(handle);
    struct sim_graph *made = NULL;
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    CUresult result = sim_capture_end(stream, &made);
    if (graph)
        *graph = (CUgraph)made;
    return result;
}

/* Asking the legacy stream while a blocking stream captures is an error that breaks nothing
 * (CUDA Driver API, cuStreamIsCapturing). */
static CUresult status_of(CUstream handle, CUstreamCaptureStatus *status,
                          struct sim_stream **stream)
{
    *stream = sim_stream_of(handle);
    if (!*stream)
        return CUDA_ERROR_INVALID_HANDLE;
    if (sim_capture_blocks_legacy(*stream))
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    const struct sim_capture *capture = (*stream)->capture;
    *status = !capture                           ? CU_STREAM_CAPTURE_STATUS_NONE
              : capture->failure == CUDA_SUCCESS ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                                                 : CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    return CUDA_SUCCESS;
}

CUresult drv_cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *status)
{
    struct sim_stream *stream;
    return status ? status_of(handle, status, &stream) : CUDA_ERROR_INVALID_VALUE;
}

static const CUgraphNode *nodes_of(const struct sim_stream *stream)
{
    static _Thread_local CUgraphNode *nodes;
    free(nodes);
    nodes = malloc((stream->capture_node_count + 1) * sizeof(CUgraphNode));
    for (unsigned i = 0; nodes && i < stream->capture_node_count; i++)
        nodes[i] = (CUgraphNode)stream->capture->graph->nodes[stream->capture_nodes[i]];
    return nodes;
}

CUresult drv_cuStreamGetCaptureInfo_v2(CUstream handle, CUstreamCaptureStatus *status,
                                       cuuint64_t *id, CUgraph *graph, const CUgraphNode **nodes,
                                       size_t *count)
{
    struct sim_stream *stream;
    CUstreamCaptureStatus own;
    CUresult result = status_of(handle, status ? status : &own, &stream);
    if (result != CUDA_SUCCESS || !stream->capture)
        return result;
    if (id)
        *id = stream->capture->id;
    if (graph)
        *graph = (CUgraph)stream->capture->graph;
    if (nodes)
        *nodes = nodes_of(stream);
    if (count)
        *count = stream->capture_node_count;
    return CUDA_SUCCESS;
}

CUresult drv_cuStreamGetCaptureInfo_v3(CUstream handle, CUstreamCaptureStatus *status,
                                       cuuint64_t *id, CUgraph *graph, const CUgraphNode **nodes,
                                       const CUgraphEdgeData **edges, size_t *count)
{
    if (edges)
        *edges = NULL; /* all of them are plain */
    return drv_cuStreamGetCaptureInfo_v2(handle, status, id, graph, nodes, count);
}

CUresult drv_cuStreamUpdateCaptureDependencies(CUstream handle, CUgraphNode *nodes, size_t count,
                                               unsigned flags)
{
    struct sim_stream *stream = sim_stream_of(handle);
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!stream->capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    unsigned *indices = indices_of(stream->capture->graph, nodes, count);
    if (!indices || flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES) {
        free(indices);
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_capture_set(stream, indices, (unsigned)count, flags == CU_STREAM_ADD_CAPTURE_DEPENDENCIES);
    free(indices);
    return CUDA_SUCCESS;
}

CUresult drv_cuStreamUpdateCaptureDependencies_v2(CUstream handle, CUgraphNode *nodes,
                                                  const CUgraphEdgeData *edges, size_t count,
                                                  unsigned flags)
{
    (void)edges;
    return drv_cuStreamUpdateCaptureDependencies(handle, nodes, count, flags);
}

CUresult drv_cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    if (!mode || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    CUstreamCaptureMode before = sim_thread.capture_mode;
    sim_thread.capture_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

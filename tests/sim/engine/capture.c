/* capture.c: stream capture and what it forbids (CUDA Driver API: cuStreamBeginCapture,
 * cuThreadExchangeStreamCaptureMode; CUDA Programming Guide, "Prohibited and unhandled
 * operations").
 *
 * A capturing stream has a set of nodes that its next node comes after. Waiting for an event that
 * was recorded in a capture draws a stream into it.
 * Thread rule: sim_lock. Failure rule: an illegal call answers its documented code and invalidates
 * the capture it broke; ending that one answers STREAM_CAPTURE_INVALIDATED.
 */
#include "engine.h"

#include <stdlib.h>
#include <string.h>

static struct sim_capture *captures;
static uint64_t next_id;

void sim_capture_set(struct sim_stream *stream, const unsigned *nodes, unsigned count, bool add)
{
    unsigned before = add ? stream->capture_node_count : 0;
    unsigned *set = malloc((before + count + 1) * sizeof(*set));
    memcpy(set, stream->capture_nodes ? stream->capture_nodes : nodes, before * sizeof(*set));
    unsigned total = before;
    for (unsigned i = 0; i < count; i++) {
        bool known = false;
        for (unsigned k = 0; k < total && !known; k++)
            known = set[k] == nodes[i];
        if (!known)
            set[total++] = nodes[i];
    }
    free(stream->capture_nodes);
    stream->capture_nodes = set;
    stream->capture_node_count = total;
}

void sim_capture_fail(struct sim_capture *capture, CUresult failure)
{
    if (capture->failure == CUDA_SUCCESS)
        capture->failure = failure;
}

struct sim_capture *sim_capture_in(struct sim_context *context)
{
    struct sim_capture *capture = captures;
    while (capture && capture->origin->context != context)
        capture = capture->next;
    return capture;
}

/* --- what a capture forbids --- */

static bool forbids_unsafe(const struct sim_capture *capture)
{
    if (sim_thread.capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED ||
        capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED || capture->failure != CUDA_SUCCESS)
        return false;
    if (pthread_equal(capture->thread, pthread_self()))
        return true;
    return capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
           sim_thread.capture_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

CUresult sim_capture_allows_unsafe(void)
{
    CUresult result = CUDA_SUCCESS;
    for (struct sim_capture *capture = captures; capture; capture = capture->next) {
        if (!forbids_unsafe(capture))
            continue;
        sim_capture_fail(capture, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return result;
}

bool sim_capture_blocks_legacy(const struct sim_stream *stream)
{
    if (stream != stream->context->legacy)
        return false;
    for (const struct sim_capture *capture = captures; capture; capture = capture->next)
        if (capture->origin->context == stream->context && capture->origin->blocking)
            return true;
    return false;
}

CUresult sim_capture_allows_stream(struct sim_stream *stream)
{
    if (stream != stream->context->legacy)
        return CUDA_SUCCESS;
    CUresult result = CUDA_SUCCESS;
    for (struct sim_capture *capture = captures; capture; capture = capture->next) {
        if (capture->origin->context != stream->context || !capture->origin->blocking)
            continue;
        sim_capture_fail(capture, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    return result;
}

/* --- begin and end --- */

CUresult sim_capture_begin(struct sim_stream *stream, CUstreamCaptureMode mode,
                           struct sim_graph *into, const unsigned *after, unsigned after_count)
{
    if (stream == stream->context->legacy)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (stream->capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    struct sim_capture *capture = calloc(1, sizeof(*capture));
    if (!capture)
        return CUDA_ERROR_OUT_OF_MEMORY;
    capture->graph = into ? into : sim_graph_new();
    capture->own_graph = !into;
    capture->origin = stream;
    capture->mode = mode;
    capture->thread = pthread_self();
    capture->id = ++next_id;
    capture->next = captures;
    captures = capture;
    stream->capture = capture;
    sim_capture_set(stream, after, after_count, false);
    return CUDA_SUCCESS;
}

static void leave(struct sim_stream *stream)
{
    stream->capture = NULL;
    free(stream->capture_nodes);
    stream->capture_nodes = NULL;
    stream->capture_node_count = 0;
}

static void leave_all(struct sim_capture *capture)
{
    struct sim_context *context = capture->origin->context;
    struct sim_stream *lists[] = {context->streams, context->per_thread};
    for (int i = 0; i < 2; i++)
        for (struct sim_stream *s = lists[i]; s; s = s->next_in_context)
            if (s->capture == capture)
                leave(s);
    struct sim_capture **at = &captures;
    while (*at != capture)
        at = &(*at)->next;
    *at = capture->next;
}

static bool all_joined(const struct sim_capture *capture)
{
    const struct sim_stream *origin = capture->origin;
    for (unsigned i = 0; i < capture->graph->count; i++) {
        bool joined = !sim_graph_is_leaf(capture->graph, i);
        for (unsigned k = 0; k < origin->capture_node_count && !joined; k++)
            joined = origin->capture_nodes[k] == i;
        if (!joined)
            return false;
    }
    return true;
}

CUresult sim_capture_end(struct sim_stream *stream, struct sim_graph **graph)
{
    struct sim_capture *capture = stream->capture;
    *graph = NULL;
    if (!capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (capture->origin != stream) {
        sim_capture_fail(capture, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    }
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
        !pthread_equal(capture->thread, pthread_self()))
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    CUresult result = capture->failure;
    if (result == CUDA_SUCCESS && !all_joined(capture))
        result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    leave_all(capture);
    if (result == CUDA_SUCCESS)
        *graph = capture->graph;
    else if (capture->own_graph)
        sim_graph_end(capture->graph);
    free(capture);
    return result;
}

/* A capturing stream that is destroyed takes its capture along. */
void sim_capture_stream_gone(struct sim_stream *stream)
{
    struct sim_capture *capture = stream->capture;
    if (!capture)
        return;
    if (capture->origin != stream) {
        sim_capture_fail(capture, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        leave(stream);
        return;
    }
    leave_all(capture);
    if (capture->own_graph)
        sim_graph_end(capture->graph);
    free(capture);
}

/* --- events --- */

CUresult sim_capture_record(struct sim_stream *stream, struct sim_event *event, bool external)
{
    struct sim_capture *capture = stream->capture;
    if (capture->failure != CUDA_SUCCESS)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (external) {
        struct sim_node *node = sim_graph_add(
            capture->graph, sim_op_new(SIM_OP_EMPTY, SIM_NO_UNIT, 0),
            CU_GRAPH_NODE_TYPE_EVENT_RECORD, stream->capture_nodes, stream->capture_node_count);
        node->event = event;
        sim_capture_set(stream, &node->index, 1, false);
        return CUDA_SUCCESS;
    }
    free(event->capture_nodes);
    event->capture = capture;
    event->capture_id = capture->id;
    event->capture_node_count = stream->capture_node_count;
    event->capture_nodes = malloc((stream->capture_node_count + 1) * sizeof(unsigned));
    memcpy(event->capture_nodes, stream->capture_nodes,
           stream->capture_node_count * sizeof(unsigned));
    return CUDA_SUCCESS;
}

static struct sim_capture *capture_of(const struct sim_event *event)
{
    for (struct sim_capture *capture = captures; capture; capture = capture->next)
        if (capture == event->capture && capture->id == event->capture_id)
            return capture;
    return NULL;
}

/* Called when the stream captures or the event was recorded in a capture. */
CUresult sim_capture_wait(struct sim_stream *stream, struct sim_event *event)
{
    struct sim_capture *theirs = event->capture ? capture_of(event) : NULL;
    if (stream->capture && stream->capture->failure != CUDA_SUCCESS)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (stream->capture && !theirs) {
        sim_capture_fail(stream->capture, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    if (!theirs)
        return CUDA_ERROR_CAPTURED_EVENT;
    if (stream->capture && stream->capture != theirs) {
        sim_capture_fail(stream->capture, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        sim_capture_fail(theirs, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    if (stream == stream->context->legacy) {
        sim_capture_fail(theirs, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    bool joined = stream->capture == theirs;
    stream->capture = theirs;
    sim_capture_set(stream, event->capture_nodes, event->capture_node_count, joined);
    return CUDA_SUCCESS;
}

/* --- one way in for all work --- */

static CUgraphNodeType node_type(const struct sim_op *op)
{
    switch (op->kind) {
    case SIM_OP_KERNEL:
        return CU_GRAPH_NODE_TYPE_KERNEL;
    case SIM_OP_COPY:
        return CU_GRAPH_NODE_TYPE_MEMCPY;
    case SIM_OP_FILL:
        return CU_GRAPH_NODE_TYPE_MEMSET;
    case SIM_OP_HOST:
        return CU_GRAPH_NODE_TYPE_HOST;
    case SIM_OP_WRITE:
    case SIM_OP_WAIT:
        return CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
    default:
        return CU_GRAPH_NODE_TYPE_EMPTY;
    }
}

CUresult sim_enqueue(struct sim_stream *stream, struct sim_op *op, struct sim_op **kept)
{
    struct sim_capture *capture = stream->capture;
    CUresult result = sim_capture_allows_stream(stream);
    if (result == CUDA_SUCCESS && capture && capture->failure != CUDA_SUCCESS)
        result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (kept)
        *kept = NULL;
    if (result != CUDA_SUCCESS) {
        sim_op_drop(op);
    } else if (capture) {
        struct sim_node *node = sim_graph_add(capture->graph, op, node_type(op),
                                              stream->capture_nodes, stream->capture_node_count);
        sim_capture_set(stream, &node->index, 1, false);
    } else {
        sim_op_submit(stream, op, kept);
    }
    return result;
}

/* graph.c: graphs as lists of operation templates with edges; a launch clones them in order.
 *
 * Host pointers in copy nodes are read at every launch (CUDA Programming Guide, CUDA graphs).
 * Thread rule: sim_lock. Failure rule: NULL.
 */
#include "engine.h"

#include <stdlib.h>
#include <string.h>

#define GRAPH_MAGIC 0x67726170u

static uint64_t next_ordinal;

struct sim_graph *sim_graph_new(void)
{
    struct sim_graph *graph = calloc(1, sizeof(*graph));
    if (graph) {
        graph->magic = GRAPH_MAGIC;
        graph->ordinal = ++next_ordinal;
    }
    return graph;
}

struct sim_graph *sim_graph_of(CUgraph handle)
{
    struct sim_graph *graph = (struct sim_graph *)handle;
    return graph && graph->magic == GRAPH_MAGIC ? graph : NULL;
}

void sim_graph_end(struct sim_graph *graph)
{
    for (unsigned i = 0; i < graph->count; i++) {
        struct sim_node *node = graph->nodes[i];
        if (node->op)
            sim_op_drop(node->op);
        if (node->child)
            sim_graph_end(node->child);
        free(node->before);
        free(node);
    }
    free(graph->nodes);
    graph->magic = 0;
    free(graph);
}

/* The operation (may be NULL) is owned by the graph from here on. */
struct sim_node *sim_graph_add(struct sim_graph *graph, struct sim_op *op, CUgraphNodeType type,
                               const unsigned *before, unsigned before_count)
{
    if (graph->count == graph->capacity) {
        unsigned capacity = graph->capacity ? 2 * graph->capacity : 16;
        struct sim_node **nodes = realloc(graph->nodes, capacity * sizeof(struct sim_node *));
        if (!nodes)
            return NULL;
        graph->nodes = nodes;
        graph->capacity = capacity;
    }
    struct sim_node *node = calloc(1, sizeof(*node));
    if (!node)
        return NULL;
    node->op = op;
    node->type = type;
    node->graph = graph;
    node->index = graph->count;
    if (before_count > 0) {
        node->before = malloc(before_count * sizeof(unsigned));
        memcpy(node->before, before, before_count * sizeof(unsigned));
        node->before_count = before_count;
    }
    graph->nodes[graph->count++] = node;
    return node;
}

struct sim_graph *sim_graph_copy(const struct sim_graph *graph)
{
    struct sim_graph *copy = sim_graph_new();
    for (unsigned i = 0; copy && i < graph->count; i++) {
        const struct sim_node *from = graph->nodes[i];
        struct sim_node *node = sim_graph_add(copy, from->op ? sim_op_clone(from->op) : NULL,
                                              from->type, from->before, from->before_count);
        node->event = from->event;
        node->removed = from->removed;
        node->child = from->child ? sim_graph_copy(from->child) : NULL;
    }
    return copy;
}

bool sim_graph_is_leaf(const struct sim_graph *graph, unsigned index)
{
    for (unsigned i = 0; i < graph->count; i++)
        for (unsigned b = 0; b < graph->nodes[i]->before_count; b++)
            if (graph->nodes[i]->before[b] == index)
                return false;
    return true;
}

static struct sim_op *node_op(struct sim_stream *stream, const struct sim_node *node,
                              struct sim_op **done, struct sim_op *begin);

/* Submits every node; done[i] keeps a reference to what ends node i. */
static void submit_nodes(struct sim_stream *stream, const struct sim_graph *graph,
                         struct sim_op *begin, struct sim_op *end)
{
    struct sim_op **done = calloc(graph->count + 1, sizeof(*done));
    for (unsigned i = 0; i < graph->count; i++) {
        done[i] = node_op(stream, graph->nodes[i], done, begin);
        sim_op_after(end, done[i]);
    }
    for (unsigned i = 0; i < graph->count; i++)
        sim_op_drop(done[i]);
    free(done);
}

/* Submits and keeps one reference for the caller. */
static struct sim_op *submit_kept(struct sim_stream *stream, struct sim_op *op)
{
    sim_op_hold(op);
    sim_op_submit_loose(stream, op);
    sim_op_drop(op); /* the one the call owned */
    return op;
}

static struct sim_op *node_op(struct sim_stream *stream, const struct sim_node *node,
                              struct sim_op **done, struct sim_op *begin)
{
    struct sim_op *op = node->op && !node->removed ? sim_op_clone(node->op)
                                                   : sim_op_new(SIM_OP_EMPTY, SIM_NO_UNIT, 0);
    if (node->before_count == 0)
        sim_op_after(op, begin);
    for (unsigned i = 0; i < node->before_count; i++)
        sim_op_after(op, done[node->before[i]]);
    op = submit_kept(stream, op);
    if (node->child) {
        struct sim_op *end = sim_op_new(SIM_OP_EMPTY, SIM_NO_UNIT, 0);
        submit_nodes(stream, node->child, op, end);
        sim_op_after(end, op);
        sim_op_drop(op);
        op = submit_kept(stream, end);
    }
    if (node->event && node->event->live) {
        if (node->event->op)
            sim_op_drop(node->event->op);
        node->event->op = op;
        node->event->recorded = true;
        sim_op_hold(op);
    }
    return op;
}

/* `after` (may be NULL): the last launch of the same executable graph, which may not overlap. */
void sim_graph_submit(struct sim_stream *stream, const struct sim_graph *graph,
                      struct sim_op *after, struct sim_op **last)
{
    struct sim_op *begin = sim_op_new(SIM_OP_EMPTY, SIM_NO_UNIT, 0), *kept;
    sim_op_after(begin, after);
    sim_op_submit(stream, begin, &kept);
    struct sim_op *end = sim_op_new(SIM_OP_EMPTY, SIM_NO_UNIT, 0);
    submit_nodes(stream, graph, kept, end);
    sim_op_drop(kept);
    sim_op_submit(stream, end, last);
}

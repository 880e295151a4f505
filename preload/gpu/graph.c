/* graph.c: looks into graphs. See graph.h for the rules. */
#include "gpu/graph.h"

#include "cuda/driver_api.h"
#include "gpu/copy_place.h"
#include "gpu/debt.h"

#include <sys/mman.h>

#define EXEC_SLOTS 4096 /* power of two */
#define NODES_MAX  (1u << 20)
#define DEPTH_MAX  8

/* Direct-mapped by handle; a word is the handle and, in its lowest bit, whether it is quiet. */
static uintptr_t execs[EXEC_SLOTS];

static uintptr_t *slot_of(CUgraphExec exec)
{
    return &execs[((uintptr_t)exec * UINT64_C(0x9e3779b97f4a7c15)) >> 52];
}

static void remember(CUgraphExec exec, bool quiet)
{
    uintptr_t handle = (uintptr_t)exec;
    if (handle & 1)
        handle = quiet = false; /* no pointer: it cannot be told apart */
    __atomic_store_n(slot_of(exec), handle | quiet, __ATOMIC_RELEASE);
}

bool gb_graph_is_quiet(CUgraphExec exec)
{
    return exec && __atomic_load_n(slot_of(exec), __ATOMIC_ACQUIRE) == ((uintptr_t)exec | 1);
}

static bool copies_to_device(CUgraphNode node)
{
    CUDA_MEMCPY3D copy;
    if (gb_driver.cuGraphMemcpyNodeGetParams(node, &copy) != CUDA_SUCCESS)
        return false;
    return (copy.dstMemoryType == CU_MEMORYTYPE_DEVICE ||
            copy.dstMemoryType == CU_MEMORYTYPE_UNIFIED) &&
           gb_is_device_memory(copy.dstDevice);
}

static bool fills_device(CUgraphNode node)
{
    CUDA_MEMSET_NODE_PARAMS fill;
    return gb_driver.cuGraphMemsetNodeGetParams(node, &fill) == CUDA_SUCCESS &&
           gb_is_device_memory(fill.dst);
}

static bool is_quiet(CUgraph graph, int depth);

static bool node_is_quiet(CUgraphNode node, int depth)
{
    CUgraphNodeType type;
    CUgraph child;
    if (gb_driver.cuGraphNodeGetType(node, &type) != CUDA_SUCCESS)
        return false;
    switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
    case CU_GRAPH_NODE_TYPE_EMPTY:
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return true;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return copies_to_device(node);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return fills_device(node);
    case CU_GRAPH_NODE_TYPE_GRAPH:
        return gb_driver.cuGraphChildGraphNodeGetGraph(node, &child) == CUDA_SUCCESS &&
               is_quiet(child, depth + 1);
    default:
        return false;
    }
}

/* The nodes lie in memory of our own: a program may be inside its allocator. */
static bool is_quiet(CUgraph graph, int depth)
{
    size_t count = 0;
    if (depth == DEPTH_MAX || gb_driver.cuGraphGetNodes(graph, NULL, &count) != CUDA_SUCCESS ||
        count > NODES_MAX)
        return false;
    if (count == 0)
        return true;
    size_t bytes = count * sizeof(CUgraphNode);
    CUgraphNode *nodes =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (nodes == MAP_FAILED)
        return false;
    bool quiet = gb_driver.cuGraphGetNodes(graph, nodes, &count) == CUDA_SUCCESS;
    for (size_t i = 0; i < count && quiet; i++)
        quiet = node_is_quiet(nodes[i], depth);
    munmap(nodes, bytes);
    return quiet;
}

void gb_graph_made(CUgraphExec exec, CUgraph graph)
{
    if (gb_debt_is_possible())
        remember(exec, gb_driver_ready() && gb_has_graphs() && is_quiet(graph, 0));
}

void gb_graph_changes(CUgraphExec exec)
{
    remember(exec, false);
}

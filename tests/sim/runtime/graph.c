/* graph.c: graphs, one to one onto the driver, as far as torch.cuda.graph goes.
 *
 * Thread rule: none of its own. Failure rule: the driver's error.
 */
#include "runtime.h"

cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned int flags)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaGraphCreate");
    RT_FORWARD(cuGraphCreate, graph, flags);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaGraphInstantiate(%p)", (void *)graph);
    RT_FORWARD(cuGraphInstantiateWithFlags, exec, graph, flags);
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
                                          unsigned long long flags)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaGraphInstantiateWithFlags(%p)", (void *)graph);
    RT_FORWARD(cuGraphInstantiateWithFlags, exec, graph, flags);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaGraphLaunch(%p, %p)", (void *)exec, (void *)stream);
    RT_FORWARD(cuGraphLaunch, exec, stream);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaGraphExecDestroy(%p)", (void *)exec);
    RT_FORWARD(cuGraphExecDestroy, exec);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaGraphDestroy(%p)", (void *)graph);
    RT_FORWARD(cuGraphDestroy, graph);
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaGraphGetNodes(%p)", (void *)graph);
    RT_FORWARD(cuGraphGetNodes, graph, nodes, count);
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                  const cudaGraphNode_t *dependencies, size_t count)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaGraphAddEmptyNode(%p)", (void *)graph);
    RT_FORWARD(cuGraphAddEmptyNode, node, graph, dependencies, count);
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *type)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaGraphNodeGetType(%p)", (void *)node);
    RT_FORWARD(cuGraphNodeGetType, node, (CUgraphNodeType *)type);
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *dependencies,
                                         size_t *count)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaGraphNodeGetDependencies(%p)", (void *)node);
    RT_FORWARD(cuGraphNodeGetDependencies, node, dependencies, NULL, count);
}

cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char *path, unsigned int flags)
{
    RT_ENTER(RT_NEEDS_CONTEXT, "cudaGraphDebugDotPrint(%p)", (void *)graph);
    RT_FORWARD(cuGraphDebugDotPrint, graph, path, flags);
}

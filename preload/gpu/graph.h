/* graph.h: does a launched graph do anything that the host may notice?
 *
 * A graph is looked into when it is instantiated: kernels, fills and copies of device memory,
 * allocations and child graphs of such are quiet; a host function, a copy to host memory, a memory
 * operation or anything that is not known is not, and neither is a graph that was changed
 * afterwards or never seen. Thread rule: any thread. Failure rule: not quiet.
 */
#ifndef GB_GRAPH_H
#define GB_GRAPH_H

#include "cuda/hooks.h"

/* An executable graph was made; one is about to be changed. */
void gb_graph_made(CUgraphExec exec, CUgraph graph);
void gb_graph_changes(CUgraphExec exec);
bool gb_graph_is_quiet(CUgraphExec exec);

#endif

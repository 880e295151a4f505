/* environment.h: the few foreign variables we use, as they were when the process started.
 *
 * Read in the constructor, before the program has threads: getenv later would race with a setenv
 * of the program (getenv(3)). Values are copied and never trusted: too long is the same as unset.
 */
#ifndef GB_ENVIRONMENT_H
#define GB_ENVIRONMENT_H

#include "base/gb.h"

struct gb_environment {
    char home[512];
    char state_home[512]; /* XDG_STATE_HOME */
    char rank[24];        /* RANK, SLURM_PROCID, OMPI_COMM_WORLD_RANK, PMI_RANK; digits, or "" */
    bool launch_blocking; /* CUDA_LAUNCH_BLOCKING is set and not 0; read again at arm time, since
                           * programs set it before they use CUDA */
    char job[64];         /* SLURM_JOB_ID, TORCHELASTIC_RUN_ID, PBS_JOBID, LSB_JOBID, or "" */
};
extern struct gb_environment gb_environment;

void gb_environment_load(void);
void gb_environment_reload(void);

#endif

/* callback.c: the thread that runs host functions, as the real driver has one of its own.
 *
 * A function may block for ever without holding up other streams. It must not call CUDA
 * (CUDA Driver API, cuLaunchHostFunc): entry points answer NOT_PERMITTED there.
 * Thread rule: sim_lock, given up while a function runs. The thread is made at the first function.
 */
#include "engine.h"

#include "../driver/log_args.h"

#include <signal.h>

static struct sim_op *first, *last;
static bool started;

bool sim_thread_create(pthread_t *thread, void *(*run)(void *))
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool made = pthread_create(thread, NULL, run, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return made;
}

static void run_one(struct sim_op *op)
{
    struct sim_host_call call = op->host;
    CUresult status = op->context->sticky;
    sim_log_host_function(call.data);
    sim_unlock();
    if (call.callback)
        call.callback(call.stream, status, call.data);
    else if (status == CUDA_SUCCESS) /* not called after an error in the context */
        call.function(call.data);
    sim_lock();
    if (sim.virtual_clock)
        sim_adversary_host_done(op);
    else
        sim_timeline_host_done(op);
}

static void *callback_loop(void *unused)
{
    (void)unused;
    sim_thread.in_callback = true;
    sim_lock();
    for (;;) {
        while (!first)
            pthread_cond_wait(&sim.callback_wake, &sim.lock);
        struct sim_op *op = first;
        first = op->handed_next;
        if (!first)
            last = NULL;
        run_one(op);
    }
    return NULL;
}

void sim_callback_hand(struct sim_op *op)
{
    pthread_t thread;
    op->handed = true;
    op->handed_next = NULL;
    *(last ? &last->handed_next : &first) = op;
    last = op;
    if (!started) {
        started = sim_thread_create(&thread, callback_loop);
        if (started)
            pthread_detach(thread);
    }
    pthread_cond_signal(&sim.callback_wake);
}

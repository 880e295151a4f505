/* log_args.h: writes a call's arguments for the call log, each by its type.
 *
 * Addresses and handles become ordinals (call_log.c), so that two runs compare equal; what a call
 * is to fill in is *.
 * Thread rule: the calling thread's own buffer. Failure rule: what does not fit is cut.
 */
#ifndef SIM_LOG_ARGS_H
#define SIM_LOG_ARGS_H

#include "../engine/engine.h"

void sim_arg_number(long long value);
void sim_arg_unsigned(unsigned long long value);
void sim_arg_size(size_t value);
void sim_arg_float(float value);
void sim_arg_address(CUdeviceptr value);
void sim_arg_pointer(const void *value);
void sim_arg_stream(CUstream value);
void sim_arg_text(const char *value);
void sim_arg_function(CUfunction value);
void sim_arg_graph(const void *value);
void sim_arg_config(const CUlaunchConfig *value);
void sim_arg_result(void *const *value);
void sim_arg_graph_result(void *const *value);
void sim_arg_other(const char *unused, ...);

/* --- GPUSIM_LOG_ADDRESSES: what stands behind a line's result, for tests/checker --- */

/* The call has succeeded: while on, its arguments give what it filled in. */
void sim_log_results(bool on);
/* The call's work `reads` or `writes` rows of memory that its arguments do not show. */
void sim_log_rows(const char *how, uint64_t address, size_t bytes, size_t rows, size_t pitch);
void sim_log_range(const char *how, uint64_t address, size_t bytes);
void sim_log_copy(const struct sim_copy *box);
/* A host function with this argument starts on this thread. */
void sim_log_host_function(const void *data);
extern bool sim_log_addresses;

#define SIM_ARG(x)                                                                                 \
    _Generic((x),                                                                                  \
        int: sim_arg_number((long long)SIM_AS(x, int)),                                            \
        unsigned: sim_arg_unsigned(SIM_AS(x, unsigned)),                                           \
        unsigned short: sim_arg_unsigned(SIM_AS(x, unsigned short)),                               \
        unsigned char: sim_arg_unsigned(SIM_AS(x, unsigned char)),                                 \
        unsigned long: sim_arg_size(SIM_AS(x, unsigned long)),                                     \
        unsigned long long: sim_arg_address(SIM_AS(x, unsigned long long)),                        \
        float: sim_arg_float(SIM_AS(x, float)),                                                    \
        void *: sim_arg_pointer(SIM_AS(x, void *)),                                                \
        const void *: sim_arg_pointer(SIM_AS(x, const void *)),                                    \
        CUstream: sim_arg_stream(SIM_AS(x, CUstream)),                                             \
        CUgraph: sim_arg_graph(SIM_AS(x, CUgraph)),                                                \
        CUgraphExec: sim_arg_graph(SIM_AS(x, CUgraphExec)),                                        \
        const CUlaunchConfig *: sim_arg_config(SIM_AS(x, const CUlaunchConfig *)),                 \
        CUstream *: sim_arg_result((void **)SIM_AS(x, CUstream *)),                                \
        CUevent *: sim_arg_result((void **)SIM_AS(x, CUevent *)),                                  \
        CUcontext *: sim_arg_result((void **)SIM_AS(x, CUcontext *)),                              \
        CUdeviceptr *: sim_arg_result((void **)SIM_AS(x, CUdeviceptr *)),                          \
        void **: sim_arg_result(SIM_AS(x, void **)),                                               \
        CUgraph *: sim_arg_graph_result((void **)SIM_AS(x, CUgraph *)),                            \
        CUgraphExec *: sim_arg_graph_result((void **)SIM_AS(x, CUgraphExec *)),                    \
        CUevent: sim_arg_pointer(SIM_AS(x, CUevent)),                                              \
        CUcontext: sim_arg_pointer(SIM_AS(x, CUcontext)),                                          \
        CUfunction: sim_arg_function(SIM_AS(x, CUfunction)),                                       \
        const char *: sim_arg_text(SIM_AS(x, const char *)),                                       \
        default: sim_arg_other("", x))

/* The value where it has the type, else some value of the type: branches that _Generic does not
 * take must still compile. */
#define SIM_AS(x, type) _Generic((x), type : (x), default : (type)0)

#define SIM_LOG_ARGS(...) __VA_OPT__(SIM_ARGS_1(__VA_ARGS__))
#define SIM_ARGS_1(x, ...)                                                                         \
    SIM_ARG(x);                                                                                    \
    __VA_OPT__(SIM_ARGS_2(__VA_ARGS__))
#define SIM_ARGS_2(x, ...)                                                                         \
    SIM_ARG(x);                                                                                    \
    __VA_OPT__(SIM_ARGS_3(__VA_ARGS__))
#define SIM_ARGS_3(x, ...)                                                                         \
    SIM_ARG(x);                                                                                    \
    __VA_OPT__(SIM_ARGS_4(__VA_ARGS__))
#define SIM_ARGS_4(x, ...)                                                                         \
    SIM_ARG(x);                                                                                    \
    __VA_OPT__(SIM_ARGS_5(__VA_ARGS__))
#define SIM_ARGS_5(x, ...)                                                                         \
    SIM_ARG(x);                                                                                    \
    __VA_OPT__(SIM_ARGS_6(__VA_ARGS__))
#define SIM_ARGS_6(x, ...)                                                                         \
    SIM_ARG(x);                                                                                    \
    __VA_OPT__(SIM_ARGS_7(__VA_ARGS__))
#define SIM_ARGS_7(x, ...)                                                                         \
    SIM_ARG(x);                                                                                    \
    __VA_OPT__(SIM_ARGS_8(__VA_ARGS__))
#define SIM_ARGS_8(x, ...)                                                                         \
    SIM_ARG(x);                                                                                    \
    __VA_OPT__(SIM_ARGS_9(__VA_ARGS__))
#define SIM_ARGS_9(x, ...)                                                                         \
    SIM_ARG(x);                                                                                    \
    __VA_OPT__(SIM_ARGS_10(__VA_ARGS__))
#define SIM_ARGS_10(x, ...)                                                                        \
    SIM_ARG(x);                                                                                    \
    __VA_OPT__(SIM_ARGS_11(__VA_ARGS__))
#define SIM_ARGS_11(x, ...)                                                                        \
    SIM_ARG(x);                                                                                    \
    __VA_OPT__(SIM_ARG_LAST(__VA_ARGS__))
#define SIM_ARG_LAST(x, ...) SIM_ARG(x);

#endif

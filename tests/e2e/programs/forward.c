/* forward.c: every hooked function, called with arguments that no program would give: the real one
 * must be entered once, with the same arguments, and its answer be the program's. Fake driver. */
#include "check.h"
#include "fake/fake.h"

#include <pthread.h>
#include <stdint.h>

typedef int any_fn(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
                   uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

/* Declared by their own names only; what they are does not matter here. */
#define HOOK_DRIVER(symbol, ...)         extern char hook_##symbol __asm__(#symbol);
#define HOOK_RUNTIME(name, variant, ...) extern char hook_##name##variant __asm__(#name #variant);
#include "cuda/hooks.def"

#define COUNT(...)                                           COUNT_OF(__VA_OPT__(__VA_ARGS__, ) 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define COUNT_OF(a, b, c, d, e, f, g, h, i, j, k, l, n, ...) n

static const struct hooked {
    const char *symbol;
    void *function;
    int arguments;
} hooked[] = {
#define HOOK_DRIVER(symbol, api, since, variant, family, ledger, stream, copy, params, args)       \
    {#symbol, &hook_##symbol, COUNT args},
#define HOOK_RUNTIME(name, variant, family, stream, copy, params, args)                            \
    {#name #variant, &hook_##name##variant, COUNT args},
#include "cuda/hooks.def"
};
#define HOOKED (int)(sizeof hooked / sizeof *hooked)

static void call_with_nothing(void)
{
    for (int i = 0; i < HOOKED; i++) {
        int before = fake_calls_of(hooked[i].symbol);
        CHECK(is_ours(hooked[i].function), "%s", hooked[i].symbol);
        int answer = ((any_fn *)hooked[i].function)(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
        /* What the fake answers to a look-up of nothing. */
        CHECK(answer == 0 || strcmp(hooked[i].symbol, "cuGetProcAddress") == 0, "%s: %d",
              hooked[i].symbol, answer);
        CHECK(fake_calls_of(hooked[i].symbol) == before + 1, "%s", hooked[i].symbol);
    }
}

/* Memory behind every pointer: nobody may write here when the real call fails. */
#define GUARD_BYTES 8192
static unsigned char guard[GUARD_BYTES] __attribute__((aligned(4096)));

static uintptr_t argument(int i)
{
    return (uintptr_t)guard + 0x11 * (i + 1);
}

static bool arguments_arrived(const struct hooked *h)
{
    if (!fake_args.called || strcmp(fake_args.called, h->symbol) != 0)
        return false; /* a function of driver.c or lookup.c */
    if (strcmp(h->symbol, "cuIpcOpenMemHandle_v2") == 0)
        return true;                       /* takes 64 bytes by value, which are not here */
    for (int i = 0; i < h->arguments; i++) /* the narrowest is a byte */
        CHECK((fake_args.slot[i] & 0xff) == (argument(i) & 0xff), "%s, argument %d", h->symbol, i);
    return true;
}

static void check_unwritten(const char *symbol)
{
    for (int i = 0; i < GUARD_BYTES - 1; i++)
        CHECK(guard[i] == 0xa5, "%s wrote byte %d", symbol, i);
}

static bool call_failing(const struct hooked *h, int code)
{
    int before = fake_calls_of(h->symbol);
    fake_args.called = NULL;
    int answer = ((any_fn *)h->function)(argument(0), argument(1), argument(2), argument(3),
                                         argument(4), argument(5), argument(6), argument(7),
                                         argument(8), argument(9), argument(10), argument(11));
    CHECK(answer == code, "%s answered %d, not %d", h->symbol, answer, code);
    CHECK(fake_calls_of(h->symbol) == before + 1, "%s", h->symbol);
    check_unwritten(h->symbol);
    return arguments_arrived(h);
}

/* First everything fails, our own questions too; then that function alone. */
static void call_failing_all(void)
{
    const int codes[] = {1, 2, 201, 700, 719, 999};
    int arrived = 0;
    for (size_t c = 0; c < sizeof codes / sizeof *codes; c++)
        for (int i = 0; i < HOOKED; i++) {
            fake_fail(NULL, codes[c]);
            arrived += call_failing(&hooked[i], codes[c]);
            fake_fail(hooked[i].symbol, codes[c]);
            arrived += call_failing(&hooked[i], codes[c]);
        }
    fake_fail(NULL, 0);
    CHECK(arrived > HOOKED, "%d", arrived);
}

static void start(void)
{
    CUcontext context;
    memset(guard, 0xa5, GUARD_BYTES - 1); /* and a NUL, for names */
    CHECK(cuInit(0) == CUDA_SUCCESS && cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS &&
          cuCtxSetCurrent(context) == CUDA_SUCCESS);
}

static void *on_thread(void *run)
{
    ((void (*)(void))run)();
    return NULL;
}

/* A thread that never chose a device. */
static void without_context(void (*run)(void))
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, on_thread, (void *)run) == 0);
    pthread_join(thread, NULL);
}

static void nothing(void)
{
    start();
    call_with_nothing();
}

static void nothing_without_context(void)
{
    start();
    without_context(call_with_nothing);
}

static void failing(void)
{
    start();
    call_failing_all();
}

static void failing_without_context(void)
{
    start();
    without_context(call_failing_all);
}

/* No call of ours at all. */
static void switched_off(void)
{
    start();
    int before = fake_call_count();
    call_with_nothing();
    CHECK(fake_call_count() == before + HOOKED, "%d", fake_call_count() - before);
}

CHECK_MAIN({"nothing", nothing}, {"nothing_without_context", nothing_without_context},
           {"failing", failing}, {"failing_without_context", failing_without_context},
           {"switched_off", switched_off})

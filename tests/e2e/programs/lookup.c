/* lookup.c: what dlsym and cuGetProcAddress give a program, on the fake driver. One case for each
 * bug of the kind that other interposers had. */
#include "check.h"
#include "fake/fake.h"

#include <pthread.h>

typedef CUresult lookup_fn(const char *, void **, int, cuuint64_t);
typedef CUresult lookup_v2_fn(const char *, void **, int, cuuint64_t,
                              CUdriverProcAddressQueryResult *);
typedef CUresult any_fn(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
                        uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

static const struct hooked {
    const char *symbol, *api;
    int since;
    bool per_thread;
} hooked[] = {
#define HOOK_DRIVER(symbol, api, since, variant, ...) {#symbol, #api, since, sizeof(#variant) > 1},
#define HOOK_RUNTIME(...)
#include "cuda/hooks.def"
};
#define HOOKED (int)(sizeof hooked / sizeof *hooked)

static const int versions[] = {2000,  3020,  7000,  10010, 11000, 11030, 11060, 12000,
                               12030, 12080, 12090, 13000, 13030, 14000, 99000};
#define VERSIONS (int)(sizeof versions / sizeof *versions)

static void *driver;

static void *find(const char *symbol)
{
    if (!driver)
        driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    CHECK(driver, "%s", dlerror());
    return dlsym(driver, symbol);
}

static void null_status(void)
{
    lookup_v2_fn *lookup = (lookup_v2_fn *)find("cuGetProcAddress_v2");
    const char *names[] = {"cuMemAlloc", "cuCtxGetCurrent", "cuNoSuchFunction"};
    CHECK(is_ours((void *)lookup));
    for (int i = 0; i < 3; i++) {
        void *found = NULL;
        CHECK(lookup(names[i], &found, 12000, 0, NULL) == CUDA_SUCCESS);
        CHECK(!found == (i == 2), "%s", names[i]);
        CHECK(is_ours(found) == (i == 0), "%s", names[i]);
    }
    CHECK(lookup("cuMemAlloc", NULL, 12000, 0, NULL) == CUDA_SUCCESS);
    CHECK(lookup(NULL, NULL, 12000, 0, NULL) == CUDA_SUCCESS);
}

/* Also where the caller leaves the choice of the library to dlsym: a program that asks this way
 * whether the driver is new enough must hear the truth. */
static void no_v2(void)
{
    CHECK(find("cuGetProcAddress"));
    CHECK(!find("cuGetProcAddress_v2"));
    CHECK(!dlsym(RTLD_DEFAULT, "cuGetProcAddress_v2") && dlerror());
    lookup_fn *lookup = (lookup_fn *)find("cuGetProcAddress");
    void *found = NULL;
    CHECK(lookup("cuGetProcAddress", &found, 12000, 0) == CUDA_SUCCESS);
    /* Asked for by a caller of CUDA 12, who may go on as if it were version 2. */
    CUdriverProcAddressQueryResult status = (CUdriverProcAddressQueryResult)-1;
    void *again = NULL;
    CHECK(((lookup_v2_fn *)found)("cuMemAlloc", &again, 12000, 0, &status) == CUDA_SUCCESS);
    CHECK(is_ours(again) && (int)status == -1);
    CHECK(fake_calls_of("cuGetProcAddress") == 2 && !fake_calls_of("cuGetProcAddress_v2"));
}

/* What is given for itself must work for the next look-up, and end. */
static void itself(void)
{
    const int asked[] = {11030, 12000, 13000};
    lookup_fn *v1 = (lookup_fn *)find("cuGetProcAddress");
    lookup_v2_fn *v2 = (lookup_v2_fn *)find("cuGetProcAddress_v2");
    for (int i = 0; i < 3; i++) {
        CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
        void *by_v1 = NULL, *by_v2 = NULL, *found = NULL;
        CHECK(v1("cuGetProcAddress", &by_v1, asked[i], 0) == CUDA_SUCCESS);
        CHECK(v2("cuGetProcAddress", &by_v2, asked[i], 0, &status) == CUDA_SUCCESS);
        CHECK(status == CU_GET_PROC_ADDRESS_SUCCESS && by_v1 == by_v2 && is_ours(by_v1));
        CHECK(by_v1 == (asked[i] < 12000 ? (void *)v1 : (void *)v2));
        int before = fake_call_count();
        CHECK(((lookup_v2_fn *)by_v1)("cuMemAlloc", &found, asked[i], 0, &status) == CUDA_SUCCESS);
        CHECK(is_ours(found) && fake_call_count() == before + 1);
    }
}

static void from_inside(void)
{
    const char *names[] = {"cuMemAlloc_v2", "cuGetProcAddress", "cuGetProcAddress_v2",
                           "cuLaunchKernel", "cuCtxSetCurrent"};
    CHECK(is_ours(find("cuMemAlloc_v2")));
    for (int i = 0; i < 5; i++)
        CHECK(fake_self_dlsym(names[i]) == fake_own(names[i]), "%s", names[i]);
    void *found = NULL;
    CHECK(fake_self_lookup("cuMemAlloc", &found) == CUDA_SUCCESS);
    CHECK(found == fake_own("cuMemAlloc_v2"));
}

/* ---- the same answer each time, for every thread ---- */

static void *expected_next, *expected_default;

static void look_up_all(void)
{
    CHECK(dlsym(RTLD_NEXT, "cuMemAlloc_v2") == expected_next);
    CHECK(dlsym(RTLD_DEFAULT, "strlen") == expected_default);
    CHECK(is_ours(dlsym(driver, "cuStreamSynchronize")));
    CHECK(dlsym(driver, "cuCtxGetCurrent") == (void *)cuCtxGetCurrent);
    CHECK(!dlsym(driver, "cuNoSuchFunction"));
}

static void twice(void)
{
    find("cuInit");
    expected_next = dlsym(RTLD_NEXT, "cuMemAlloc_v2");
    expected_default = dlsym(RTLD_DEFAULT, "strlen");
    CHECK(expected_next && expected_default);
    for (int i = 0; i < 100; i++)
        look_up_all();
}

static void *look_up_many(void *arg)
{
    for (int i = 0; i < 8000; i++) /* five look-ups each */
        look_up_all();
    return arg;
}

static void threads(void)
{
    pthread_t thread[8];
    twice();
    for (int i = 0; i < 8; i++)
        CHECK(pthread_create(&thread[i], NULL, look_up_many, NULL) == 0);
    for (int i = 0; i < 8; i++)
        pthread_join(thread[i], NULL);
}

/* ---- versions and flags ---- */

static bool is_hooked(const char *symbol)
{
    for (int i = 0; i < HOOKED; i++)
        if (strcmp(hooked[i].symbol, symbol) == 0)
            return true;
    return false;
}

/* What was given for (api, version, flags) must enter the very function that the driver means, and
 * no other one that is hooked. */
static bool check_answer(const char *api, int version, cuuint64_t flags, void *given)
{
    const char *meant = fake_symbol_of(api, version, flags);
    int entered = 0;
    if (!is_ours(given)) {
        CHECK(!meant || !fake_own(meant) || given == fake_own(meant), "%s %d", api, version);
        return false;
    }
    int before = fake_call_count();
    ((any_fn *)given)(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    for (int i = before; i < fake_call_count(); i++) {
        const char *symbol = fake_call_at(i);
        entered += strcmp(symbol, meant) == 0;
        CHECK(strcmp(symbol, meant) == 0 || !is_hooked(symbol), "%s %d flags %d: %s, not %s", api,
              version, (int)flags, symbol, meant);
    }
    CHECK(entered == 1, "%s %d flags %d: %s entered %d times", api, version, (int)flags, meant,
          entered);
    return true;
}

static int check_hook(const struct hooked *h, lookup_fn *v1, lookup_v2_fn *v2)
{
    int wrapped = 0;
    for (int i = 0; i < VERSIONS; i++)
        for (cuuint64_t flags = 0; flags <= 2; flags++) {
            void *by_v1 = (void *)1, *by_v2 = (void *)1;
            CUdriverProcAddressQueryResult status = (CUdriverProcAddressQueryResult)-1;
            const char *meant = fake_symbol_of(h->api, versions[i], flags);
            CHECK(v1(h->api, &by_v1, versions[i], flags) ==
                  (meant ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND));
            CHECK(v2(h->api, &by_v2, versions[i], flags, &status) == CUDA_SUCCESS);
            CHECK(status ==
                  (meant ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND));
            CHECK(meant ? by_v1 == by_v2 : by_v1 == (void *)1 && !by_v2, "%s %d", h->api,
                  versions[i]);
            if (!meant)
                continue;
            bool ours = check_answer(h->api, versions[i], flags, by_v1);
            bool same = strcmp(meant, h->symbol) == 0;
            wrapped += ours && same;
            CHECK(ours || !same || versions[i] > CUDA_VERSION, "%s %d flags %d is not hooked",
                  meant, versions[i], (int)flags);
        }
    return wrapped;
}

static void variants(void)
{
    lookup_fn *v1 = (lookup_fn *)find("cuGetProcAddress");
    lookup_v2_fn *v2 = (lookup_v2_fn *)find("cuGetProcAddress_v2");
    for (int i = 0; i < HOOKED; i++)
        CHECK(check_hook(&hooked[i], v1, v2) > 0, "%s was never given", hooked[i].symbol);
}

static void newer(void)
{
    lookup_fn *v1 = (lookup_fn *)find("cuGetProcAddress");
    const struct {
        const char *api;
        int version;
    } cases[] = {{"cuCtxSynchronize", 13000},
                 {"cuMemcpyHtoDAsync", 14000},
                 {"cuMemAlloc", 2000},
                 {"cuMemcpyHtoDAsync", 99000}};
    for (int i = 0; i < 4; i++)
        for (cuuint64_t flags = 0; flags <= 2; flags++) {
            void *given = NULL;
            CHECK(v1(cases[i].api, &given, cases[i].version, flags) == CUDA_SUCCESS);
            CHECK(given && !is_ours(given), "%s %d", cases[i].api, cases[i].version);
        }
}

/* ---- switched off ---- */

static void switched_off(void)
{
    lookup_fn *v1 = (lookup_fn *)find("cuGetProcAddress");
    lookup_v2_fn *v2 = (lookup_v2_fn *)find("cuGetProcAddress_v2");
    for (int i = 0; i < HOOKED; i++) {
        cuuint64_t flags = hooked[i].per_thread ? 2 : 0;
        void *by_v1 = NULL, *by_v2 = NULL;
        CHECK(find(hooked[i].symbol) == fake_own(hooked[i].symbol), "%s", hooked[i].symbol);
        CHECK(v1(hooked[i].api, &by_v1, 12080, flags) == CUDA_SUCCESS);
        CHECK(v2(hooked[i].api, &by_v2, 12080, flags, NULL) == CUDA_SUCCESS);
        CHECK(by_v1 == by_v2 && !is_ours(by_v1), "%s", hooked[i].api);
    }
}

CHECK_MAIN({"null_status", null_status}, {"no_v2", no_v2}, {"itself", itself},
           {"from_inside", from_inside}, {"twice", twice}, {"threads", threads},
           {"variants", variants}, {"newer", newer}, {"switched_off", switched_off})

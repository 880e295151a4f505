/* fake.h: what test programs may ask the fake libcuda.so.1, beyond cuda.h.
 *
 * The fake driver does nothing: it notes which of its functions was entered, answers what it was
 * told to, and moves no byte. It is for the tests in which only the calls themselves matter; what
 * copies and streams do is the simulated GPU's. Any thread.
 */
#ifndef FAKE_H
#define FAKE_H

#include <cuda.h>
#include <stdint.h>
#undef cuGetProcAddress

/* Notes the call; what the function should answer. */
int fake_enter(const char *symbol);
/* The arguments of the last hooked call that the thread made, as register and stack slots. */
#define FAKE_ARGS_MAX 12
struct fake_args {
    const char *called;
    uintptr_t slot[FAKE_ARGS_MAX];
};
extern __thread struct fake_args fake_args;
/* Called without a prototype, so that arguments of every type arrive in their slots. */
int fake_note();

/* All calls of the process in order. */
int fake_call_count(void);
const char *fake_call_at(int i);
int fake_calls_of(const char *symbol);
/* From now on the function (NULL: every one) answers with the code. */
void fake_fail(const char *symbol, int code);

/* The driver's own function behind a symbol, whatever the dynamic linker says. */
void *fake_own(const char *symbol);
/* The symbol that cuGetProcAddress means; NULL: none. */
const char *fake_symbol_of(const char *api, int version, cuuint64_t flags);
/* Look-ups that the driver makes of itself. */
void *fake_self_dlsym(const char *symbol);
int fake_self_lookup(const char *api, void **function);

/* Addresses that pass for device memory. Nothing is there. */
#define FAKE_DEVICE_START 0x500000000000ull
#define FAKE_DEVICE_BYTES (1ull << 40)

#endif

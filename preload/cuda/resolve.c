/* resolve.c: the real functions behind the hooks, and the dlsym that programs call.
 *
 * A function bound by the dynamic linker is looked up in load order behind this library, so that
 * another interposer there keeps its say; one that a program looked up itself is the one it was
 * given. Our dlsym tail-jumps to the real one for everything but an exact hooked name, so that the
 * real one still sees its caller (RTLD_NEXT and RTLD_DEFAULT are relative to it).
 * Thread rule: any thread, no lock of ours. Failure rule: no substitution.
 */
#include "cuda/resolve.h"

#include "base/elf.h"
#include "cuda/hooks.h"
#include "hooks/lifecycle.h"
#include "record/counters.h"
#include "stall/site.h"

#include <dlfcn.h>
#include <string.h>

static const char *object_of(unsigned hook)
{
    return gb_hook_is_driver(hook) ? "libcuda.so" : "libcudart";
}

bool gb_resolve_to(unsigned hook, void *real)
{
    void *expected = gb_lazy[hook];
    if (__atomic_compare_exchange_n(&gb_real.slot[hook], &expected, real, false, __ATOMIC_RELEASE,
                                    __ATOMIC_ACQUIRE))
        return true;
    return expected == real;
}

/* The library's own object may be opened with RTLD_LOCAL: gb_elf_find sees those as well. */
void gb_resolve(unsigned hook)
{
    void *real = gb_elf_find(NULL, gb_hook_name(hook));
    gb_resolve_to(hook, real ? real : gb_absent(hook));
}

void *gb_resolve_export(unsigned hook)
{
    return gb_elf_find(object_of(hook), gb_hook_name(hook));
}

bool gb_is_in(const void *address, const char *object)
{
    struct gb_elf_module module;
    return gb_elf_module_of(address, &module) && strncmp(module.name, object, strlen(object)) == 0;
}

void *gb_substitute(unsigned hook, void *real)
{
    if (real == gb_hook_wrapper(hook))
        return real;
    if (!gb_is_in(real, object_of(hook)) || !gb_resolve_to(hook, real)) {
        GB_COUNT(gb_counters.lookup_foreign, 1);
        return real;
    }
    return gb_hook_wrapper(hook);
}

/* ---- dlsym ---- */

typedef void *dlsym_fn(void *handle, const char *name);

static void *no_dlsym(void *handle, const char *name)
{
    (void)handle, (void)name;
    return NULL;
}

/* Two registers: what dlsym answers in the real one's place, if `is_final`; else the real one is
 * called in this frame's place. */
struct answer {
    void *address;
    uintptr_t is_final;
};

/* For the assembly below, which jumps to the one and calls the other. */
extern dlsym_fn *gb_dlsym_real;
extern struct answer gb_dlsym_hook(void *handle, const char *name, const void *caller);
__attribute__((used)) dlsym_fn *gb_dlsym_real;

static const struct answer ask_real = {NULL, false};

__attribute__((used)) struct answer gb_dlsym_hook(void *handle, const char *name,
                                                  const void *caller)
{
    dlsym_fn *real = __atomic_load_n(&gb_dlsym_real, __ATOMIC_ACQUIRE);
    if (GB_UNLIKELY(!real)) {
        real = (dlsym_fn *)gb_elf_find(NULL, "dlsym");
        if (!real)
            real = no_dlsym;
        __atomic_store_n(&gb_dlsym_real, real, __ATOMIC_RELEASE);
    }
    if (!name)
        return ask_real;
    unsigned hook = gb_hook_of_symbol(name);
    if (GB_LIKELY(hook == GB_HOOK_COUNT))
        return ask_real;
    /* RTLD_DEFAULT and RTLD_NEXT depend on the caller; both would find our export where the program
     * asks whether such a library is there at all. From here RTLD_NEXT finds nothing either, and
     * leaves the message for dlerror. */
    if (handle == RTLD_DEFAULT || handle == RTLD_NEXT)
        return gb_elf_find(NULL, name) ? ask_real : (struct answer){real(RTLD_NEXT, name), true};
    /* The driver's own look-ups of itself must find itself (HAMi-core PR #326: recursion). */
    if (gb_lifecycle_off() || gb_is_in(caller, "libcuda.so"))
        return ask_real;
    void *found = real(handle, name);
    void *answer = found ? gb_substitute(hook, found) : NULL;
    return answer == found ? ask_real : (struct answer){answer, true};
}

/* Saves the arguments, asks the hook with the caller's address, and either returns its answer or
 * jumps to the real dlsym with stack and return address as they were. */
#if defined(__x86_64__)
__asm__(".text\n"
        ".globl dlsym\n"
        ".type dlsym, @function\n"
        "dlsym:\n"
        "  .cfi_startproc\n"
        "  endbr64\n"
        "  pushq %rdi\n  .cfi_adjust_cfa_offset 8\n"
        "  pushq %rsi\n  .cfi_adjust_cfa_offset 8\n"
        "  subq $8, %rsp\n  .cfi_adjust_cfa_offset 8\n"
        "  movq 24(%rsp), %rdx\n"
        "  call gb_dlsym_hook\n"
        "  addq $8, %rsp\n  .cfi_adjust_cfa_offset -8\n"
        "  popq %rsi\n  .cfi_adjust_cfa_offset -8\n"
        "  popq %rdi\n  .cfi_adjust_cfa_offset -8\n"
        "  testq %rdx, %rdx\n"
        "  jne 1f\n"
        "  jmpq *gb_dlsym_real(%rip)\n"
        "1: ret\n"
        "  .cfi_endproc\n"
        ".size dlsym, .-dlsym\n");
#elif defined(__aarch64__)
__asm__(".text\n"
        ".globl dlsym\n"
        ".type dlsym, %function\n"
        "dlsym:\n"
        "  .cfi_startproc\n"
        "  hint #34\n" /* bti c */
        "  stp x29, x30, [sp, #-32]!\n  .cfi_adjust_cfa_offset 32\n"
        "  .cfi_rel_offset x29, 0\n  .cfi_rel_offset x30, 8\n"
        "  stp x0, x1, [sp, #16]\n"
        "  mov x2, x30\n"
        "  bl gb_dlsym_hook\n"
        "  mov x9, x0\n"
        "  mov x10, x1\n"
        "  ldp x0, x1, [sp, #16]\n"
        "  ldp x29, x30, [sp], #32\n  .cfi_adjust_cfa_offset -32\n"
        "  .cfi_restore x29\n  .cfi_restore x30\n"
        "  cbz x10, 1f\n"
        "  mov x0, x9\n"
        "  ret\n"
        "1: adrp x16, gb_dlsym_real\n"
        "  ldr x16, [x16, :lo12:gb_dlsym_real]\n"
        "  br x16\n"
        "  .cfi_endproc\n"
        ".size dlsym, .-dlsym\n");
#else
#error "dlsym is written for x86-64 and aarch64"
#endif

# gpuboost: build, test and show. `make help` lists the targets.
#
# Needs gcc or clang and the CUDA headers; no CUDA library. `make deps` brings everything on Debian.

O      ?= build
V      ?= 0
CC     ?= gcc
Q      := $(if $(filter 1,$(V)),,@)
say     = $(if $(filter 1,$(V)),,@printf '  %-6s %s\n' $(1) $(2);)

# The interpreter that has torch: GPUBOOST_PYTHON, else the project's own environment.
GPUBOOST_PYTHON ?= $(CURDIR)/.venv/bin/python
PYTHON          := $(GPUBOOST_PYTHON)

# CUDA headers: CUDA_INCLUDE, else the nvidia wheels of that interpreter's environment.
WHEELS       := $(firstword $(wildcard $(dir $(PYTHON))../lib/python3*/site-packages/nvidia))
CUDA_INCLUDE ?= $(WHEELS)/cuda_runtime/include
CUDA_FLAGS   := -isystem $(CUDA_INCLUDE) -isystem $(WHEELS)/cublas/include -isystem $(WHEELS)/cudnn/include

OPT    := $(if $(DEBUG),-O0 -g3,-O2 -g)
SAN    := $(if $(ASAN),-fsanitize=address) $(if $(UBSAN),-fsanitize=undefined) $(if $(TSAN),-fsanitize=thread)
WARN   := -Wall -Wextra -Werror -Wstrict-prototypes -Wmissing-prototypes -Wshadow=local
ifneq ($(shell $(CC) --version | grep -c clang),0)
WARN   := $(filter-out -Wshadow=local,$(WARN))
endif
CFLAGS := -std=gnu11 $(OPT) $(WARN) $(SAN) -D_GNU_SOURCE -MMD -MP

# The library: position-independent, hidden by default, no runtime of its own. dlsym must keep its
# caller (hooks.md: RTLD_NEXT), hence sibling calls even at -O0 where the hook is assembly.
LIB_CFLAGS  := $(CFLAGS) -fPIC -fvisibility=hidden -fno-plt -fno-semantic-interposition \
               -ftls-model=initial-exec -fstack-protector-strong -U_FORTIFY_SOURCE \
               -fno-builtin-dlsym $(CUDA_FLAGS)
LIB_LDFLAGS := -shared -Wl,-soname,libgpuboost.so -Wl,-z,relro,-z,now,-z,noexecstack,-z,defs \
               -Wl,--version-script=$(O)/export.map -static-libgcc -Wl,--as-needed
LIB_SRC     := $(wildcard preload/*.c policies/*.c)
LIB_OBJ     := $(LIB_SRC:%.c=$(O)/obj/%.o)

SIM_CFLAGS  := $(CFLAGS) -fPIC -fvisibility=hidden -Wno-deprecated-declarations $(CUDA_FLAGS)
SIM_LIBS    := $(O)/sim/libcuda.so.1 $(O)/sim/libcudart.so.12 $(O)/sim/libcublas.so.12 \
               $(O)/sim/libcublasLt.so.12 $(O)/sim/libcudnn.so.9
UNIT_TESTS  := $(patsubst tests/unit/%.c,$(O)/unit/%,$(wildcard tests/unit/test_*.c))

.PHONY: all lib sim unit deps test demo bench lint format docs clean help
all: $(O)/libgpuboost.so            ## build build/libgpuboost.so
sim: $(SIM_LIBS)                    ## build the simulated GPU (tests only, never installed)
unit: $(UNIT_TESTS)

# --- dependencies: a stamp per tool set, so that a second run needs no network ---
deps:                               ## install what is missing (Debian packages, .venv with torch)
	$(Q)scripts/deps.sh "$(PYTHON)"
$(CUDA_INCLUDE)/cuda.h:
	$(Q)$(MAKE) --no-print-directory deps

# --- the library ---
$(O)/export.map: preload/hooks.def scripts/gen_exports.sh
	$(call say,GEN,$@) mkdir -p $(O) && scripts/gen_exports.sh preload/hooks.def > $@
$(O)/libgpuboost.so: $(LIB_OBJ) $(O)/export.map
	$(call say,LINK,$@) $(CC) $(SAN) $(LIB_LDFLAGS) -o $@ $(LIB_OBJ)
$(O)/obj/preload/%.o $(O)/obj/policies/%.o: | $(CUDA_INCLUDE)/cuda.h
$(O)/obj/preload/%.o: preload/%.c
	$(call say,CC,$<) mkdir -p $(@D) && $(CC) $(LIB_CFLAGS) -Ipreload -Ipolicies -c -o $@ $<
$(O)/obj/policies/%.o: policies/%.c
	$(call say,CC,$<) mkdir -p $(@D) && $(CC) $(LIB_CFLAGS) -Ipreload -Ipolicies -c -o $@ $<
$(O)/libgb.a: $(LIB_OBJ)
	$(call say,AR,$@) rm -f $@ && ar rcs $@ $^

# --- the simulated GPU ---
$(O)/obj/tests/sim/%.o: tests/sim/%.c | $(CUDA_INCLUDE)/cuda.h
	$(call say,CC,$<) mkdir -p $(@D) && $(CC) $(SIM_CFLAGS) -Itests/sim -c -o $@ $<
sim_objects = $(patsubst %.c,$(O)/obj/%.o,$(wildcard $(1)))
$(O)/sim/libcuda.so.1: $(call sim_objects,tests/sim/engine/*.c tests/sim/driver/*.c)
$(O)/sim/libcudart.so.12: $(call sim_objects,tests/sim/runtime/*.c)
$(O)/sim/libcublas.so.12: $(call sim_objects,tests/sim/libs/cublas.c tests/sim/libs/common/*.c)
$(O)/sim/libcublasLt.so.12: $(call sim_objects,tests/sim/libs/cublaslt.c tests/sim/libs/common/*.c)
$(O)/sim/libcudnn.so.9: $(call sim_objects,tests/sim/libs/cudnn.c tests/sim/libs/common/*.c)
$(SIM_LIBS):
	$(call say,LINK,$@) mkdir -p $(@D) && $(CC) $(SAN) -shared -Wl,-soname,$(@F) -Wl,-z,defs \
	  $(addprefix -Wl$(comma)--version-script=,$(wildcard tests/sim/$(@F).map)) -o $@ $^ -lpthread -ldl -lm
comma := ,

# --- unit tests: pure modules against an archive of the library's objects ---
$(O)/unit/%: tests/unit/%.c $(O)/libgb.a
	$(call say,CC,$<) mkdir -p $(@D) && $(CC) $(CFLAGS) $(CUDA_FLAGS) -Ipreload -Ipolicies -o $@ $< $(O)/libgb.a -lcmocka

# --- what a person runs ---
test: ; $(Q)scripts/test.sh "$(PYTHON)" $(TESTS)   ## everything: unit, simulator, end to end (no GPU needed)
demo: ; $(Q)scripts/demo.sh "$(PYTHON)"            ## the main job on a real train.py: plain, gpuboost, tuned
bench: ; $(Q)scripts/bench.sh "$(PYTHON)"          ## what a hook and a stack cost, with and without
lint: ; $(Q)scripts/lint.sh "$(PYTHON)"            ## gcc and clang with -Werror, clang-format, cppcheck, generated docs
docs: ; $(Q)$(PYTHON) scripts/gen_docs.py          ## write the generated tables of README.md
format: ; $(Q)clang-format -i $$(git ls-files '*.c' '*.h')
clean: ; $(Q)rm -rf $(O)                           ## remove build/
help:                               ## this list
	@sed -n 's/^\([a-z]*\):.*##/\1:/p' Makefile | awk -F: '{printf "  make %-8s %s\n", $$1, $$2}'

-include $(shell find $(O)/obj $(O)/unit -name '*.d' 2>/dev/null)

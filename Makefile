# gpuboost: build, test and show. `make help` lists the targets.
#
# Needs gcc or clang and the CUDA headers; no CUDA library. What is missing is installed first, as by
# `make deps`: build/deps.mk is that step's stamp, and says where the headers are.
# Switches: V=1 DEBUG=1 ASAN=1 UBSAN=1 TSAN=1 CC=clang O=directory TESTS="what to test".

O      ?= build
V      ?= 0
ifeq ($(origin CC),default)
CC     := gcc
endif
Q      := $(if $(filter 1,$(V)),,@)
say     = $(if $(filter 1,$(V)),,@printf '  %-6s %s\n' $(1) $(2);)
comma  := ,

# The interpreter that has torch: GPUBOOST_PYTHON, else the project's own environment.
GPUBOOST_PYTHON ?= $(CURDIR)/.venv/bin/python
PYTHON          := $(GPUBOOST_PYTHON)

# --- dependencies: looked at again only for another interpreter or another list ---
DEPS := build/deps.mk
ifneq ($(filter-out help deps format clean,$(or $(MAKECMDGOALS),all)),)
include $(DEPS)
endif
$(DEPS): scripts/deps.sh scripts/requirements.txt $(if $(filter $(PYTHON),$(DEPS_PYTHON)),,FORCE)
	$(Q)scripts/deps.sh "$(PYTHON)" || grep -qsxF 'DEPS_PYTHON := $(PYTHON)' $@
FORCE:

# deps.mk sets WHEELS: where the nvidia wheels of that interpreter lie. CUDA_INCLUDE replaces them.
CUDA_INCLUDE ?= $(WHEELS)/cuda_runtime/include
CUDA_FLAGS   := -isystem $(CUDA_INCLUDE) -isystem $(WHEELS)/cublas/include -isystem $(WHEELS)/cudnn/include
# The runtime's wheel leaves out crt/, which its headers include; triton, a part of torch, brings it.
CUDA_FLAGS   += $(addprefix -isystem ,$(wildcard $(WHEELS)/../triton/backends/nvidia/include))

OPT    := $(if $(DEBUG),-O0 -g3,-O2 -g)
SAN    := $(if $(ASAN),-fsanitize=address) $(if $(UBSAN),-fsanitize=undefined) $(if $(TSAN),-fsanitize=thread)
WARN   := -Wall -Wextra -Werror -Wstrict-prototypes -Wmissing-prototypes
WARN   += $(if $(findstring clang,$(CC)),,-Wshadow=local)
CFLAGS := -std=gnu11 $(OPT) $(WARN) $(SAN) -D_GNU_SOURCE -MMD -MP

# The library: position-independent, hidden by default, no runtime of its own. An include names its
# room: "gpu/inflight.h", "policies/owe.h".
INCLUDES    := -iquote preload -iquote .
LIB_CFLAGS  := $(CFLAGS) -fPIC -fvisibility=hidden -fno-plt -fno-semantic-interposition \
               -ftls-model=initial-exec -fstack-protector-strong -U_FORTIFY_SOURCE \
               -fno-builtin-dlsym $(CUDA_FLAGS) $(INCLUDES)
LIB_LDFLAGS := -shared -Wl,-soname,libgpuboost.so -Wl,-z,relro,-z,now,-z,noexecstack,-z,defs \
               -Wl,--version-script=$(O)/export.map -static-libgcc -Wl,--as-needed
LIB_OBJ     := $(patsubst %.c,$(O)/obj/%.o,$(wildcard preload/*/*.c policies/*.c))

SIM_CFLAGS  := $(CFLAGS) -fPIC -fvisibility=hidden -Wno-deprecated-declarations $(CUDA_FLAGS) -iquote tests/sim \
               -idirafter tests/sim/include
SIM_LIBS    := $(addprefix $(O)/sim/,libcuda.so.1 libcudart.so.12 libcublas.so.12 libcublasLt.so.12 libcudnn.so.9)
UNIT_CFLAGS := $(CFLAGS) $(CUDA_FLAGS) $(INCLUDES) -iquote tests/unit
UNIT_TESTS  := $(patsubst tests/unit/%.c,$(O)/unit/%,$(wildcard tests/unit/*/test_*.c))

.DEFAULT_GOAL := all
.PHONY: flags all sim unit deps test demo bench mutants lint docs format clean help FORCE
all: $(O)/libgpuboost.so ; @:       ## build build/libgpuboost.so
sim: $(SIM_LIBS) ; @:               ## build the simulated GPU (tests and demo; never installed)
unit: $(UNIT_TESTS) ; @:            ## build the unit tests

# --- the library ---
$(O)/export.map: preload/cuda/hooks.def scripts/gen_exports.sh
	$(call say,GEN,$@) mkdir -p $(@D) && scripts/gen_exports.sh preload/cuda/hooks.def > $@
$(O)/libgpuboost.so: $(LIB_OBJ) $(O)/export.map
	$(call say,LINK,$@) $(CC) $(SAN) $(LIB_LDFLAGS) -o $@.new $(LIB_OBJ) && mv -f $@.new $@
$(LIB_OBJ): $(O)/obj/%.o: %.c
	$(call say,CC,$<) mkdir -p $(@D) && $(CC) $(LIB_CFLAGS) -c -o $@ $<

# --- the simulated GPU: each library from its folder, as its version script exports it ---
sim_objects = $(patsubst %.c,$(O)/obj/%.o,$(wildcard $(addprefix tests/sim/,$(1))))
$(O)/sim/libcuda.so.1: $(call sim_objects,engine/*.c driver/*.c)
$(O)/sim/libcudart.so.12: $(call sim_objects,runtime/*.c)
$(O)/sim/libcublas.so.12: $(call sim_objects,libs/cublas.c libs/common/*.c)
$(O)/sim/libcublasLt.so.12: $(call sim_objects,libs/cublaslt.c libs/common/*.c)
$(O)/sim/libcudnn.so.9: $(call sim_objects,libs/cudnn.c libs/common/*.c)
$(SIM_LIBS):
	$(call say,LINK,$@) mkdir -p $(@D) && $(CC) $(SAN) -shared -Wl,-soname,$(@F) -Wl,-z,defs \
	  $(addprefix -Wl$(comma)--version-script=,$(wildcard tests/sim/$(@F).map)) -o $@ $^ -lpthread -ldl -lm
$(O)/obj/tests/sim/%.o: tests/sim/%.c
	$(call say,CC,$<) mkdir -p $(@D) && $(CC) $(SIM_CFLAGS) -c -o $@ $<

# --- unit tests: pure modules against an archive of the library's objects ---
$(O)/libgb.a: $(LIB_OBJ)
	$(call say,AR,$@) rm -f $@ && ar rcs $@ $^
$(O)/unit/%: tests/unit/%.c $(O)/libgb.a
	$(call say,CC,$<) mkdir -p $(@D) && $(CC) $(UNIT_CFLAGS) -Wl,--exclude-libs,ALL -o $@ $< $(O)/libgb.a -lcmocka

# --- the oracle: random CUDA programs for the simulated GPU ---
$(O)/oracle/oracle: $(patsubst %.c,$(O)/obj/%.o,$(wildcard tests/oracle/*.c)) $(O)/sim/libcudart.so.12 $(O)/sim/libcuda.so.1
	$(call say,LINK,$@) mkdir -p $(@D) && $(CC) $(SAN) -o $@ $^ -lpthread
$(O)/obj/tests/oracle/%.o: tests/oracle/%.c
	$(call say,CC,$<) mkdir -p $(@D) && $(CC) $(SIM_CFLAGS) -c -o $@ $<

# --- what a person runs ---
deps:                               ## install what is missing (Debian packages, .venv with torch)
	$(Q)scripts/deps.sh "$(PYTHON)"; status=$$?; [ $$status != 0 ] || echo "  DEPS   complete"; exit $$status
test: ; $(Q)scripts/test.sh "$(PYTHON)" $(TESTS)   ## everything: unit, simulator, end to end (no GPU needed)
demo: ; $(Q)scripts/demo.sh "$(PYTHON)"            ## the main job on a real train.py: plain, gpuboost, tuned
bench: ; $(Q)scripts/bench.sh "$(PYTHON)"          ## what a hook and a stack cost, with and without
mutants: ; $(Q)"$(PYTHON)" tests/mutants/run.py      ## put known faults into the library: does a test notice each?
lint: ; $(Q)scripts/lint.sh "$(PYTHON)"            ## gcc and clang with -Werror, formatting, file lengths, docs
docs: ; $(Q)"$(PYTHON)" scripts/gen_docs.py        ## write the generated table of README.md
format: ; $(Q)clang-format -i $$(git ls-files '*.c' '*.h')   ## clang-format every C file
clean: ; $(Q)rm -rf "$(O)"                         ## remove build/
flags:                              ## print the compiler flags that find CUDA's headers
	@echo $(CUDA_FLAGS)
help:                               ## this list
	@sed -n 's/^\([a-z]*\):.*## */\1 /p' Makefile | while read -r t text; do printf '  make %-8s %s\n' $$t "$$text"; done

-include $(shell find $(O)/obj $(O)/unit -name '*.d' 2>/dev/null)

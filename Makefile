# reftest: `make` builds, `make verify` and `make test` set the machine up first. `make help` lists the targets.
BUILD ?= build
CC ?= cc
CFLAGS ?= -O2 -g
NVCC ?= $(shell command -v nvcc 2>/dev/null)
override CPPFLAGS += -I. -D_GNU_SOURCE
override CFLAGS += -std=c11 -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Werror -fPIC -fopenmp -MMD -MP
LIBS := -lcjson -llmdb -lxxhash -ldl -lm

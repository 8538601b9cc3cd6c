#!/bin/sh
# Every source that is linked into the judge (the process that compares outputs) or into the kernels libraries is part
# of a digest that verdicts depend on. An edit of one of these sources therefore makes reftest verify again. The
# exceptions are listed below, each with the reason why no verdict depends on it.
. "$(dirname "$0")/../harness.sh"

cat >"$work/exceptions" <<'E'
base/arena.*                            memory
base/buf.*                              memory
base/err.*                              messages
base/file.*                             reads bytes, which are compared with the digest of the file
base/hash.*                             digests: another digest never equals a stored one
base/hex.*                              reads digests, of which another one never equals a stored one
base/json*                              parses texts, of which the parsed values are fields of the fingerprint
base/sealed_library.*                   loads the libraries
base/sha256.*                           digests: another digest never equals a stored one
base/shell_word.*                       messages
base/show.*                             prints
base/unsafe_character.*                 messages; names that it refuses are invalid and never reach the judge
base/utf8.*                             messages
dataset/definition*                     parses texts, of which the parsed values are fields of the fingerprint
dataset/workload.*                      parses texts, of which the parsed values are fields of the fingerprint
dataset/verdict*                        writes and reads verdicts
kernels/core/cuda_check.h               messages
kernels/core/described_default.*        parses texts, of which the parsed values are fields of the fingerprint
kernels/core/described_effects.*        parses texts, of which the parsed values are fields of the fingerprint
kernels/core/mistakes.*                says why a case failed, never whether
kernels/core/diagnosis.*                says why a case failed, never whether
kernels/core/ground_truth_api.*         for generated tests only
kernels/core/kernels_library*           finds and loads the libraries
kernels/core/coverage.*                 says what a dataset has, never whether a reference is right
kernels/core/miss_map.*                 draws where the outputs of a failed case differ
kernels/core/miss_pattern.*             says where the outputs of a failed case differ
kernels/core/published_models.*         constants, which are fields of the fingerprint
base/trace.*                            messages
workers/judge/judge_seconds.*             measures how long the parts of the judge take
workers/judge/message_text.*            messages
workers/protocol/channel.*              sends messages
E

# Prints the object files that the linker links into the judge. An object is linked if another linked object uses one of
# its symbols.
objects_of_judge() {
	cat >"$work/judge.c" <<'C'
void judge_program(void);
int main(void) { judge_program(); }
C
	# A thin archive stores the paths of its members, and not only their names. Therefore --trace prints paths.
	find "$build/obj" -name '*.o' ! -path "$build/obj/tests/*" ! -path "$build/obj/bench/*" ! -path "$build/obj/reftest.o" \
		! -path "$build/obj/remote/*" | xargs ar rcsT "$work/all.a"
	sanitize=
	case $build in *-asan*) sanitize=-fsanitize=address,undefined ;; esac
	# shellcheck disable=SC2086,SC2046 # words
	${CC:-cc} $sanitize -Wl,--trace -o "$work/judge" "$work/judge.c" "$work/all.a" -fopenmp -ldl -lm -pthread -lzstd \
		$(pkg-config --libs libcjson libxxhash lmdb 2>/dev/null || echo -lcjson -lxxhash -llmdb) >"$work/trace" 2>"$work/err" ||
		fail "the judge alone cannot be linked"
	grep -o "$build/obj/[^() ]*\.o" "$work/trace" | sort -u
}

# Prints the sources of the judge's objects, the headers that these include, and all sources of the kernels libraries.
sources_that_decide() {
	objects_of_judge >"$work/objects"
	{
		while read -r object; do cat "${object%.o}.d"; done <"$work/objects" | tr ' \\' '\n\n' | grep -v ':$'
		cd "$top"
		ls kernels/*/*.* kernels/common/*/*.*
	} | grep -E '^[a-z].*\.(c|h|cu|cuh|json)$' | grep -v "^$(basename "$build")/" | sort -u
}

# `excepted FILE`: succeeds if FILE matches a pattern in the list of exceptions.
excepted() {
	while read -r pattern _; do
		# shellcheck disable=SC2254 # a pattern
		case $1 in $pattern) return 0 ;; esac
	done <"$work/exceptions"
	return 1
}

# `unaccounted LIST`: prints each source on which verdicts depend, except the sources in LIST and the exceptions.
unaccounted() {
	comm -23 "$work/deciding" "$1" | while read -r file; do excepted "$file" || echo "$file"; done
}

sources_that_decide >"$work/deciding"
covered=$build/obj/verdict_files
step='the sources of the judge and of the kernels libraries'
for file in workers/judge/trial.c workers/judge/judge.c dataset/safetensors.c dataset/constraint.c base/dtype.c \
	base/metrics.h kernels/core/op.h kernels/core/compare_tensors.cu kernels/gemm/gemm.c kernels/common/norm/rms.c; do
	expectations=$((expectations + 1))
	grep -qx "$file" "$work/deciding" || fail "$file is not found among them"
done
expectations=$((expectations + 1))
unaccounted "$covered" >"$work/out"
[ ! -s "$work/out" ] || fail "these are in no digest of tools/generate.sh, and are no exception of this test"

# Tests the check itself: it must report each of these files if the file is missing from the list of covered files.
for file in workers/judge/trial_compare.c dataset/constraint_values.c kernels/core/ops.c kernels/core/default_tolerance.h; do
	grep -vx "$file" "$covered" >"$work/lacking"
	expectations=$((expectations + 1))
	[ "$(unaccounted "$work/lacking")" = "$file" ] || fail "nothing is reported if no digest covers $file"
done

# Each exception is needed: it matches at least one linked file that no digest covers.
comm -23 "$work/deciding" "$covered" >"$work/left_out"
while read -r pattern _; do
	expectations=$((expectations + 1))
	used=
	while read -r file; do
		# shellcheck disable=SC2254 # a pattern
		case $file in $pattern) used=1 ;; esac
	done <"$work/left_out"
	[ -n "$used" ] || fail "the exception $pattern is not needed"
done <"$work/exceptions"

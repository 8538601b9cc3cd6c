#!/bin/sh
# generate - generates files in the folder BUILD from the names and contents of source files. A file is written only if
# its content changes. If a new source file affects every verdict, add it to one of the lists below. The written files
# are:
#
#   ops.inc            OP(family, "truth digest", "inputs digest") for each kernels/{family}/{family}.c, in name order
#   scripts.inc        SCRIPT("path below python/", "digest") for the Python files that run references and libraries;
#                      each digest is the complete SHA-256 of the file
#   packages.inc       the text of python/packages.py as a C string
#   libraries.inc      LIBRARY(name) for each python/libraries/{name}.py, in name order
#   templates.inc      TEMPLATE(family, name) for each kernels/{family}/templates/{name}.json, in name order
#   summary_digest.h   SUMMARY_DIGEST over the sources that decide which stored verdicts count (for_summaries)
#   shipped_digest.h   SHIPPED_DIGEST over testgen/, python/libraries/, python/arguments.py and the parts of conftest.py
#   kernels_digest.h   KERNELS_DIGEST over all of kernels/ and models/, CHECKER_DIGEST over the code that judges the
#                      outputs of all families (for_checker)
#   obj/verdict_files  the files that the digests of ops.inc and CHECKER_DIGEST cover
#   obj/sources        the object files of the program and its libraries
#   obj/settings       the C compiler and its flags
#   obj/settings_cuda  the CUDA compiler and its flags; in a separate file, so that C files are not recompiled if only
#                      these settings change
#
# The digests of ops.inc and CHECKER_DIGEST are fields of the fingerprint of a verdict. If a file that one of these
# digests covers is edited, stored verdicts are no longer used, and reftest verifies again. Each digest of ops.inc
# covers exactly the files that its comment in kernels/core/op.h lists. For a digest of several files, sha256sum prints
# the SHA-256 and the name of each file; the digest is the first 32 hex digits of the SHA-256 of this output.
set -eu
export LC_ALL=C
build=$1 sources=$2 settings=$3 settings_cuda=${4:-}
mkdir -p "$build/obj"

# Code that all op families use to compute ground truths (for_truth) and to generate inputs (for_inputs).
for_truth='kernels/core/op.h kernels/core/ops.c kernels/core/family_candidates.* kernels/core/dtype_convert.*
	kernels/core/random_inputs.h kernels/core/simd.h'
for_inputs='kernels/core/op.h kernels/core/ops.c kernels/core/dtype_convert.* kernels/core/input_key.*
	kernels/core/random_inputs.*'
# The code that judges the outputs of all op families, and the code that sets up the process in which a reference runs.
for_checker='kernels/core/compare* kernels/core/device* kernels/core/roles.* kernels/core/simd.h base/metrics.h
	base/dtype.* dataset/lfs_pointer.* dataset/safetensors.* dataset/constraint* dataset/truth_chain.* workers/judge/* workers/protocol/*
	workers/pool/reference_environment.* workers/sandbox/* python/runner.py python/gradients.py
	python/arena.py python/arguments.py python/exercises.py python/failures.py python/isolation.py python/latency.py
	python/library_attributes.py python/packages.py python/process_state.py python/programs.py python/sandbox.py
	python/tensors.py python/zygote.py'
# The patterns in for_checker also match these files, but CHECKER_DIGEST does not cover them, because an edit of these
# files cannot change a verdict: they only measure time, or only write or send messages.
not_for_checker='workers/judge/message_text.* workers/judge/judge_seconds.* workers/protocol/channel.* workers/sandbox/containment.*
	workers/sandbox/sandbox_gaps.c'
# Units of kernels/core/ (see units() below) that the function shared() leaves out. Most of them are in the lists above.
# The other four cannot change a verdict: `cuda` only writes messages, `published` only has constants, which are part of
# the fingerprints anyway, `mistakes` only finds the cause of a failure, and `coverage` only reports what a dataset
# covers.
not_shared='op family_candidates dtype input_key random simd cuda compare published mistakes coverage roles'
# The code that decides from stored verdicts whether a definition passed. A stored summary of a definition counts only
# for the same sources.
for_summaries='base/* cache/* dataset/* engine/* git/* models/* workers/*/*'
for_shipped='testgen/*.[ch] python/testing/conftest*.py python/arguments.py python/libraries/*.py'

# sources FILE…: prints the given files that exist and are source files. Leaves out the backup files of editors.
sources() {
	for file in "$@"; do
		case $file in *.[ch] | *.cu | *.cuh | *.py | *.json) [ ! -f "$file" ] || printf '%s\n' "$file" ;; esac
	done
}

# matched LIST…: ends the script if a pattern of the lists matches no source. Without this check, a source that has been
# moved could be in no list any more, and edits of it would change no digest.
matched() {
	set -f # the shell must not replace a pattern by the files that match it
	for pattern in $*; do
		set +f
		# shellcheck disable=SC2086 # unquoted: the shell expands the pattern
		if [ -z "$(sources $pattern)" ]; then
			echo "tools/generate.sh: no source matches '$pattern'. Correct the lists in tools/generate.sh: otherwise" \
				"old verdicts stay valid after an edit of a source that has moved." >&2
			exit 1
		fi
		set -f
	done
	set +f
}
# The lists are checked here, because a failure inside $(…) or a pipe does not end the script.
matched "$for_truth" "$for_inputs" "$for_checker" "$not_for_checker" "$for_summaries" "$for_shipped"
for unit in $not_shared; do matched "kernels/core/$unit[._]*"; done

# digest FILE…: prints the digest of the files
digest() { sources "$@" | xargs -r sha256sum | sha256sum | cut -c 1-32; }

# verdict_digest FILE…: prints the digest of the files, and lists them in obj/verdict_files
verdict_digest() {
	sources "$@" >>"$build/obj/verdict_files.all.$$"
	digest "$@"
}

# replace FILE: writes standard input to FILE if the file's contents would change. The temporary file has the process id
# in its name, because two makes may run at the same time.
replace() {
	cat >"$1.$$"
	if cmp -s "$1.$$" "$1"; then rm "$1.$$"; else mv "$1.$$" "$1"; fi
}

# units FILE…: prints the units whose headers the files include. A unit is a folder in kernels/common/, or all files in
# kernels/core/ whose names begin with the same word (WORD.* and WORD_*).
units() {
	sed -n 's/^[[:blank:]]*#[[:blank:]]*include[[:blank:]]*"kernels\/\(common\/[^\/"]*\)\/.*/\1/p
		s/^[[:blank:]]*#[[:blank:]]*include[[:blank:]]*"kernels\/\(core\/[^\/"_.]*\)[^\/"]*".*/\1/p' $(sources "$@") | sort -u |
		grep -vxF "$(printf 'core/%s\n' $not_shared)" || true
}

# shared FOLDER: prints the files that the op family in this folder shares with other families. A family that includes a
# header of a unit depends on every file of this unit, and on every unit whose headers these files include.
shared() {
	known='' files='' found=$(units "$1"/*)
	while [ "$found" != "$known" ]; do
		known=$found files=''
		for unit in $known; do
			case $unit in
			core/*) candidates="kernels/$unit.* kernels/${unit}_*" ;;
			*) candidates="kernels/$unit/*" ;;
			esac
			for file in $candidates; do [ ! -f "$file" ] || files="$files $file"; done
		done
		[ -z "$files" ] || found=$({ printf '%s\n' $known && units $files; } | sort -u)
	done
	printf '%s\n' $files
}

# on_host FILE…: prints the given files that contain host code. Every verdict depends on host code, whichever ground
# truth is used: host code generates inputs, sizes and tolerance rules, and judges outputs.
on_host() { for file in "$@"; do case $file in *.cu | *_cuda.h) ;; *) echo "$file" ;; esac done; }

: >"$build/obj/verdict_files.all.$$"
for source in kernels/*/*.c; do
	[ -f "$source" ] || continue
	folder=${source%/*} family=${source##*/}
	family=${family%.c}
	[ "$folder" = "kernels/$family" ] || continue
	shared=$(shared "$folder")
	truth=$(verdict_digest "$folder"/* $for_truth $shared)
	inputs=$(verdict_digest $(on_host "$folder"/*.[ch]) $for_inputs $(on_host $shared))
	printf 'OP(%s, "%s", "%s")\n' "$family" "$truth" "$inputs"
done | replace "$build/ops.inc"

for file in python/*.py python/libraries/*.py; do
	printf 'SCRIPT("%s", "%s")\n' "${file#python/}" "$(sha256sum <"$file" | cut -c 1-64)"
done | replace "$build/scripts.inc"
sed 's/\\/&&/g; s/"/\\&/g; s/.*/"&\\n"/' python/packages.py | replace "$build/packages.inc"
for file in python/libraries/*.py; do
	name=${file##*/}
	printf 'LIBRARY(%s)\n' "${name%.py}"
done | replace "$build/libraries.inc"
for file in kernels/*/templates/*.json; do
	[ -f "$file" ] || continue
	name=${file##*/} family=${file#kernels/}
	printf 'TEMPLATE(%s, %s)\n' "${family%%/*}" "${name%.json}"
done | replace "$build/templates.inc"
printf '#define SUMMARY_DIGEST "%s"\n' "$(digest $for_summaries)" | replace "$build/summary_digest.h"
printf '#define SHIPPED_DIGEST "%s"\n' "$(digest $for_shipped)" | replace "$build/shipped_digest.h"

left_out=" $(echo $not_for_checker) " checker=
for file in $for_checker; do
	case $left_out in *" $file "*) ;; *) checker="$checker $file" ;; esac
done
{
	printf '#define KERNELS_DIGEST "%s"\n' "$(digest kernels/* kernels/*/* kernels/common/*/* models/*)"
	printf '#define CHECKER_DIGEST "%s"\n' "$(verdict_digest $checker)"
} | replace "$build/kernels_digest.h"
sort -u "$build/obj/verdict_files.all.$$" | replace "$build/obj/verdict_files"
rm "$build/obj/verdict_files.all.$$"

printf '%s\n' "$sources" | replace "$build/obj/sources"
printf '%s\n' "$settings" | replace "$build/obj/settings"
printf '%s\n' "$settings_cuda" | replace "$build/obj/settings_cuda"

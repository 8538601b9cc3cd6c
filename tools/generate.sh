#!/bin/sh
# Writes what make derives from the names and contents of sources into BUILD, each file only when it would differ:
#
#   ops.inc            OP(family, "truth digest", "inputs digest") for each kernels/{family}/{family}.c, in name order
#   templates.inc      TEMPLATE(name, "path", needs, parts) for each kernels/{name}_template.py and kernels/{name}/template.py
#   templates_digest.h TEMPLATES_DIGEST over those and artifacts/conftest*.py
#   kernels_digest.h   KERNELS_DIGEST over all of kernels/, CHECKER_DIGEST over what judges every family alike
#   obj/sources        the objects of the archives
#   obj/settings       compiler and flags
#   obj/settings_cuda  the same for CUDA, so that whoever leaves CUDA out (or finds an nvcc) compiles no C again
#
# A digest is the first 32 hex digits of the SHA-256 of sha256sum's own listing, which holds each file's name and digest.
# It becomes part of verdicts' witnesses, so it covers what the comment beside it in kernels/op.h promises, no more.
set -eu
export LC_ALL=C
build=$1 sources=$2 settings=$3 settings_cuda=${4:-}
mkdir -p "$build/obj"

# digest PATTERN…: of those files that exist, editors' leftovers aside, and templates, by which nothing is judged
digest() {
	for file in "$@"; do
		case $file in kernels/*/template.py | kernels/*_template.py) ;; *.[ch] | *.cu | *.cuh | *.py | *.json) [ -f "$file" ] && printf '%s\n' "$file" ;; esac
	done | xargs -r sha256sum | sha256sum | cut -c 1-32
}

# replace FILE: make it hold standard input
replace() {
	cat >"$1.new"
	if cmp -s "$1.new" "$1"; then rm "$1.new"; else mv "$1.new" "$1"; fi
}

# nouns FILE…: the {noun} of each header kernels/{noun}.h or kernels/{noun}_….h that they include and that not all families
# have anyway. Of models.json it is the values that count, not the file.
nouns() {
	sed -n 's/^[[:blank:]]*#[[:blank:]]*include[[:blank:]]*"kernels\/\([^\/"_.]*\)[^\/"]*".*/\1/p' "$@" | sort -u |
		grep -vxE 'op|number|inputs|wide|cuda|compare|models' || true
}

# shared FOLDER: what a family shares with some others. Whoever includes a header of a noun depends on every file of that
# noun, and on what those include in their turn.
shared() {
	known='' files='' found=$(nouns "$1"/*)
	while [ "$found" != "$known" ]; do
		known=$found files=''
		for noun in $known; do
			for file in kernels/"$noun".* kernels/"$noun"_*; do [ ! -f "$file" ] || files="$files $file"; done
		done
		[ -z "$files" ] || found=$({ printf '%s\n' $known && nouns $files; } | sort -u)
	done
	printf '%s\n' $files
}

# What makes inputs, sizes and rules, and what judges by them, runs on the host: with every ground truth a verdict depends on it.
on_host() { for file in "$@"; do case $file in *.cu | *_cuda.h) ;; *) echo "$file" ;; esac done; }

for source in kernels/*/*.c; do
	[ -f "$source" ] || continue
	folder=${source%/*} family=${source##*/}
	family=${family%.c}
	[ "$folder" = "kernels/$family" ] || continue
	shared=$(shared "$folder")
	truth=$(digest "$folder"/* kernels/op.h kernels/number.* kernels/inputs.h kernels/wide.h $shared)
	inputs=$(digest $(on_host "$folder"/*.[ch]) kernels/inputs.* kernels/number.* $(on_host $shared))
	printf 'OP(%s, "%s", "%s")\n' "$family" "$truth" "$inputs"
done | replace "$build/ops.inc"

# or MACRO WORD…: the words as C: MACRO(word) | MACRO(word) | 0
or() {
	macro=$1
	shift
	for word in "$@"; do printf '%s(%s) | ' "$macro" "$word"; done
	echo 0
}

# needs TEMPLATE: names of the shared ones that it imports from, and those from theirs
needs() {
	known='' files=$1
	while :; do
		found=$(sed -n 's/^from kernels\.\([a-z_]*\)_template import.*/\1/p' $files | sort -u)
		[ "$found" != "$known" ] || break
		known=$found files=$1
		for name in $known; do files="$files kernels/${name}_template.py"; done
	done
	printf '%s\n' $known
}

# parts TEMPLATE NAME: which of its functions {NAME}_{part} a generated file takes by name (artifacts/templates.h)
parts() {
	sed -nE "s/^def $2_(flashinfer|sglang|fla|torch|inputs|edges|tolerance|judge|probe)\(.*/\1/p" "$1" | tr a-z A-Z
}

for template in kernels/*_template.py kernels/*/template.py; do
	[ -f "$template" ] || continue
	name=${template#kernels/} name=${name%/template.py} name=${name%_template.py}
	# shellcheck disable=SC2046 # lists of words
	printf 'TEMPLATE(%s, "%s", %s, %s)\n' "$name" "$template" "$(or NEED $(needs "$template"))" \
		"$(or PART $(parts "$template" "$name"))"
done | replace "$build/templates.inc"
printf '#define TEMPLATES_DIGEST "%s"\n' "$(sha256sum artifacts/*.[ch] artifacts/conftest*.py kernels/*_template.py kernels/*/template.py |
	sha256sum | cut -c 1-32)" | replace "$build/templates_digest.h"

# Files of workers/ that start, carry and word things but decide nothing are left out by name, so that a new file counts. What
# takes tensors out of files and holds them to constraints decides what was verified.
deciding=
for file in workers/*; do
	case ${file#workers/} in
	channel.* | crew.* | lane.* | lane_*.* | machine.* | pool.* | process.* | provider.* | say.* | work.*) ;;
	*) deciding="$deciding $file" ;;
	esac
done
{
	printf '#define KERNELS_DIGEST "%s"\n' "$(digest kernels/* kernels/*/*)"
	# shellcheck disable=SC2086 # a list of words
	printf '#define CHECKER_DIGEST "%s"\n' "$(digest kernels/compare* kernels/device* kernels/wide.h base/metrics.h base/dtype.* \
		dataset/safetensors.* dataset/constraint.* $deciding)"
} | replace "$build/kernels_digest.h"

printf '%s\n' "$sources" | replace "$build/obj/sources"
printf '%s\n' "$settings" | replace "$build/obj/settings"
printf '%s\n' "$settings_cuda" | replace "$build/obj/settings_cuda"

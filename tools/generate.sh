#!/bin/sh
# generate - writes files that make derives from the names and contents of sources to the folder BUILD. A file is
# written only if its content would change. If a new source file affects every verdict, add it to one of the digests.
# The files:
#
#   ops.inc            OP(family, "truth digest", "inputs digest") for each kernels/{family}/{family}.c, in name order
#   scripts.inc        SCRIPT("path below python/", "digest") for the Python files that run references and libraries; these
#                      are whole SHA-256 digests of the files themselves
#   libraries.inc      LIBRARY(name) for each python/libraries/{name}.py, in name order
#   shipped_digest.h   SHIPPED_DIGEST over these tables of libraries, python/testing/conftest*.py, and testgen/
#   kernels_digest.h   KERNELS_DIGEST over all of kernels/, CHECKER_DIGEST over the code that judges all families
#   obj/sources        the objects of the archives
#   obj/settings       the C compiler and its flags
#   obj/settings_cuda  the CUDA compiler and its flags; separate, so that a change of these does not recompile C
# A digest is the first 32 hex digits of the SHA-256 of sha256sum's output, which has each file's name and digest. The
# digests are fields of the fingerprint of every verdict, so each digest covers exactly the files that its comment in
# kernels/core/op.h lists.
set -eu
export LC_ALL=C
build=$1 sources=$2 settings=$3 settings_cuda=${4:-}
mkdir -p "$build/obj"

# digest PATTERN…: prints the digest of the files that match, without backup files of editors
digest() {
	for file in "$@"; do
		case $file in *.[ch] | *.cu | *.cuh | *.py | *.json) [ -f "$file" ] && printf '%s\n' "$file" ;; esac
	done | xargs -r sha256sum | sha256sum | cut -c 1-32
}

# replace FILE: writes standard input to FILE if the file's contents would change
replace() {
	cat >"$1.new"
	if cmp -s "$1.new" "$1"; then rm "$1.new"; else mv "$1.new" "$1"; fi
}

# units FILE…: prints the units that the files include. A unit is a folder of kernels/common/, or the files NOUN.* and
# NOUN_* of kernels/core/. Units that all op families use are left out. published_models.json is left out, too, because
# fingerprints contain the constants themselves.
units() {
	sed -n 's/^[[:blank:]]*#[[:blank:]]*include[[:blank:]]*"kernels\/\(common\/[^\/"]*\)\/.*/\1/p
		s/^[[:blank:]]*#[[:blank:]]*include[[:blank:]]*"kernels\/\(core\/[^\/"_.]*\)[^\/"]*".*/\1/p' "$@" | sort -u |
		grep -vxE 'core/(op|dtype|random|simd|cuda|compare|published)' || true
}

# shared FOLDER: prints the files that an op family shares with some other families. A family that includes a header of
# a unit depends on every file of the unit, and on the units that these files include in turn.
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

# on_host FILE…: prints the files with host code. Host code generates inputs, sizes and tolerance rules, and judges
# outputs. Every verdict therefore depends on host code, whatever the ground truth is.
on_host() { for file in "$@"; do case $file in *.cu | *_cuda.h) ;; *) echo "$file" ;; esac done; }

for source in kernels/*/*.c; do
	[ -f "$source" ] || continue
	folder=${source%/*} family=${source##*/}
	family=${family%.c}
	[ "$folder" = "kernels/$family" ] || continue
	shared=$(shared "$folder")
	truth=$(digest "$folder"/* kernels/core/op.h kernels/core/dtype_convert.* kernels/core/random_inputs.h kernels/core/simd.h $shared)
	inputs=$(digest $(on_host "$folder"/*.[ch]) kernels/core/random_inputs.* kernels/core/dtype_convert.* $(on_host $shared))
	printf 'OP(%s, "%s", "%s")\n' "$family" "$truth" "$inputs"
done | replace "$build/ops.inc"

for file in python/*.py python/libraries/*.py; do
	printf 'SCRIPT("%s", "%s")\n' "${file#python/}" "$(sha256sum <"$file" | cut -c 1-64)"
done | replace "$build/scripts.inc"
for file in python/libraries/*.py; do
	name=${file##*/}
	printf 'LIBRARY(%s)\n' "${name%.py}"
done | replace "$build/libraries.inc"
printf '#define SHIPPED_DIGEST "%s"\n' "$(sha256sum testgen/*.[ch] python/testing/conftest*.py python/libraries/*.py |
	sha256sum | cut -c 1-32)" | replace "$build/shipped_digest.h"

# The files of the judge, the runner and their protocol. Files that only format messages are left out.
deciding=
for file in workers/judge/* workers/protocol/* python/runner.py python/gradients.py; do
	case $file in */message_text.* | */channel.*) ;; *) deciding="$deciding $file" ;; esac
done
{
	printf '#define KERNELS_DIGEST "%s"\n' "$(digest kernels/* kernels/*/* kernels/common/*/*)"
	# shellcheck disable=SC2086 # a list of words
	printf '#define CHECKER_DIGEST "%s"\n' "$(digest kernels/core/compare* kernels/core/device* kernels/core/roles.* \
		kernels/core/simd.h base/metrics.h base/dtype.* dataset/safetensors.* dataset/constraint* $deciding)"
} | replace "$build/kernels_digest.h"

printf '%s\n' "$sources" | replace "$build/obj/sources"
printf '%s\n' "$settings" | replace "$build/obj/settings"
printf '%s\n' "$settings_cuda" | replace "$build/obj/settings_cuda"

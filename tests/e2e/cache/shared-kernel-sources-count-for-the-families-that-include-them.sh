#!/bin/sh
# A source file that several op families share is part of the digests of exactly these families. An edit of the file
# invalidates the verdicts of these families, and no others. A file that a shared source file includes is part of the
# same digests as the shared file. The digest of the code that generates inputs does not cover source files that are
# compiled only for the GPU.
#
# Below, each shared source has a list of the families that include it. The lists are written by hand: a new family must
# be added to the lists of all shared sources that it includes.
. "$(dirname "$0")/../harness.sh"
for folder in kernels tools workers python testgen base cache dataset engine git models; do cp -r "$top/$folder" .; done
# `digests NAME`: writes the digests of all families to $work/NAME/ops.inc.
digests() { sh tools/generate.sh "$work/$1" sources settings; }
changed() { # changed BEFORE AFTER WHICH: prints the families whose first (truth) or second (inputs) digest differs
	for side in "$1" "$2"; do sed 's/OP(\([a-z0-9_]*\), "\(.*\)", "\(.*\)")/\1 \'"$3"'/' "$work/$side/ops.inc"; done |
		sort | uniq -u | cut -d ' ' -f 1 | sort -u | tr '\n' ' '
}
expect_changed() { # expect_changed TRUTH-OF INPUTS-OF BEFORE AFTER
	expectations=$((expectations + 1))
	[ "$(changed "$3" "$4" 2)" = "$1" ] || fail "truth changed for '$(changed "$3" "$4" 2)', expected '$1' ($4)"
	[ "$(changed "$3" "$4" 3)" = "$2" ] || fail "inputs changed for '$(changed "$3" "$4" 3)', expected '$2' ($4)"
}
# `append LINE FILE TRUTH-OF INPUTS-OF`: appends LINE to FILE and computes the digests again. The truth digest must
# change for exactly the families TRUTH-OF, and the inputs digest for exactly the families INPUTS-OF. $before names the
# digests that were computed before the edit.
append() {
	printf '%s\n' "$1" >>"$2"
	digests "$2"
	expect_changed "$3" "$4" "$before" "$2"
	before=$2
}
edit_of() { append '' "$@"; } # edit_of FILE TRUTH-OF INPUTS-OF
# `checker NAME`: prints CHECKER_DIGEST of $work/NAME, the digest of the code that judges all families.
checker() { grep CHECKER "$work/$1/kernels_digest.h"; }
attention='dsa_paged gqa_paged gqa_ragged mla_paged mla_ragged '
digests before
digests again
expect_changed '' '' before again
before=again
edit_of kernels/common/attention/input_values.c "$attention" "$attention"
edit_of kernels/common/attention/roles.h "$attention" "$attention"
edit_of kernels/common/attention/attention.cu "$attention" ''
edit_of kernels/common/attention/attention_cuda.h "$attention" ''
edit_of kernels/mla_paged/mla_paged.c 'mla_paged ' 'mla_paged '
edit_of kernels/mla_paged/mla_paged.cu 'mla_paged ' ''

# The families that use kernels/core/shape_match.c to check the shapes of a definition.
asking="activation cascade delta_rule dsa_paged gated_delta_rule gdn gemm gemma_rmsnorm gla gqa_paged gqa_ragged kda \
layernorm mamba_ssu mla_paged mla_ragged moe page quantize_fp8_per_token_group rmsnorm rope simple_gla softmax "
edit_of kernels/core/shape_match.c "$asking" "$asking"

# gemma_rmsnorm and rmsnorm share the code in kernels/common/norm. Source files that only GPU kernels include do not
# affect the digest of the code that generates inputs.
norms='gemma_rmsnorm rmsnorm '
edit_of kernels/common/norm/rms_input_values.h "$norms" "$norms"
edit_of kernels/common/norm/rms.cu "$norms" ''
edit_of kernels/core/elements_cuda.h "activation cascade delta_rule dsa_paged gated_delta_rule gdn gemm gemma_rmsnorm gla gqa_paged \
gqa_ragged kda layernorm mamba_ssu mla_paged mla_ragged page quantize_fp8_per_token_group rmsnorm rope simple_gla \
softmax " ''

# Each .c file in a family's folder may affect the family's inputs and checks. Therefore the family's verdicts depend on
# these files, whichever ground truth is used.
edit_of kernels/sampling/draw_statistics.c 'sampling ' 'sampling '
edit_of kernels/moe/moe.cu 'moe ' ''

# The digests also cover a header that only shared sources include. This also holds for a header with a digit in its
# name, and for an #include with unusual spacing.
printf '\n' >kernels/core/fp8.h
printf '\n' >kernels/core/fp8_tables.c
digests unused
expect_changed '' '' "$before" unused
before=unused
append '  #  include "kernels/core/fp8.h" /* codes */' kernels/common/attention/roles.c "$attention" "$attention"
edit_of kernels/core/fp8.h "$attention" "$attention"
edit_of kernels/core/fp8_tables.c "$attention" "$attention"
append '#include "kernels/core/fp8_tables.h"' kernels/gemm/gemm.c 'gemm ' 'gemm '
edit_of kernels/core/fp8.h "dsa_paged gemm ${attention#dsa_paged }" "dsa_paged gemm ${attention#dsa_paged }"

# The digests of every family cover op, dtype_convert and random_inputs, whether the family includes them or not.
families=$(sed 's/OP(\([a-z0-9_]*\),.*/\1/' "$work/$before/ops.inc" | tr '\n' ' ')
for file in op.h ops.c dtype_convert.h dtype_convert.c random_inputs.h; do
	edit_of kernels/core/$file "$families" "$families"
done
edit_of kernels/core/random_inputs.c '' "$families"

# Every family depends on code that compares outputs. No family depends on code that only writes or sends messages.
# (These are examples. every-source-that-decides-is-in-a-digest.sh checks every file.)
for file in kernels/core/compare_tensors.cu workers/pool/reference_environment.c python/gradients.py workers/judge/message_text.c; do
	earlier=$before
	edit_of "$file" '' ''
	case $file in
	*/message_text.*)
		[ "$(checker "$earlier")" = "$(checker "$file")" ] ||
			fail "code that decides nothing changes the checker's digest: $file"
		;;
	*) [ "$(checker "$earlier")" != "$(checker "$file")" ] || fail "an edit of $file does not change the checker's digest" ;;
	esac
done
# The checker's digest also covers each of the files below. They are in verdict_files, the list of the files from which
# this digest is computed.
for file in kernels/core/compare_tensors.c kernels/core/device_cpu.c kernels/core/roles.c base/dtype.c dataset/safetensors.c \
	dataset/constraint.c workers/judge/case_inputs.c workers/judge/agreement.h workers/protocol/layout.h; do
	expectations=$((expectations + 1))
	grep -qx "$file" "$work/$before/obj/verdict_files" || fail "$file is in no digest"
done

# tools/generate.sh must stop with an error if a source in its list does not exist. Otherwise, the digests would
# silently lack a source file that was moved.
expect_stop() { # expect_stop PATTERN FILE…: expects an error, because without the FILEs no source matches PATTERN
	expectations=$((expectations + 1)) step="without $*"
	pattern=$1
	shift
	mkdir "$work/moved"
	mv "$@" "$work/moved/"
	status=0
	digests stopped >"$work/out" 2>"$work/err" || status=$?
	expect_exit 1
	expect_says "no source matches '$pattern'. Correct the lists in tools/generate.sh"
	for file in "$@"; do mv "$work/moved/${file##*/}" "$file"; done
	rmdir "$work/moved"
}
expect_stop 'kernels/core/ops.c' kernels/core/ops.c
expect_stop 'kernels/core/random_inputs.h' kernels/core/random_inputs.h
expect_stop 'kernels/core/dtype_convert.*' kernels/core/dtype_convert.?
expect_stop 'dataset/constraint*' dataset/constraint*
expect_stop 'workers/judge/message_text.*' workers/judge/message_text.?
expect_stop 'python/gradients.py' python/gradients.py
expect_stop 'testgen/*.[ch]' testgen/*.[ch]
expect_stop 'git/*' git/*
# tools/generate.sh must also list kernels/core/published_models.*: several families use it, but it is in no family's
# folder.
expect_stop 'kernels/core/published[._]*' kernels/core/published_models.*
# Stored summaries count only for the same sources of the code that decides which verdicts count.
for file in engine/case_order.c cache/python_dependencies.c workers/pool/lane_retry.c dataset/definition_parse.c; do
	expectations=$((expectations + 1))
	digests before_edit
	echo >>$file
	digests after_edit
	! cmp -s "$work/before_edit/summary_digest.h" "$work/after_edit/summary_digest.h" ||
		fail "an edit of $file does not change the digest of the code that decides from stored verdicts"
	expect_changed '' '' before_edit after_edit
done
# A backup file of an editor does not count as a source.
mv kernels/core/ops.c kernels/core/ops.c~
expect_stop 'kernels/core/ops.c' kernels/core/ops.c~
mv kernels/core/ops.c~ kernels/core/ops.c
digests whole
expect_changed '' '' "$before" whole

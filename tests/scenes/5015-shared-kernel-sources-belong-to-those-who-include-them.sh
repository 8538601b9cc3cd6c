#!/bin/sh
# 5015: what several op families share is part of the digests of exactly these: an edit of it makes their verdicts stale,
# and nobody else's, as do edits of its own rooms. So is what the shared sources include in their turn; and what runs on a GPU alone makes no inputs.
. "$(dirname "$0")/scene.sh"
cp -r "$top/kernels" "$top/tools" "$top/workers" "$top/base" "$top/dataset" .
digests() { sh tools/generate.sh "$work/$1" sources settings; } # NAME: into $work/NAME/ops.inc
changed() { # BEFORE AFTER WHICH: the families whose first (truth) or second (inputs) digest differs
	for side in "$1" "$2"; do sed 's/OP(\([a-z0-9_]*\), "\(.*\)", "\(.*\)")/\1 \'"$3"'/' "$work/$side/ops.inc"; done |
		sort | uniq -u | cut -d ' ' -f 1 | sort -u | tr '\n' ' '
}
expect_changed() { # TRUTH-OF INPUTS-OF BEFORE AFTER
	expectations=$((expectations + 1))
	[ "$(changed "$3" "$4" 2)" = "$1" ] || fail "truth changed for '$(changed "$3" "$4" 2)', expected '$1' ($4)"
	[ "$(changed "$3" "$4" 3)" = "$2" ] || fail "inputs changed for '$(changed "$3" "$4" 3)', expected '$2' ($4)"
}
checker() { grep CHECKER "$work/$1/kernels_digest.h"; } # of what judges every family alike
attention='dsa_paged gqa_paged gqa_ragged mla_paged mla_ragged '
digests before
digests again
expect_changed '' '' before again
printf '\n' >>kernels/attention_inputs.c
digests inputs
expect_changed "$attention" "$attention" before inputs
printf '\n' >>kernels/attention_roles.h
digests roles
expect_changed "$attention" "$attention" inputs roles
printf '\n' >>kernels/attention.cu
digests truth
expect_changed "$attention" '' roles truth
printf '\n' >>kernels/attention_cuda.h
digests header
expect_changed "$attention" '' truth header
printf '\n' >>kernels/mla_paged/mla_paged.c
digests own
expect_changed 'mla_paged ' 'mla_paged ' header own
printf '\n' >>kernels/mla_paged/mla_paged.cu
digests cuda
expect_changed 'mla_paged ' '' own cuda

# What several families ask of a definition.
printf '\n' >>kernels/fit.c
digests fit
asking="delta_rule dsa_paged gated_delta_rule gdn gla gqa_paged gqa_ragged kda mamba_ssu mla_paged mla_ragged moe simple_gla "
expect_changed "$asking" "$asking" cuda fit

# Two norms are one, but for their weights; and what kernels on a GPU do alike is no part of how inputs are made.
norms='gemma_rmsnorm rmsnorm '
printf '\n' >>kernels/rms_inputs.h
digests norm
expect_changed "$norms" "$norms" fit norm
printf '\n' >>kernels/rms.cu
digests norm_cuda
expect_changed "$norms" '' norm norm_cuda
printf '\n' >>kernels/elements_cuda.h
digests elements
expect_changed "activation cascade dsa_paged gdn gemm gemma_rmsnorm gqa_paged gqa_ragged layernorm mamba_ssu mla_paged \
mla_ragged page rmsnorm rope softmax " '' norm_cuda elements

# A family's other rooms may make its inputs, and judge: whatever ground truth a verdict came of, it depends on them. A template
# judges nothing.
printf '\n' >>kernels/sampling/draws.c
digests room
expect_changed 'sampling ' 'sampling ' elements room
printf '\n' >>kernels/moe/moe.cu
digests room_cuda
expect_changed 'moe ' '' room room_cuda
printf '\n' >>kernels/moe/template.py
printf '\n' >>kernels/attention_template.py
digests template
expect_changed '' '' room_cuda template

# A header that only shared sources include, written in a way of its own, with a digit in its name.
printf '\n' >kernels/fp8.h
printf '\n' >kernels/fp8_tables.c
digests unused
expect_changed '' '' template unused
printf '  #  include "kernels/fp8.h" /* codes */\n' >>kernels/attention_roles.c
digests included
expect_changed "$attention" "$attention" unused included
printf '\n' >>kernels/fp8.h
digests edited
expect_changed "$attention" "$attention" included edited
printf '\n' >>kernels/fp8_tables.c
digests tables
expect_changed "$attention" "$attention" edited tables
printf '#include "kernels/fp8_tables.h"\n' >>kernels/gemm/gemm.c
digests joined
expect_changed 'gemm ' 'gemm ' tables joined
printf '\n' >>kernels/fp8.h
digests all
expect_changed "dsa_paged gemm ${attention#dsa_paged }" "dsa_paged gemm ${attention#dsa_paged }" joined all

# What takes tensors out of files, and what holds them to constraints, judges for every family; what words it does not.
before=all
for file in workers/given.c base/dtype.c dataset/safetensors.c dataset/constraint.c; do
	printf '\n' >>$file
	digests "$file"
	expect_changed '' '' "$before" "$file"
	[ "$(checker "$before")" != "$(checker "$file")" ] || fail "an edit of $file leaves the checker as it was"
	before=$file
done
printf '\n' >>workers/say.c
digests say
[ "$(checker "$before")" = "$(checker say)" ] || fail "what words verdicts counts as a judge"

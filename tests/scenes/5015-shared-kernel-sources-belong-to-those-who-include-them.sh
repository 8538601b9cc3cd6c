#!/bin/sh
# 5015: what several op families share is part of the digests of exactly these: an edit of it makes their verdicts stale,
# and nobody else's.
. "$(dirname "$0")/scene.sh"
cp -r "$top/kernels" "$top/tools" "$top/workers" "$top/base" .
digests() { sh tools/generate.sh "$work/$1" sources settings; } # NAME: into $work/NAME/ops.inc
changed() { # BEFORE AFTER: the families of which a digest differs
	sort "$work/$1/ops.inc" "$work/$2/ops.inc" | uniq -u | sed 's/OP(\([a-z_]*\),.*/\1/' | sort -u | tr '\n' ' '
}
expect_changed() { # FAMILIES BEFORE AFTER
	expectations=$((expectations + 1))
	[ "$(changed "$2" "$3")" = "$1" ] || fail "digests changed for '$(changed "$2" "$3")', expected '$1'"
}
digests before
digests again
expect_changed '' before again
printf '\n' >>kernels/attention_inputs.c
digests inputs
expect_changed 'dsa_paged gqa_paged gqa_ragged mla_paged mla_ragged ' before inputs
printf '\n' >>kernels/attention.cu
digests truth
expect_changed 'dsa_paged gqa_paged gqa_ragged mla_paged mla_ragged ' inputs truth
printf '\n' >>kernels/mla_paged/mla_paged.c
digests own
expect_changed 'mla_paged ' truth own

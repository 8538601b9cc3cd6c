#!/bin/sh
# Every linear attention definition in the starter dataset agrees with flash-linear-attention's plain PyTorch
# implementation, called through the provider's table. A wrong entry of the table would cause a disagreement.
. "$(dirname "$0")/../harness.sh"
[ "$device" = cpu ] || skip "on a GPU flash-linear-attention runs its Triton kernels"
fla_is_here
for file in "$top"/definitions/gla/*.json "$top"/definitions/simple_gla/*.json "$top"/definitions/delta_rule/*.json \
	"$top"/definitions/gated_delta_rule/*.json "$top"/definitions/kda/*.json; do
	given "$(basename "$file" .json)"
done
forms="--ground-truth all --no-workloads --timeout 300"

verify $forms
expect_exit 0
expect "len(d) == 12 and s['cases_run'] >= 24"
expect "all([w['name'] for w in case['witnesses']] == ['fla', 'builtin'] for n in d for case in d[n]['cases'])"
expect "all(w['passed_over'] is None for n in d for case in d[n]['cases'] for w in case['witnesses'])"

# Mistakes are planted in the table, and each definition then shows a disagreement. For the definitions in `own`, the
# mistakes are in parts of the table that few definitions use. For all other definitions, the mistake is a scale that is
# wrong by 2 %.
cp -r "$top/python/libraries" "$work/tables"
export REFTEST_PROVIDERS="$work/tables"
misread() { edit "$work/tables/fla.py" "$@"; }
own='kda_recurrent_qk_l2norm_v_first_h2_hv4_d64 kda_chunk_varlen_gate_beta_sigmoid_h4_d64 gated_delta_rule_recurrent_h2_hv4_d64
	delta_rule_recurrent_qk_l2norm_h4_d64 simple_gla_varlen_gamma_h4_k64_v128 gla_chunk_varlen_h2_d128'
others=
for file in definitions/*/*.json; do
	name=$(basename "$file" .json)
	case " $(echo $own) " in *" $name "*) ;; *) others="$others $name" ;; esac
done
misread '.transpose(-1, -2) if form.v_first else final)' ')'
misread 'beta = self.beta.sigmoid() if self.sigmoid else self.beta' 'beta = self.beta'
misread 'if self.l2norm else x' 'if self.l2norm and self.gate is not None else x'
misread 'self.gamma.expand(*self.v.shape[:3])' 'self.gamma.flip(0).expand(*self.v.shape[:3])'
misread 'state is None else state[i : i + 1]' 'state is None else state[:1] if family == "gla" else state[i : i + 1]'
verify $forms --force $own
expect_exit 1
expect "len(d) == 6 and {x['reason'] for x in d.values()} == {'ground_truths_disagree'}"

cp "$top/python/libraries/fla.py" "$work/tables/fla.py"
misread 'self.v_first = call.is_("v_first")' 'self.v_first, self.scale = call.is_("v_first"), self.scale * 1.02'
verify $forms --force $others
expect_exit 1
expect "len(d) == 6 and {(x['status'], x['reason']) for x in d.values()} == {('failed', 'ground_truths_disagree')}"

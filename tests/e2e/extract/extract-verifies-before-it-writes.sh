#!/bin/sh
# `extract` writes only definitions that pass, and reports those that fail. If the dataset has a definition of the same
# name, `extract` says whether the references of both definitions behave alike. `--stats` counts the definitions of the
# dataset: all definitions, those with a test, those without a test, and those that are verified.
. "$(dirname "$0")/../harness.sh"
mkdir -p definitions my-model "$work/tmp"
export TMPDIR="$work/tmp"
cat >my-model/config.json <<'END'
{"architectures": ["LlamaForCausalLM"], "hidden_size": 256, "num_attention_heads": 4, "num_key_value_heads": 2,
 "intermediate_size": 512, "vocab_size": 1000, "rms_norm_eps": 1e-5}
END
from="--config my-model/config.json --device cpu"

step="what passes is written, and its verdicts are kept"
run extract $from --op-type rmsnorm,activation --format json
expect_exit 0
expect "r['verified'] is True and r['not_kept'] == []"
expect "sorted(r['written']) == ['activation/silu_and_mul_h512', 'rmsnorm/fused_add_rmsnorm_h256', 'rmsnorm/rmsnorm_h256']"
run verify --sizes small --device cpu --cached-only --format json
expect_exit 0
expect "all(c['cached'] for one in r['definitions'] for c in one['cases'])"
[ -z "$(ls "$TMPDIR")" ] || fail "the temporary dataset is still there"

step="what fails is not written"
run extract $from --model llama-3.1-8b --op-type rmsnorm --format json --out other # a dimension that this model does not have
expect_exit 1
expect "r['written'] == []"
expect "[one['name'] for one in r['not_kept']] == ['rmsnorm/rmsnorm_h256', 'rmsnorm/fused_add_rmsnorm_h256']"
expect "all(one['status'] == 'failed' and 'llama-3.1-8b has an axis of this length' in one['why'] for one in r['not_kept'])"
[ ! -e other/definitions ] || fail "a definition that failed was written"
run extract $from --model llama-3.1-8b --op-type rmsnorm --out other
expect_exit 1
grep -q 'rmsnorm/rmsnorm_h256: failed: small:.*: constants: axis' "$work/out" || fail "the text does not say what failed"

step="names that are taken: other values, the same values, another interface"
"$python" -I -S - <<'END'
import json
def change(path, edit):
    d = json.load(open(path))
    edit(d)
    json.dump(d, open(path, "w"), indent=1)
def reference(old, new):
    def edit(d):
        assert old in d["reference"], d["reference"]
        d["reference"] = d["reference"].replace(old, new)
    return edit
change("definitions/rmsnorm/rmsnorm_h256.json", reference("EPSILON = 1e-5", "EPSILON = 1e-3"))
change("definitions/activation/silu_and_mul_h512.json", lambda d: d.update(reference="import math\n" + d["reference"]))
change("definitions/rmsnorm/fused_add_rmsnorm_h256.json", lambda d: d["inputs"]["weight"].update(dtype="float32"))
END
run extract $from --op-type rmsnorm,activation --format json
expect_exit 0
expect "len(r['written']) == 3 and all(name.endswith('_v2') for name in r['written'])"
expect "{c['existing']: c['behaviour'] for c in r['conflicts']} == {'rmsnorm/rmsnorm_h256': 'changed', 'activation/silu_and_mul_h512': 'same', 'rmsnorm/fused_add_rmsnorm_h256': 'unknown'}"
expect "{c['existing']: c['why'][:28] for c in r['conflicts']} == {'rmsnorm/rmsnorm_h256': 'the references behave differ', 'activation/silu_and_mul_h512': 'the references behave alike:', 'rmsnorm/fused_add_rmsnorm_h256': 'the two definitions have dif'}"
rm definitions/*/*_v2.json
run extract $from --op-type activation
grep -q '^    the references behave alike: every value of ' "$work/out" || fail "the text does not say so"

step="what references write to an input is compared, too"
mkdir next
cat >next/config.json <<'END'
{"architectures": ["Qwen3NextForCausalLM"], "hidden_size": 256, "num_attention_heads": 4, "moe_intermediate_size": 128,
 "num_experts": 8, "vocab_size": 1000, "linear_num_key_heads": 1, "linear_num_value_heads": 2, "linear_key_head_dim": 64,
 "linear_value_head_dim": 64}
END
run extract --config next/config.json --op-type gdn --no-verify --out pool
expect_exit 0
cp pool/definitions/gdn/gdn_mtp_qk1_v2_d64_k_last.json "$work/mtp.json"
edit pool/definitions/gdn/gdn_mtp_qk1_v2_d64_k_last.json 't] = held' 't] = 1 * held'
run extract --config next/config.json --device cpu --op-type gdn --out pool --format json
expect_exit 0
expect "[c['behaviour'] for c in r['conflicts']] == ['same']"
rm pool/definitions/gdn/gdn_mtp_qk1_v2_d64_k_last_v2.json
cp "$work/mtp.json" pool/definitions/gdn/gdn_mtp_qk1_v2_d64_k_last.json
edit pool/definitions/gdn/gdn_mtp_qk1_v2_d64_k_last.json 't] = held' 't] = 2 * held'
run extract --config next/config.json --device cpu --op-type gdn --out pool --format json
expect_exit 0
expect "[c['behaviour'] for c in r['conflicts']] == ['changed']"
expect "'wrote to its input \\'intermediate_states_buffer\\', but the written values differ' in r['conflicts'][0]['why']"

step="counts"
mkdir -p tests/references
printf 'class TestX:\n    NAME = "rmsnorm_h256"\n' >tests/references/test_mine.py
run extract --stats --device cpu --format json
expect_exit 0
expect "'model' not in r"
expect "(r['stats']['definitions'], r['stats']['with_test'], r['stats']['without_test']) == (4, 1, 3)"
expect "{one['op_type']: one['definitions'] for one in r['stats']['op_types']} == {'activation': 2, 'rmsnorm': 2}"
expect "[one['model'] for one in r['stats']['models']] == ['my-model']"
run verify activation/silu_and_mul_h512_v2 --device cpu
expect_exit 0
run extract --stats --device cpu
expect_exit 0
grep -Eq '^  activation +2 +0 +2 +1$' "$work/out" || fail "the definition is not counted as verified"
grep -Eq '^  all +4 +1 +3 +1$' "$work/out" || fail "the sum is another"
true

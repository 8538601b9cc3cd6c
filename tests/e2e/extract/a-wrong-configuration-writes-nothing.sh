#!/bin/sh
# If config.json is wrong, or a number is not divisible by a degree of parallelism, a message names the field, and
# nothing is written.
. "$(dirname "$0")/../harness.sh"
mkdir -p definitions my-model

# config MEMBERS: writes a config.json with these members
config() { printf '{"architectures": ["LlamaForCausalLM"], %s}\n' "$1" >my-model/config.json; }
# refused OPTIONS… MESSAGE: `extract` exits with 2 and says MESSAGE
refused() {
	for last; do :; done
	step=$last
	set -- "$@" --
	options=
	while [ "$2" != -- ]; do options="$options $1" && shift; done
	# shellcheck disable=SC2086 # a list of words
	run extract --no-verify $options
	expect_exit 2
	grep -qF -- "$last" "$work/err" || fail "standard error does not say '$last'"
	[ -z "$(find definitions -type f)" ] || fail "something was written"
}

whole='"hidden_size": 256, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 512, "vocab_size": 1000, "rms_norm_eps": 1e-5'
from='--config my-model/config.json'
config "$whole"
refused $from --tp 3 "tp 3, ep 1: one of these degrees of parallelism does not divide num_attention_heads of my-model, which is 4"
refused --model qwen3-30b-a3b --tp 5 --op-type moe "does not divide moe_intermediate_size of qwen3-30b-a3b, which is 768"
refused --model qwen3-30b-a3b --ep 3 "ep 3 does not divide num_experts of qwen3-30b-a3b, which is 128"
refused $from --op-type nothing "no module of my-model has definitions of op_type 'nothing'"
refused $from --tp 0 "--tp takes at most 32 numbers from 1 to 4096"
refused $from --page-size 1,x "--page-size takes at most 32 numbers from 1 to 4096"
refused --model nobody-7b "reftest does not know the model 'nobody-7b'"
refused --model meta-llama/Llama3.1-8B "reftest does not know the model 'meta-llama/Llama3.1-8B' (the nearest is 'llama-3.1-8b')"
refused --config absent.json "absent.json does not exist"
refused "name a model with --model"
config '"hidden_size": 256'
refused $from "my-model/config.json: the field 'num_attention_heads' is missing (expected an integer above 0)"
config "$(echo "$whole" | sed 's/: 4,/: -4,/')"
refused $from "my-model/config.json:1:84: expected an integer above 0 for 'num_attention_heads', found -4"
config "$(echo "$whole" | sed 's/: 4,/: 0,/')"
refused $from "expected an integer above 0 for 'num_attention_heads', found 0"
config "$(echo "$whole" | sed 's/: 4,/: "4",/')"
refused $from "expected an integer above 0 for 'num_attention_heads', found \"4\""
config "$(echo "$whole" | sed 's/1e-5/"1e-5"/')"
refused $from "expected a number above 0 for 'rms_norm_eps', found \"1e-5\""
config "$(echo "$whole" | sed 's/: 2,/: 2.5,/')"
refused $from "expected an integer above 0 for 'num_key_value_heads', found 2.5"
config "$(echo "$whole" | sed 's/: 4,/: 3,/')"
refused $from "the configuration of my-model is contradictory: with num_attention_heads = 3, num_key_value_heads = 2 and hidden_size = 256, the axis N of self_attn.qkv_proj has the length"
config "$whole"
sed -i 's/LlamaForCausalLM/Qwen3_5MoeForConditionalGeneration/' my-model/config.json
refused $from "reftest does not know the architecture 'Qwen3_5MoeForConditionalGeneration' (the nearest is 'Qwen3MoeForCausalLM')"
sed -i 's/Qwen3_5Moe/Gemma3a/' my-model/config.json
refused $from "(the nearest is 'Gemma3ForConditionalGeneration')"
sed -i 's/Gemma3a/Gemma4/' my-model/config.json
refused $from "(the nearest is 'Gemma3ForConditionalGeneration')"
sed -i 's/Gemma4ForConditionalGeneration/MistralSmallForCausalLM/' my-model/config.json
refused $from "(the nearest is 'MistralForCausalLM')"
sed -i 's/"MistralSmallForCausalLM"//' my-model/config.json
refused $from "expected the name of the model's architecture, found an empty list"
config "$whole"
sed -i 's/LlamaForCausalLM/LlamaForCausallM/' my-model/config.json
refused $from "reftest does not know the architecture 'LlamaForCausallM' (the nearest is 'LlamaForCausalLM')"
printf '{"architectures": ["LlamaForCausalLM"], "hidden_size": 2' >my-model/config.json
refused $from "my-model/config.json:1:"
echo '{"hidden_size": 2}' >my-model/config.json
refused $from "architecture"
echo '[]' >my-model/config.json
refused $from "an object"

step="no dataset"
mkdir "$work/nowhere"
(cd "$work/nowhere" && run extract --no-verify --model llama-3.1-8b) || true
grep -q 'no dataset found: .*, or write a new dataset with --out DIR' "$work/err" || fail "the message does not name --out"

step="a configuration of the user"
config "$whole"
run extract --no-verify $from --format json
expect_exit 0
expect "r['model'] == 'my-model' and 'gqa_paged/gqa_paged_decode_h4_kv2_d64_ps1' in r['written']"
expect "'gemm/gemm_n512_k256' in r['written']"

# With `ulimit`, no file can become larger than 1536 bytes. The definitions of norms are smaller than this, and the
# definitions of attention are larger.
step="a dataset that cannot be written"
cp -a definitions before
rm -r definitions/rmsnorm before/rmsnorm # its folder is to be made
rm definitions/gqa_paged/*.json before/gqa_paged/*.json
sed -i 's/"model:my-model"/"model:another"/' definitions/activation/*.json before/activation/*.json # a tag is to be added
(
	trap '' XFSZ
	ulimit -f 3
	exec "$reftest" extract --no-verify $from
) >"$work/out" 2>"$work/err" && fail "the program succeeds" || [ $? = 2 ] || fail "the exit status is not 2"
grep -q 'cannot write the file: File too large' "$work/err" || fail "the message does not say why"
diff -r definitions before || fail "a part of the definitions was written"

#!/bin/sh
# With a checkout of SGLang, `extract` reports where SGLang's model file and models/architectures.json disagree.
# `extract` writes the same definitions as without the checkout.
. "$(dirname "$0")/../harness.sh"
mkdir -p definitions elsewhere/sglang/python/sglang/srt/models
models=elsewhere/sglang/python/sglang/srt/models
git init -q elsewhere/sglang
cat >$models/common.py <<'P'
class Attention:
    def __init__(self, config):
        self.qkv_proj = QKVParallelLinear(config.hidden_size, config.num_attention_heads, config.num_key_value_heads)
        self.o_proj: object = RowParallelLinear(config.hidden_size)
        self.attn_mqa = RadixAttention()
        self.rotary_emb = get_rope()
P
cat >$models/llama.py <<'P'
from sglang.srt.models.common import Attention


class LlamaDecoderLayer:
    def __init__(self, config):
        self.input_layernorm = RMSNorm(config.hidden_size)
        self.post_attention_layernorm = RMSNorm(config.hidden_size)
        self.gate_up_proj = MergedColumnParallelLinear(config.intermediate_size)
        self.down_proj = RowParallelLinear(config.intermediate_size)
        self.act_fn = SiluAndMul()


class LlamaForCausalLM:
    def __init__(self, config):
        self.lm_head = ParallelLMHead(config.vocab_size)
        if self.lm_head == self.x_norm:
            pass
P
echo "class LlamaForCausalLMExtra: pass" >$models/a_first.py
extract() { run extract --model llama-3.1-8b --no-verify --format json "$@"; }

step="without a checkout"
extract --out one
expect_exit 0
expect "r['sglang'] == {'file': None, 'disagreements': []}"

step="agreement"
extract --out two --repos elsewhere
expect_exit 0
expect "r['sglang'] == {'file': 'python/sglang/srt/models/llama.py', 'disagreements': []}"
diff -r one two || fail "the checkout changes the definitions"
run extract --model llama-3.1-8b --no-verify --out two --repos elsewhere
grep -q "^SGLang's python/sglang/srt/models/llama.py agrees with reftest's mapping of this model$" "$work/out" || fail "the text does not say so"

step="another layer, another field, and one that the mapping lacks, in the checkout of repos_config.json"
sed -i 's/self.down_proj = /self.down = /; s/config.vocab_size/config.words/' $models/llama.py
sed -i 's/self.o_proj: object/self.out_proj/; s/self.rotary_emb = get_rope/self.pre_norm = (RMSNorm/' $models/common.py
printf '    extra = 1\n    def more(self):\n        self.extra_norm = (\n            RMSNorm(1) if self else None)\n' >>$models/llama.py
echo '{"target_dir": "elsewhere", "repositories": {"sglang": {"path": "elsewhere/sglang", "status": "cloned", "commit": "", "message": ""}}}' >repos_config.json
extract
expect_exit 0
expect "sorted(r['sglang']['disagreements']) == sorted(['the model file has no o_proj, which is self_attn.o_proj in reftest\'s mapping', 'the model file has no rotary_emb, which is rotary_emb in reftest\'s mapping', 'the model file has no down_proj, which is mlp.down_proj in reftest\'s mapping', 'the model file does not read vocab_size, but reftest\'s mapping uses this field for lm_head', 'the model file has down (RowParallelLinear), which is not in reftest\'s mapping', 'the model file has extra_norm (RMSNorm), which is not in reftest\'s mapping'])"
rm -r definitions && mkdir definitions
run extract --model llama-3.1-8b --no-verify
grep -q "^SGLang's python/sglang/srt/models/llama.py disagrees with reftest's mapping of this model:$" "$work/out" || fail "the text does not say so"
grep -q "^  the model file has no down_proj, which is mlp.down_proj in reftest's mapping$" "$work/out" || fail "the text does not name the layer"

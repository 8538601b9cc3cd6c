#!/bin/sh
# `web` prints the module tree of a model with the definitions of the dataset. `web --into` writes the modules into a
# file and changes no other byte of it. A file that `web` does not understand stays unchanged.
. "$(dirname "$0")/../harness.sh"
mkdir definitions

step="the tree of a model of the table"
run extract --no-verify --model llama-3.1-8b --tp 1,4
expect_exit 0
run web --model llama-3.1-8b-instruct # an alias
expect_exit 0
[ ! -s "$work/err" ] || fail "a definition of the model is in no module"
cp "$work/out" "$work/entry"
"$python" -I -S - "$work/entry" <<'END' || fail "the modules are others"
import json, re, sys
text = open(sys.argv[1]).read()
text = re.sub(r",(\s*[}\]])", r"\1", re.sub(r"^(\s*)(\w+):", r'\1"\2":', text, flags=re.M)).strip().rstrip(",")
entry = json.loads(text)
assert (entry["id"], entry["name"]) == ("llama-3.1-8b", "Llama 3.1 8B"), entry
m = entry["modules"]
assert m["LlamaForCausalLM"] == {"count": 1, "type": "block", "definitions": []}
assert m["layers"] == {"count": 32, "parent": "LlamaForCausalLM", "type": "block", "definitions": []}
assert m["qkv_proj"] == {"count": 32, "parent": "self_attn", "type": "layer",
                         "definitions": ["gemm_n1536_k4096", "gemm_n6144_k4096"]}, m["qkv_proj"]
assert "gqa_paged_decode_h8_kv2_d128_ps64" in m["attn"]["definitions"] and m["norm"]["count"] == 1
assert all(m[one["parent"]]["type"] == "block" for one in m.values() if "parent" in one)
END

step="a file"
printf 'import x\n// before\nconst models: Model[] = [\n  {\n    id: "other", /* odd */ modules: {}\n  },\n]\nexport default models // no line end' >models.ts
cp models.ts before.ts
run web --model llama-3.1-8b --into models.ts
expect_exit 0
grep -q 'models.ts: added llama-3.1-8b' "$work/out" || fail "the change is not reported"
{ sed -n 1,6p before.ts && cat "$work/entry" && printf ']\nexport default models // no line end'; } | cmp - models.ts ||
	fail "another byte changed"
run web --model llama-3.1-8b --into models.ts
grep -q 'already has the modules of llama-3.1-8b' "$work/out" || fail "the second run changes the file"
sed -i 's/name: "Llama 3.1 8B"/name: "Mine"/; s/count: 32/count: 31/' models.ts
run web --model llama-3.1-8b --into models.ts
grep -q 'replaced the modules of llama-3.1-8b' "$work/out" || fail "the modules were not replaced"
{ sed -n 1,6p before.ts && sed 's/name: "Llama 3.1 8B"/name: "Mine"/' "$work/entry" && printf ']\nexport default models // no line end'; } |
	cmp - models.ts || fail "more than the modules changed"

step="a file behind a symbolic link"
cp before.ts real.ts
ln -s real.ts linked.ts
run web --model llama-3.1-8b --into linked.ts
expect_exit 0
[ -L linked.ts ] && grep -q '"llama-3.1-8b"' real.ts || fail "the link was replaced"

step="a file that is not understood"
echo 'const models = load("models.json")' >models.ts
cp models.ts before.ts
run web --model llama-3.1-8b --into models.ts
expect_exit 2
grep -q "models.ts:1:16: expected '\[', found load; the file was left as it is" "$work/err" || fail "the message is another"
cmp models.ts before.ts || fail "the file changed"
run web --model llama-3.1-8b --into absent.ts
expect_exit 2
grep -q "absent.ts does not exist" "$work/err" || fail "the message is another"

step="a configuration of the user, and definitions that belong to no module"
mkdir my-model
echo '{"architectures": ["DeepseekV3ForCausalLM"], "first_k_dense_replace": 0}' >my-model/config.json
run web --config my-model/config.json
expect_exit 2
grep -q "my-model/config.json: the field 'num_hidden_layers' is missing" "$work/err" || fail "the message is another"
echo '{"architectures": ["DeepseekV3ForCausalLM"], "num_hidden_layers": 5, "first_k_dense_replace": 0, "hidden_size": 256}' >my-model/config.json
sed -i 's/"model:llama-3.1-8b"/"model:my-model"/' definitions/rmsnorm/rmsnorm_h4096.json
run web --config my-model/config.json
expect_exit 0
grep -q "rmsnorm/rmsnorm_h4096 has the tag of my-model, but reftest's mapping of this model has no module for this definition" "$work/err" ||
	fail "the definition is not reported"
grep -A 1 'moe: {' "$work/out" | grep -q 'count: 5,' || fail "the number of layers with experts is another"
grep -q ' mlp: {' "$work/out" && fail "a module of which the model has none is listed"

step="no model"
run web
expect_exit 2
grep -q "name a model with --model" "$work/err" || fail "the message is another"
true

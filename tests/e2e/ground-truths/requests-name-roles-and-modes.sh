#!/bin/sh
# A request to another library contains the role of each input and output in the operation, and the modes of the
# operation. The request for a gradient case has the roles of the forward operation.
. "$(dirname "$0")/../harness.sh"
[ "$device" = cpu ] || skip "a GPU has its own choice of ground truths"
given fused_add_rmsnorm_h4096 gqa_ragged_prefill_causal_h10_kv2_d128 kda_recurrent_qk_l2norm_v_first_h2_hv4_d64
mkdir "$work/tables"
cat >"$work/tables/torch.py" <<END
import json

import reftest_providers as common

made = common.Call.__init__


def record(self, torch, request, *args):
    with open("$work/requests", "a", encoding="utf-8") as file:
        print(json.dumps(request), file=file)
    made(self, torch, request, *args)


def declines(call):
    raise common.Unavailable("planted")


common.Call.__init__ = record
families = "rmsnorm", "gqa_ragged", "kda"
TABLES = (common.Table("torch", (common.Need(("torch",), "torch"),),
                       {family: common.Row(declines, cpu=True) for family in families}),)
END
REFTEST_PROVIDERS=$work/tables
export REFTEST_PROVIDERS
verify --backward --no-workloads --ground-truth torch,builtin
expect_exit 0
"$python" - "$work/requests" <<'END' || fail "a request differs"
import json
import sys

ATTENTION = {"q": "q", "k": "k", "v": "v", "qo_indptr": "qo_indptr", "kv_indptr": "kv_indptr", "scale": "sm_scale"}
DELTA = {"q": "q", "k": "k", "v": "v", "gate": "g", "beta": "beta", "scale": "scale", "state": "initial_state"}
EXPECTED = {
    "rmsnorm": ({"hidden": "hidden_states", "residual": "residual", "weight": "weight"},
                {"output": "output", "updated": "residual_out"}, []),
    "gqa_ragged": (ATTENTION, {"output": "output", "lse": "lse"}, ["causal"]),
    "kda": (DELTA, {"output": "output", "new_state": "final_state"}, ["v_first", "l2norm"]),
}
requests = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
for request in requests:
    found = request["roles"], request["output_roles"], request["modes"]
    if found != EXPECTED[request["family"]]:
        sys.exit("%s, gradients %s: %s" % (request["name"], request["gradients"], found))
assert {request["family"] for request in requests} == set(EXPECTED)
assert {request["gradients"] for request in requests if request["family"] == "kda"} == {False, True}
END

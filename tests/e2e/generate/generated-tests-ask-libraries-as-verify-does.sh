#!/bin/sh
# Generated tests and verify send the same request to a library, for both sets of input values: the same family, roles,
# modes, axes, constants, outputs and inputs. If an older version generated a test file and a user has edited it, the
# tests in it fail with a message that says what to do.
. "$(dirname "$0")/../harness.sh"
[ "$device" = cpu ] || skip "a GPU has its own choice of ground truths"
pytest_is_here
given fused_add_rmsnorm_h4096 gqa_ragged_prefill_causal_h10_kv2_d128 kda_recurrent_qk_l2norm_v_first_h2_hv4_d64 \
	gemm_n1024_k4096
rm -rf workloads
mkdir "$work/tables"
cat >"$work/tables/torch.py" <<END
import collections
import json
import zlib

import reftest_providers as common

FIELDS = "family", "name", "device_class", "axes", "constants", "roles", "output_roles", "outputs", "device"


def record(call):
    def bits(x):
        return x.contiguous().flatten().view(call.torch.uint8).tolist() if isinstance(x, call.torch.Tensor) else repr(x)

    request = {field: getattr(call, field) for field in FIELDS}
    request["outputs"] = [{key: x[key] for key in ("name", "dtype", "shape", "scalar")} for x in request["outputs"]]
    request["modes"] = sorted(call.modes)
    request["inputs"] = {name: zlib.crc32(str(bits(x)).encode()) for name, x in call.inputs.items()}
    with open("$work/requests", "a", encoding="utf-8") as file:
        print(json.dumps(request, sort_keys=True), file=file)
    if call.family in real:
        return real[call.family].call(call)
    shapes = {x["name"]: x["shape"] for x in call.outputs}
    return call.outputs_of(**{role: call.torch.zeros(shapes[name], device=call.device)
                              for role, name in call.output_roles.items()})


real = common.load("real_tables", "$top/python/libraries/torch.py").TABLES[0].rows
so_coarse_that_zeros_will_do = collections.defaultdict(lambda: (1e9, 1e9))
rows = {family: common.Row(record, cpu=True, coarse=None if family in real else so_coarse_that_zeros_will_do)
        for family in ("rmsnorm", "gqa_ragged", "kda", "gemm")}
TABLES = (common.Table("torch", (common.Need(("torch",), "torch"),), rows),)
END
REFTEST_PROVIDERS=$work/tables
export REFTEST_PROVIDERS
verify --sizes small --ground-truth torch,builtin
expect_exit 0
sort -u "$work/requests" >"$work/of_verify"
rm "$work/requests"
run generate
expect_exit 0
cp "$work/tables/torch.py" tests/references/reftest_libraries/torch.py
rm tests/references/reftest_libraries/[!ct]*.py
run_pytest -k 'numerical and small or independent'
expect_exit 0
sort -u "$work/requests" >"$work/of_tests"
expectations=$((expectations + 1))
[ "$(grep -c . "$work/of_tests")" -gt 8 ] || fail "generated tests call libraries less often than verify"
"$python" - "$work/of_verify" "$work/of_tests" <<'END' || fail "the requests of generated tests differ from those of verify"
import json
import sys

verify, tests = (dict.fromkeys(open(path, encoding="utf-8").read().splitlines()) for path in sys.argv[1:])
for line in tests:
    if line in verify:
        continue
    request = json.loads(line)
    near = [json.loads(x) for x in verify]
    near = [x for x in near if (x["name"], x["axes"]) == (request["name"], request["axes"])]
    sys.exit("%s: %s" % (request["name"], [(key, request[key], x[key]) for x in near for key in request if x[key] != request[key]] or "no such"))
END
cp "$top/tests/data/generated/older_version.py" tests/references/test_rmsnorm.py
echo '# mine' >>tests/references/test_rmsnorm.py
run_pytest tests/references/test_rmsnorm.py
expect_exit 2
expect_says "this conftest.py has no 'edge_cases': another version of reftest wrote the test file"

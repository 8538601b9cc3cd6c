#!/bin/sh
# On a machine with two GPUs or more, `--device cuda` uses all of them: each verifies a part of the starter dataset, and
# the verdicts are the same as on one GPU. `cuda:1` uses only the second GPU. If a GPU does not exist or is named twice,
# the command prints a one-line message. The test prints how many cases ran on each device, and how many seconds each of
# the two runs took.
#
#   sh tests/gpu/several-gpus-share-a-run.sh
. "$(dirname "$0")/../e2e/harness.sh"
gpus=$("$python" -c 'import torch; print(torch.cuda.device_count())')
[ "$gpus" -ge 2 ] || skip "there is no second GPU here"
cp -r "$top/definitions" "$top/workloads" "$top/blob" .

# Stores the verdict of each case in the file $1, without the fields that differ between GPUs or between runs.
keep() {
	"$python" -I -S - "$work/out" "$work/$1" <<'P'
import collections
import json
import sys

report = json.load(open(sys.argv[1]))
cases = {}
devices = collections.Counter()
for definition in report["definitions"]:
    for case in definition["cases"]:
        name = f"{definition['op_type']}/{definition['name']} {case['id']}"
        cases[name] = [case["status"], case["reason"], case["device_class"], case["ground_truth"], definition["status"]]
        devices[case["device"]] += 1
json.dump({"cases": cases, "devices": devices, "seconds": report["summary"]["seconds"]}, open(sys.argv[2], "w"))
print("#", sys.argv[2].rpartition("/")[2] + ":", f"{report['summary']['seconds']:.1f} s,",
      ", ".join(f"{count} cases on {device}" for device, count in sorted(devices.items())), file=sys.stderr)
P
}

run verify --format json --device cuda:0 --force
expect_exit 0
keep one 2>"$work/said" && cat "$work/said"
run verify --format json --device cuda --force
expect_exit 0
expect_silence_about ' is not used' 'is no longer used'
keep all 2>"$work/said" && cat "$work/said"
step="the verdicts of $gpus GPUs"
"$python" -I -S - "$work/one" "$work/all" "$gpus" <<'P' || fail "the verdicts or the devices are not those expected"
import json
import sys

one, several = (json.load(open(path)) for path in sys.argv[1:3])
different = [name for name in one["cases"].keys() | several["cases"].keys() if one["cases"].get(name) != several["cases"].get(name)]
for name in different[:10]:
    print("# differs:", name, one["cases"].get(name), several["cases"].get(name))
used = [device for device in several["devices"] if device.startswith("cuda:")]
print(f"# {len(one['cases'])} cases, {one['seconds'] / several['seconds']:.2f} times faster with {len(used)} GPUs")
sys.exit(bool(different) or len(used) != int(sys.argv[3]) or set(one["devices"]) != {"cuda:0"})
P

# A verdict of one GPU is accepted for all GPUs. --device also accepts a list of GPUs.
run verify --format json --device cuda
expect_exit 0
expect_ran 0
run verify --format json --device cuda:1,0 --sizes small --force rmsnorm_h4096 rmsnorm_h2048
expect_exit 0
run verify --format json --device cuda:1 --sizes small --force rmsnorm_h4096
expect_exit 0
expect "set(case['device'] for case in c.values()) == {'cuda:1'}"
run verify --device "cuda:0,$gpus" rmsnorm_h4096
expect_exit 3
expect_says "there is no cuda:$gpus"
run verify --device cuda:0,1,0 rmsnorm_h4096
expect_exit 2
expect_says '--device names cuda:0 twice'

# Another process takes the memory of one GPU. Cases that do not fit into the memory of this GPU run on another GPU, so
# all definitions pass.
cat >"$work/take.py" <<'P'
import sys
import torch

free, total = torch.cuda.mem_get_info(1)
kept = torch.empty(int(free) - (1 << 30), dtype=torch.uint8, device="cuda:1")
print("taken", flush=True)
sys.stdin.read()
P
mkfifo "$work/hold"
"$python" "$work/take.py" <"$work/hold" >"$work/taken" &
exec 9>"$work/hold"
for _ in $(seq 200); do
	! grep -q taken "$work/taken" || break
	sleep 0.1
done
run verify --format json --device cuda --force --sizes small --op-type rmsnorm --op-type gemm
exec 9>&-
wait
expect_exit 0
expect "s['definitions'] == s['passed'] == len(d)"

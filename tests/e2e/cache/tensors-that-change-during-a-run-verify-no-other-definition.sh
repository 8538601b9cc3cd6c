#!/bin/sh
# sanitizers: tests/run also runs this test with the sanitizers' build.
# The tensors of a definition are replaced while its reference runs. No verdict is stored for the case that runs, or for
# a second workload line with the same tensors. Another definition has the same subject digest (the digest of everything
# that a verdict is about, such as the reference and the tensors). It has its own copy of the tensors, which does not
# change. Its case runs and reuses no verdict.
. "$(dirname "$0")/../harness.sh"
with_gates
# `blob PATH right|wrong`: replaces the file. With `right`, the file's first value becomes 1. With `wrong`, the first
# value becomes 42, for which the references compute wrong outputs.
blob() {
	mkdir -p blob
	"$python" -I -S -c '
import json, os, struct, sys
first = {"right": 0x3F80, "wrong": 0x4228}[sys.argv[2]]
rows, weight = [first] + [0x3F80] * 255, [0x3F80] * 64
header = json.dumps({"x": {"dtype": "BF16", "shape": [4, 64], "data_offsets": [0, 512]},
                     "w": {"dtype": "BF16", "shape": [64], "data_offsets": [512, 640]}}).encode()
with open(sys.argv[1] + ".new", "wb") as out:
    out.write(struct.pack("<Q", len(header)) + header + struct.pack("<320H", *rows, *weight))
os.replace(sys.argv[1] + ".new", sys.argv[1])' "blob/$1" "$2"
}
lines() { # lines NAME PATH: writes two equal workload lines, and a last one without tensors
	mkdir -p workloads/rmsnorm
	random='{"type": "random"}'
	for id in 1 2; do
		echo "{'definition': '$1', 'workload': {'uuid': '$id', 'axes': {'batch_size': 4}, 'inputs':
			{'hidden_states': {'type': 'safetensors', 'path': 'blob/$2', 'tensor_key': 'x'},
			'weight': {'type': 'safetensors', 'path': 'blob/$2', 'tensor_key': 'w'}}},
			'solution': null, 'evaluation': null}" | tr -d '\n\t' | tr "'" '"'
		echo
	done >"workloads/rmsnorm/$1.jsonl"
	echo "{\"definition\": \"$1\", \"workload\": {\"uuid\": \"last\", \"axes\": {\"batch_size\": 5}, \"inputs\":
		{\"hidden_states\": $random, \"weight\": $random}}, \"solution\": null, \"evaluation\": null}" | tr -d '\n\t' \
		>>"workloads/rmsnorm/$1.jsonl"
}
for name in first second; do
	define $name <<END
import torch


def run(hidden_states, weight):
    if hidden_states.shape[0] in (1, 5):  # the first case and the last one
        gate("$work/started", "$work/go-%d" % hidden_states.shape[0])
    rows = hidden_states.float()
    normed = rows * torch.rsqrt(rows.square().mean(dim=-1, keepdim=True) + 1e-6)
    return (normed * weight.float() * (2 if rows[0, 0] == 42 else 1)).to(hidden_states.dtype)
END
done
for path in a.safetensors b.safetensors; do blob $path wrong; done
lines first a.safetensors
lines second b.safetensors
begin verify --format json --device "$device" --sizes small --jobs 1
started
blob a.safetensors right # replaced before it is read, because the cases of the size presets run first
: >"$work/go-1" && : >"$work/go-5"
ended
expect_exit 1
expect "d['first']['changed'] is True and not any(all_of('first', 'kept'))"
expect_status second failed numeric
expect "d['second']['changed'] is False and all(all_of('second', 'kept'))"
blob a.safetensors wrong
verify
expect_exit 1
expect_status first failed numeric
# The definitions `first` and `second` have the same subject digest. Therefore the verdict that was stored for `second`
# counts as an earlier verdict of `first`, and the reason for the new run is not "no verdict".
expect "not c['first', 'workload:1']['why'].startswith('no verdict')"

# The tensors are replaced and restored before the run ends, as if the user checked out another branch and came back. At
# the end of the run, the files have the content that was hashed, but the case ran with the replacement.
rm -r .reftest "$work/go-1" "$work/go-5"
begin verify --format json --device "$device" --sizes small --jobs 1 first
started
blob a.safetensors right
: >"$work/go-1"
started
blob a.safetensors wrong
: >"$work/go-5"
ended
expect_exit 3
expect "d['first']['changed'] is True and not any(all_of('first', 'kept'))"
verify first
expect_exit 1
expect_status first failed numeric

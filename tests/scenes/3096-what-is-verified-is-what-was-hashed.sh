#!/bin/sh
# 3096: a verdict on tensors is one on the very bytes that were hashed, whatever other bytes stood in their file while
# references ran, and came and went without a trace: stores through a mapping whose page is dirty move no time (3095). Neither
# does what would pass count for what fails, nor is what a reference left alone said to be changed by it.

# In memory no page is ever written out; on the disk of a busy machine it may be, and is clean then, so that times would move.
probe=$(mktemp -p /dev/shm 2>/dev/null) && {
	printf '#!/bin/sh\n' >"$probe"
	chmod +x "$probe"
	! "$probe" 2>/dev/null || TMPDIR=/dev/shm
	rm "$probe"
}
[ -z "${TMPDIR:-}" ] || export TMPDIR
. "$(dirname "$0")/scene.sh"
with_gates
${CC:-cc} -O1 -D_GNU_SOURCE -o "$work/mapped" "$top/tests/scenes/tools/mapped.c" || fail "mapped.c does not compile"
tensors=blob/rows.safetensors
mkdir -p blob workloads/rmsnorm
first=$("$python" -I -S -c '
import json, struct, sys
rows, weight = [0x4280] + [0x3F80] * 255, [0x3F80] * 64 # the first is 64, what the reference below gets wrong
header = json.dumps({"x": {"dtype": "BF16", "shape": [4, 64], "data_offsets": [0, 512]},
                     "w": {"dtype": "BF16", "shape": [64], "data_offsets": [512, 640]}}).encode()
with open(sys.argv[1], "wb") as out:
    out.write(struct.pack("<Q", len(header)) + header + struct.pack("<320H", *rows, *weight))
print(8 + len(header))' $tensors)
line() { # line ID ROWS INPUT INPUT
	echo "{'definition': 'norm', 'workload': {'uuid': '$1', 'axes': {'batch_size': $2}, 'inputs':
		{'hidden_states': $3, 'weight': $4}}, 'solution': null, 'evaluation': null}" | tr -d '\n\t' | tr "'" '"'
	echo
}
brought() { echo "{'type': 'safetensors', 'path': '$tensors', 'tensor_key': '$1'}"; }
random="{'type': 'random'}"
{
	line tensors 4 "$(brought x)" "$(brought w)"
	line last 5 "$random" "$random"
} >workloads/rmsnorm/norm.jsonl
define norm <<END
import torch


def run(hidden_states, weight):
    if hidden_states.shape[0] in (1, 4, 5):  # the first case, the one with tensors, the last
        gate("$work/started", "$work/go-%d" % hidden_states.shape[0])
    rows = hidden_states.float()
    normed = rows * torch.rsqrt(rows.square().mean(dim=-1, keepdim=True) + 1e-6)
    return (normed * weight.float() * (2 if rows[0, 0] == 64 else 1)).to(hidden_states.dtype)
END
writes() { # writes N: it has written its Nth byte, the upper one of the first number; no time has moved, but for the first
	before=$(stat -c '%y %z %s %i' $tensors)
	touch "$work/step$1"
	for _ in $(seq 500); do
		[ -e "$work/step$1" ] || break
		sleep 0.02
	done
	[ ! -e "$work/step$1" ] || fail "nothing is written"
	[ "$1" = 1 ] || [ "$(stat -c '%y %z %s %i' $tensors)" = "$before" ] ||
		skip "here a store through a mapping moves the times of $tensors each time"
}
maps() { # maps: somebody keeps the file mapped, and will write 64, 1, 64, …
	setsid "$work/mapped" $tensors $((first + 1)) "$work/step" B '?' B '?' B &
	mapper=$!
	sessions="$sessions $mapper"
	writes 1 # what stood there: the page is dirty now
}

maps
: >"$work/go-4"
begin verify --format json --device "$device" --sizes small --jobs 1
started # they are hashed: as what fails
writes 2
: >"$work/go-1"
started # at the last case: what passes was taken
writes 3
: >"$work/go-5"
ended
expect "c['norm', 'workload:tensors']['status'] != 'passed' and not c['norm', 'workload:tensors']['kept']"
expect_exit 3
expect "c['norm', 'workload:tensors']['reason'] == 'changed'"
expect "'$tensors' in c['norm', 'workload:tensors']['message']"
expect "d['norm']['changed'] is True"
verify
expect_exit 1
expect_status norm failed numeric
expect "not c['norm', 'workload:tensors']['cached'] and c['norm', 'workload:last']['status'] == 'passed'"

# Taken once more while it runs, as large tensors are
rm -r .reftest "$work/go-4"
REFTEST_KEPT_INPUTS=0
export REFTEST_KEPT_INPUTS
begin verify --format json --device "$device" --sizes small --jobs 1
started # at the case with tensors: it has them
writes 4
: >"$work/go-4"
ended
expect "c['norm', 'workload:tensors']['status'] == 'skipped' and not c['norm', 'workload:tensors']['kept']"
expect "c['norm', 'workload:tensors']['reason'] == 'changed' and d['norm']['changed'] is True"
writes 5
verify
expect_exit 1
expect_status norm failed numeric
kill $mapper

#!/bin/sh
# sanitizers: tests/run also runs this test with the sanitizers' build.
# A verdict about a tensor file is stored under the hash of the file's bytes. It must be a verdict about exactly these
# bytes, even if the file changes while references run. The file's timestamps may not show such a change, because a
# write to a dirty page of a mapping does not change them. If the reference passes with one content of the file and
# fails with another, the verdict "passed" is never stored for the content with which it fails. If the file changes
# during the run, reftest never reports that the reference changed its inputs.

# The test needs a page that stays dirty. On a disk, the kernel may write the page back, and then the next write to the
# page changes the file's timestamps. In tmpfs, no page is written back. Therefore the test uses /dev/shm if programs
# can run there.
probe=$(mktemp -p /dev/shm 2>/dev/null) && {
	printf '#!/bin/sh\n' >"$probe"
	chmod +x "$probe"
	! "$probe" 2>/dev/null || TMPDIR=/dev/shm
	rm "$probe"
}
[ -z "${TMPDIR:-}" ] || export TMPDIR
. "$(dirname "$0")/../harness.sh"
with_gates
${CC:-cc} -O1 -D_GNU_SOURCE -o "$work/mapped" "$top/tests/e2e/tools/mapped.c" || fail "mapped.c does not compile"
tensors=blob/rows.safetensors
mkdir -p blob workloads/rmsnorm
first=$("$python" -I -S -c '
import json, struct, sys
# The first value is 64, and the reference below gives a wrong result for this value.
rows, weight = [0x4280] + [0x3F80] * 255, [0x3F80] * 64
header = json.dumps({"x": {"dtype": "BF16", "shape": [4, 64], "data_offsets": [0, 512]},
                     "w": {"dtype": "BF16", "shape": [64], "data_offsets": [512, 640]}}).encode()
with open(sys.argv[1], "wb") as out:
    out.write(struct.pack("<Q", len(header)) + header + struct.pack("<320H", *rows, *weight))
print(8 + len(header))' $tensors)
line() { # line ID ROWS INPUT INPUT: writes a workload line
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
    if hidden_states.shape[0] in (1, 4, 5):  # the first case, the case with tensors, and the last case
        gate("$work/started", "$work/go-%d" % hidden_states.shape[0])
    rows = hidden_states.float()
    normed = rows * torch.rsqrt(rows.square().mean(dim=-1, keepdim=True) + 1e-6)
    return (normed * weight.float() * (2 if rows[0, 0] == 64 else 1)).to(hidden_states.dtype)
END
# `writes N`: lets the program `mapped` write the high byte of the first number for the Nth time, and waits for this
# write. Only the first write changes the file's timestamps.
writes() {
	before=$(stat -c '%y %z %s %i' $tensors)
	touch "$work/step$1"
	for _ in $(seq 500); do
		[ -e "$work/step$1" ] || break
		sleep 0.02
	done
	[ ! -e "$work/step$1" ] || fail "the mapping program did not write"
	[ "$1" = 1 ] || [ "$(stat -c '%y %z %s %i' $tensors)" = "$before" ] ||
		skip "on this filesystem each store through a mapping changes the times of $tensors"
}
maps() { # maps: starts a program that maps the file and will write 64, 1, 64, …
	setsid "$work/mapped" $tensors $((first + 1)) "$work/step" B '?' B '?' B &
	mapper=$!
	sessions="$sessions $mapper"
	writes 1 # stores the byte that is already there; the page is dirty now
}

maps
: >"$work/go-4"
begin verify --format json --device "$device" --sizes small --jobs 1
started # the tensors were hashed with the failing content
writes 2
: >"$work/go-1"
started # at the last case: the tensors were read with the passing content
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

# Now the tensors count as too large to be kept in memory while the reference runs, so reftest reads them twice. The
# file changes between the two reads.
rm -r .reftest "$work/go-4"
REFTEST_KEPT_INPUTS=0
export REFTEST_KEPT_INPUTS
begin verify --format json --device "$device" --sizes small --jobs 1
started # at the case with tensors, whose tensors have been read
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

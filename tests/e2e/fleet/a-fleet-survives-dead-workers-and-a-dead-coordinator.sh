#!/bin/sh
# own interpreter: the test checks how processes end.
# The coordinator of a fleet (python/reftest_ray) runs with workers on this machine and without Ray. The coordinator's
# output and exit status are those of `reftest verify`, and a second run executes no cases. If a worker is killed, no
# verdict is lost. If the coordinator is killed, the next run continues from the stored verdicts. The rules of
# scheduling are tested in tests/fleet_scheduling.py.
. "$(dirname "$0")/../harness.sh"
step=tests/fleet_scheduling.py
"$python" "$top/tests/fleet_scheduling.py" >"$work/out" 2>"$work/err" && status=0 || status=$?
expect_exit 0
given tiny_norm tiny_gemm
with_gates
gated='import torch

def run(hidden_states, weight):
    gate("started", "go")
    x = hidden_states.float()
    return (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight.float()).to(hidden_states.dtype)'
printf '%s\n' "$gated" | define waits
program_of_tests=$reftest
cat >"$work/reftest-ray" <<W
#!/bin/sh
PYTHONPATH="$top/python/reftest_ray" exec "$python" -B -m reftest_ray --local --gpus 0 --jobs 1 --reftest "$reftest" \
	--sizes small "\$@"
W
chmod +x "$work/reftest-ray"

# `fleet COMMAND ARGUMENT…`: calls the function COMMAND of harness.sh, so that it runs the coordinator instead of
# reftest.
fleet() {
	reftest=$work/reftest-ray
	"$@"
	reftest=$program_of_tests
}

# `stored`: prints the number of verdicts in the cache.
stored() { "$reftest" cache stats --format json 2>/dev/null | "$python" -I -S -c 'import json, sys; print(json.load(sys.stdin)["verdicts"])'; }

# The worker is killed while the reference of `waits` runs. Another worker takes over the requests of the killed worker.
fleet begin --workers 1
fleet started
worker=$(cat /proc/[0-9]*/stat 2>/dev/null | awk -v parent="$program" '{ id = $1; sub(/^.*\) /, ""); if ($2 == parent) print id }' |
	while read -r id; do ! tr '\0' ' ' <"/proc/$id/cmdline" 2>/dev/null | grep -q ' work ' || echo "$id"; done)
[ -n "$worker" ] || fail "there is no worker"
kill -9 "$worker"
touch "$work/go"
ended
expect_exit 0
expect_says 'worker 1 died (' '); its requests are sent to other workers' '3 definitions: 3 passed; 0 cases run'
all=$(stored)

# A second run executes no cases, and prints what verify prints.
fleet run --workers 1
expect_exit 0
expect_says '3 definitions: 3 passed; 0 cases run' 'workers answered 0 requests'

# The coordinator is killed when only the definition `waits` is left to verify. The finished verdicts are stored, the
# workers end, and the next run executes the remaining cases. A wrong reference fails as it does in `reftest verify`.
printf '%s\n' "$gated" | sed 's/1e-6/1e-2/; /gate/d' | define wrong
rm -rf .reftest "$work/go"
fleet begin --workers 1 --op-type gemm
ended
expect_exit 0
some=$(stored)
fleet begin --workers 1
fleet started
kill -9 "$program"
ended
expect_no_process
early=$(stored)
[ "$early" -ge "$some" ] || fail "$early verdicts are stored, fewer than $some"
touch "$work/go"
fleet run --workers 2 -q
expect_exit 1
expect_says 'FAILED   rmsnorm/wrong' '4 definitions: 3 passed, 1 failed; 0 cases run'
[ "$(stored)" -gt "$all" ] && [ "$(stored)" -gt "$early" ] ||
	fail "$(stored) verdicts are stored, not more than $all, or not more than the $early before"

# If the workers' Python has no torch, the run ends with a message.
"$python" -m venv --without-pip "$work/bare"
rm -rf .reftest
fleet run --workers 1 --python "$work/bare/bin/python"
expect_exit 3
expect_says 'no worker can start'
expect_no_process

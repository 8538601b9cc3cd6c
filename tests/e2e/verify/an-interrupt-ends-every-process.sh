#!/bin/sh
# own interpreter: the test checks how processes end.
# If the user presses Ctrl-C while a reference loops forever, the program ends with exit status 130, leaves no process,
# and stores the verdicts of the finished cases. The next run uses the stored verdicts and runs only the remaining
# cases.
. "$(dirname "$0")/../harness.sh"
with_gates
given tiny_gemm
define loops <<END
def run(hidden_states, weight):
    tell_started()
    while True:
        pass
END
begin verify --format json --device "$device" --sizes small --jobs 1
started
kill -INT $program
ended
expect_exit 130
expect "s['interrupted'] is True"
expect_no_process
verify tiny_gemm
expect_exit 0
expect_ran 0

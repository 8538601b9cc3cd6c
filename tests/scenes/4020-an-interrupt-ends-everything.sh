#!/bin/sh
# 4020: Ctrl-C while a reference loops for ever ends the program with 130, leaves no process, and keeps what was verified
# before; a second run goes on from there.
. "$(dirname "$0")/scene.sh"
given tiny_gemm
define loops <<END
def run(hidden_states, weight):
    open("$work/started", "w").close()
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

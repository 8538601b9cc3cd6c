#!/bin/sh
# If several cases of a run are equal, only one of them runs, and the others share its verdict. The other cases do not
# count as cached. With --force or in a first run, no case counts as cached.
. "$(dirname "$0")/../harness.sh"
given tiny_norm
sed 's/"tiny_norm"/"same_norm"/' definitions/rmsnorm/tiny_norm.json >definitions/rmsnorm/same_norm.json
rm -r workloads blob
text() { run verify --device "$device" --sizes small --jobs 1 "$@"; }
text
expect_exit 0
expect_says 'same_norm  2 cases, margin' 'tiny_norm  2 cases (2 shared), margin' '2 cases run, 0 cached, 2 shared;'
text --force
expect_exit 0
expect_says '2 cases run, 0 cached, 2 shared;'
text
expect_says 'tiny_norm  2 cases (2 cached), margin' '0 cases run, 4 cached;'
expect_silence_about shared
verify --force
expect "s['cases_run'] == 2 and s['cases_cached'] == 2 and s['cases_shared'] == 2"
verify
expect "s['cases_run'] == 0 and s['cases_cached'] == 4 and s['cases_shared'] == 0"
edit definitions/rmsnorm/tiny_norm.json 'EPSILON = 1e-6' 'EPSILON = 1e-3'
edit definitions/rmsnorm/same_norm.json 'EPSILON = 1e-6' 'EPSILON = 1e-3'
text --force
expect_exit 1
expect_says 'FAILED   rmsnorm/same_norm' 'FAILED   rmsnorm/tiny_norm'
expect_silence_about remembered
text
expect_says remembered

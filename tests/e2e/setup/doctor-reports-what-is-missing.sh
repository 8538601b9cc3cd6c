#!/bin/sh
# own interpreter: the test starts interpreters with another torch or other settings.
# The command `doctor` lists the programs, libraries and devices that reftest needs or can use, and says which of them
# this machine has. If the Python interpreter lacks torch, or the kernels library is missing, doctor reports that,
# prints a command that repairs it, and exits with 3.
. "$(dirname "$0")/../harness.sh"
given tiny_norm
run doctor --format json
expect_exit 0
expect "r['schema'] == 1 and r['ready'] is True"
expect "{'python', 'torch', 'kernels', 'cuda kernels', 'nvcc', 'gpu driver', 'cache', 'inotify', 'jobs'} <= {x['name'] for x in r['checks']}"
expect "all(x['state'] == 'ok' for x in r['checks'] if x['needed'])"
expect "all(x['found'] for x in r['checks'])"
[ ! -e .reftest ] || fail "doctor left a file behind"
run doctor
expect_exit 0
expect_says 'Everything that verification'
expect_says 'only with --ground-truth NAME or all: activation, gemma_rmsnorm' 'no kernel for cascade, '

"$python" -m venv --without-pip "$work/bare"
no_torch=$work/bare/bin/python
run doctor --format json --python "$no_torch"
expect_exit 3
expect "not r['ready']"
expect "[x['state'] for x in r['checks'] if x['name'] == 'torch'] == ['missing']"
expect "all(x['mend'] for x in r['checks'] if x['state'] == 'missing')"
run doctor --python /no/such/python
expect_exit 3
expect_says 'missing' 'repair it with'
mkdir "$work/empty"
REFTEST_KERNELS=$work/empty
export REFTEST_KERNELS
run doctor --format json
expect_exit 3
expect "[x['state'] for x in r['checks'] if x['name'] == 'kernels'] == ['missing']"
unset REFTEST_KERNELS
run doctor --frmat json
expect_exit 2
run doctor tiny_norm
expect_exit 2

#!/bin/sh
# A reference that appends to one of two caches in place, and to a copy of the other, fails in verify and in the
# generated tests. A reference that appends to both caches, or to copies of both, passes.
. "$(dirname "$0")/../harness.sh"
pytest_is_here
name=append_paged_kv_cache_kv8_d128_ps16
sentence="the reference wrote to its input 'k_cache' but left its input 'v_cache' unchanged"
check() { # check STATUS: runs verify and the generated tests, both of which must exit with this status
	verify --no-workloads $name
	expect_exit "$1"
	[ "$1" = 0 ] || expect_says "$sentence"
	run generate
	expect_exit 0
	run_pytest -k inputs_are_kept
	expect_exit "$1"
	[ "$1" = 0 ] || expect_says "$sentence"
}
given $name
check 0
edit definitions/page/$name.json '    real = batch' '    v_cache = v_cache.clone()\n    real = batch'
check 1
edit definitions/page/$name.json '    v_cache = v_cache.clone()' '    k_cache, v_cache = k_cache.clone(), v_cache.clone()'
check 0

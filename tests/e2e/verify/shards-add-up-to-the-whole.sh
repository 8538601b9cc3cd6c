#!/bin/sh
# N shards, each with its own cache, together verify every definition exactly once. Their verdicts are merged, either by
# export and import or through the remote. Afterwards `verify` without --shard runs no case, and reports the same result
# as a run that verified everything itself. A shard to which no definition belongs says so, and exits with 0. Each
# invalid definition is reported by exactly one shard.
. "$(dirname "$0")/../harness.sh"
. "$top/tests/e2e/remotes.sh"
given tiny_norm tiny_gemm
cp definitions/rmsnorm/tiny_norm.json definitions/rmsnorm/twin.json # the same subjects under another name
edit definitions/rmsnorm/twin.json '"name": "tiny_norm"' '"name": "twin"'
define wrong <<'END'
def run(hidden_states, weight):
    return hidden_states
END
echo '{ "name": "broken"' >definitions/gemm/broken.json
verify --sizes small,medium
expect_exit 2
whole() { value "sorted((n, i, k['status'], k['reason'], k['elements'] if 'elements' in k else None) for (n, i), k in c.items())"; }
all=$(value "len(c)")
whole >"$work/whole"
value "sorted((n, x['status'], x['reason']) for n, x in d.items())" >"$work/definitions"
cp -r definitions "$work/definitions.all"

redis_begins
shards=5 sum=0 empty=0 left_out=
: >"$work/cases" >"$work/bad"
for shard in $(seq $shards); do
	mkdir "$work/node$shard"
	cp -r definitions workloads "$work/node$shard"
	[ ! -d blob ] || cp -r blob "$work/node$shard"
	cd "$work/node$shard"
	verify --sizes small,medium --shard "$shard/$shards" --force
	sum=$((sum + $(value "len(c)")))
	value "'\n'.join(n + ' ' + i for n, i in c)" >>"$work/cases"
	value "'\n'.join(n for n, x in d.items() if x['status'] == 'invalid')" >>"$work/bad"
	expect "s['shard'] == '$shard/$shards'"
	if [ "$(value "len(d)")" = 0 ]; then
		empty=$((empty + 1))
		expect_exit 0
	fi
	[ "$(value "any(n != 'wrong' for n, i in c)")" = False ] || left_out=$shard
	"$reftest" cache export "$work/shard$shard" >/dev/null
done
[ "$sum" = "$all" ] || fail "the shards verified $sum cases, and the whole run $all"
[ -z "$(grep . "$work/cases" | sort | uniq -d)" ] || fail "two shards reported $(sort "$work/cases" | uniq -d)"
[ "$(grep -c . "$work/bad")" = 1 ] || fail "the invalid definition was not reported by exactly one shard: $(cat "$work/bad")"

merged() { # merged: expects that, after any kind of merge, the run without shards reports the expected result
	verify --sizes small,medium --cached-only
	expect_exit 2
	expect_ran 0
	whole | cmp -s - "$work/whole" || fail "$step: the result differs from the unsharded run's: $(whole)"
	value "sorted((n, x['status'], x['reason']) for n, x in d.items())" | cmp -s - "$work/definitions" ||
		fail "$step: the states differ from the unsharded run's"
}
mkdir "$work/head"
cp -r definitions workloads "$work/head"
[ ! -d blob ] || cp -r blob "$work/head"
cd "$work/head"
merged # the verdicts are merged through the remote
forget
unset REFTEST_REMOTE
run cache import "$work"/shard[0-9]
expect_exit 0
merged

# The verdicts of one shard are not imported, so the run without --shard exits with 3, even if every shard passed.
rm definitions/gemm/broken.json definitions/rmsnorm/wrong.json
forget
rm "$work/shard$left_out"
run cache import "$work"/shard[0-9]
verify --sizes small,medium --cached-only
expect_exit 3

# There are more shards than definitions, so most shards have no definition. The runs of these shards say so, and exit with 0.
for shard in 1 2 3 4 5 6 7 8 9; do
	run verify --device "$device" --sizes small --cached-only --shard "$shard/9" tiny_gemm
	grep -q 'all definitions belong to other shards' "$work/out" || continue
	expect_exit 0
	empty=$((empty + 1))
done
[ "$empty" -ge 6 ] || fail "only $empty shards had nothing to do"
verify --shard 0/4
expect_exit 2
expect_says 'numbered from 1'
end_servers

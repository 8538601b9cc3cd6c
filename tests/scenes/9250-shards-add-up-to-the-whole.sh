#!/bin/sh
# 9250: N shards, each with a cache of its own, run every case exactly once between them; what they exported, or what the
# remote has of them, answers the whole run as the whole run itself did. A shard without a case exits 0 and says so; bad
# definitions and lines are told by one shard each.
. "$(dirname "$0")/scene.sh"
. "$top/tests/scenes/remotes.sh"
given tiny_norm tiny_gemm
cp definitions/rmsnorm/tiny_norm.json definitions/rmsnorm/twin.json # equal subjects under another name
edit definitions/rmsnorm/twin.json '"name": "tiny_norm"' '"name": "twin"'
define wrong <<'END'
def run(hidden_states, weight):
    return hidden_states
END
echo '{ "name": "broken"' >definitions/gemm/broken.json
verify --sizes small,medium
expect_exit 2
whole() { value "sorted((n, i, k['status'], k['reason'], k['elements'] if 'elements' in k else None) for (n, i), k in c.items())"; }
ran=$(value "s['cases_run']")
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
	verify --sizes small,medium --shard "$shard/$shards" --force # for itself: nothing is taken from the others
	sum=$((sum + $(value "s['cases_run']")))
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
[ "$sum" = "$ran" ] || fail "the shards ran $sum cases, and the whole run $ran"
[ -z "$(grep . "$work/cases" | sort | uniq -d)" ] || fail "two shards told of $(sort "$work/cases" | uniq -d)"
[ "$(grep -c . "$work/bad")" = 1 ] || fail "not one shard told of the broken definition: $(cat "$work/bad")"

merged() { # by whatever was brought together the whole is answered as it was
	verify --sizes small,medium --cached-only
	expect_exit 2
	expect_ran 0
	whole | cmp -s - "$work/whole" || fail "$step: another result than the unsharded run's: $(whole)"
	value "sorted((n, x['status'], x['reason']) for n, x in d.items())" | cmp -s - "$work/definitions" ||
		fail "$step: other states than the unsharded run's"
}
mkdir "$work/head"
cp -r definitions workloads "$work/head"
[ ! -d blob ] || cp -r blob "$work/head"
cd "$work/head"
merged # through the remote
forget
unset REFTEST_REMOTE
run cache import "$work"/shard[0-9]
expect_exit 0
merged

# What no shard ran is missed by the merged run, whatever the shards' own exit codes were.
rm definitions/gemm/broken.json definitions/rmsnorm/wrong.json
forget
rm "$work/shard$left_out"
run cache import "$work"/shard[0-9]
verify --sizes small,medium --cached-only
expect_exit 3

# More shards than cases: most get none. Their exit code is 0 and they say why; that of a selection without cases is 3.
for shard in 1 2 3 4 5 6 7 8 9; do
	run verify --device "$device" --sizes small --cached-only --shard "$shard/9" tiny_gemm
	grep -q 'every case falls to another shard' "$work/out" || continue
	expect_exit 0
	empty=$((empty + 1))
done
[ "$empty" -ge 6 ] || fail "only $empty shards had nothing to do"
verify --shard 0/4
expect_exit 2
expect_says 'counted from 1'
end_servers

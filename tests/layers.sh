#!/bin/sh
# Holds the arrows of the house (ARCHITECTURE.md, "Who may include whom"): prints a line for each #include that breaks a
# rule, then plants one fault of every kind in a copy of the sources and wants to see each found.
#
#   - a room includes itself, base, and what the table below says; "reftest.h" is for commands alone
#   - an op family is a room of its own: no other file of kernels/ includes from its folder, nor does it from another's
#   - includes of ours are written "room/noun.h", and x.c begins with its own x.h if there is one
set -eu
export LC_ALL=C
cd "$(dirname "$0")/.."

# broken ROOT: a line for each broken rule below ROOT
broken() {
	(
		cd "$1"
		find base dataset cache plan workers watcher git kernels artifacts remote seal commands reftest.[ch] \
			\( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' \) 2>/dev/null | sort | xargs awk '
		BEGIN {
			may["base"] = " base "
			may["watcher"] = " base watcher "
			may["git"] = " base git "
			may["dataset"] = " base dataset "
			may["cache"] = " base dataset cache "
			may["plan"] = " base dataset cache plan "
			may["kernels"] = " base kernels "
			may["workers"] = " base dataset kernels workers "
			may["artifacts"] = " base dataset cache artifacts "
			may["remote"] = " base remote "
			may["seal"] = " base seal "
			may["commands"] = " base dataset cache plan workers watcher git kernels artifacts remote seal commands "
			may["reftest.c"] = may["reftest.h"] = may["commands"]
			split("ops.inc kernels_digest.h templates.inc templates_digest.h", words, " ") # written by make
			for (i in words)
				derived[words[i]] = 1
		}
		function family(path) { return split(path, part, "/") == 3 && part[1] == "kernels" ? part[2] : "" }
		function fault(why) { printf "%s:%d: %s\n", FILENAME, FNR, why }
		FNR == 1 {
			split(FILENAME, part, "/")
			room = part[1]
			own = FILENAME
			sub(/\.c$/, ".h", own)
			if (own == FILENAME || (getline line < own) <= 0)
				own = ""
			else
				close(own)
			first = 1
		}
		/^[ \t]*#[ \t]*include[ \t]*"/ {
			target = $0
			sub(/^[^"]*"/, "", target)
			sub(/".*/, "", target)
			if (target in derived)
				next
			if (first && own != "" && target != own)
				fault("its own header \"" own "\" comes first")
			first = 0
			if (target == "reftest.h") {
				if (room !~ /^(commands|reftest\.c)$/)
					fault("\"reftest.h\" is for commands/ alone")
				next
			}
			split(target, part, "/")
			if (target !~ /^[a-z]+\/.*\.(h|cuh)$/ || !(part[1] in may))
				fault("\"" target "\" is not written as \"room/noun.h\"")
			else if (index(may[room], " " part[1] " ") == 0)
				fault(room "/ may not include from " part[1] "/")
			else if (family(target) != "" && family(target) != family(FILENAME))
				fault("nothing outside kernels/" family(target) "/ may include from it")
		}'
	)
}

passed=0 failed=0
check() { # check SENTENCE COMMAND…
	sentence=$1
	shift
	if "$@"; then
		passed=$((passed + 1))
		echo "ok - layers: $sentence"
	else
		failed=$((failed + 1))
		echo "not ok - layers: $sentence"
	fi
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

none_broken() {
	broken . >"$scratch/found"
	cat "$scratch/found" >&2
	[ ! -s "$scratch/found" ]
}

# planted FILE LINE: is the fault found when LINE is put before the includes of FILE?
planted() {
	cp -r base watcher git dataset cache plan workers kernels artifacts remote seal commands reftest.[ch] "$scratch/tree/"
	{
		printf '%s\n' "$2"
		cat "$1"
	} >"$scratch/tree/$1" 2>/dev/null
	broken "$scratch/tree" >"$scratch/found"
	rm -rf "$scratch/tree"/*
	grep -q "^$1:1: " "$scratch/found"
}
mkdir "$scratch/tree"

check "every include follows the arrows" none_broken
check "base including from cache is found" planted base/hash.h '#include "cache/store.h"'
check "watcher including from dataset is found" planted watcher/settle.h '#include "dataset/dataset.h"'
check "git including from dataset is found" planted git/index.h '#include "dataset/dataset.h"'
check "dataset including from kernels is found" planted dataset/verdict.h '#include "kernels/op.h"'
check "plan including from workers is found" planted plan/plan.h '# include "workers/pool.h"'
check "workers including from cache is found" planted workers/job.h '#include "cache/store.h"'
check "kernels including from dataset is found" planted kernels/op.h '#include "dataset/definition.h"'
check "artifacts including from kernels is found" planted artifacts/test_file.h '#include "kernels/op.h"'
check "remote including from cache is found" planted remote/remote.h '#include "cache/portable.h"'
check "seal including from remote is found" planted seal/seal.h '#include "remote/frame.h"'
check "a room including reftest.h is found" planted cache/store.h '#include "reftest.h"'
check "one family including from another is found" planted kernels/rope/inputs.h '#include "kernels/gemm/inputs.h"'
check "the room including from a family is found" planted kernels/op.h '#include "kernels/gemm/inputs.h"'
check "an include that does not name its room is found" planted base/err.h '#include "buf.h"'
check "a header that does not come first is found" planted base/buf.c '#include "base/arena.h"'
echo "1..$((passed + failed))"
[ "$failed" = 0 ]

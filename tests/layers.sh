#!/bin/sh
# layers - checks which module may include which (docs/architecture.md, "Modules"). Prints a line for each #include that
# breaks a rule. The script then plants a violation of each kind in a copy of the sources, and checks that each
# violation is found.
#
#   - A module may include itself and the modules that the table below lists for it. A folder inside a module, such as
#     watcher/fs, is a separate module if the table lists it. A new module needs a row in the table.
#   - An op family is a module. No other file of kernels/ includes a file from the family's folder, and the family
#     includes no file from another family's folder.
#   - There is no cycle of includes. This rule counts x.c, x.h, x_internal.h and x.cuh as one file, and x.cu (the CUDA
#     code) as a second file.
#   - An #include of a file of reftest states the path from the root, "module/noun.h". If x.c has an x.h of its own, x.c
#     includes it first.
set -eu
export LC_ALL=C
cd "$(dirname "$0")/.."

sources='base cache check cli dataset engine extract fleet git kernels models remote report repos serve testgen watcher web workers reftest.c'

# `broken ROOT`: prints a line for each broken rule below ROOT.
broken() {
	(
		cd "$1"
		# shellcheck disable=SC2086 # a list of words
		find $sources \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' \) 2>/dev/null | sort | xargs awk '
		BEGIN {
			low = " base "
			may["base"] = low
			may["git"] = low "git "
			may["repos"] = low "git repos "
			may["serve"] = low "serve "
			may["web"] = low "dataset kernels/core models web "
			may["dataset"] = low "dataset "
			may["check"] = low "dataset check "
			may["cache"] = low "dataset cache "
			may["kernels/core"] = low "kernels/core "
			may["extract"] = low "cache dataset kernels/core models extract "
			may["models"] = low "dataset kernels/core models "
			may["kernels/common"] = low "kernels/core kernels/common "
			may["kernels"] = low "kernels/core kernels/common kernels "
			may["watcher/fs"] = low "watcher/fs "
			may["workers/protocol"] = low "dataset kernels/core workers/protocol "
			may["workers/judge"] = low "dataset kernels/core workers/protocol workers/judge "
			may["workers/sandbox"] = " workers/sandbox "
			may["workers/pool"] = low "dataset workers/protocol workers/sandbox workers/pool "
			may["remote"] = low "cache remote "
			engine = low "cache dataset git kernels/core models remote repos workers/protocol workers/judge workers/pool workers/sandbox engine "
			may["engine"] = engine
			may["report"] = low "dataset engine report "
			may["testgen"] = engine "testgen "
			may["watcher"] = engine "report testgen watcher watcher/fs "
			may["fleet"] = engine "fleet "
			may["cli"] = may["watcher"] "fleet check extract models cli serve web "
			may["reftest.c"] = may["cli"]
			# headers that make generates
			split("ops.inc kernels_digest.h libraries.inc packages.inc scripts.inc templates.inc shipped_digest.h summary_digest.h library_digests.h", words, " ")
			for (i in words)
				derived[words[i]] = 1
		}
		function family(path) {
			return split(path, part, "/") == 3 && part[1] == "kernels" && part[2] != "core" ? part[2] : ""
		}
		function module(path) {
			split(path, part, "/")
			return (part[1] "/" part[2]) in may ? part[1] "/" part[2] : part[1]
		}
		function fault(why) { printf "%s:%d: %s\n", FILENAME, FNR, why }
		FNR == 1 {
			here = module(FILENAME)
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
			if (target !~ /^[a-z]+\/.*\.(h|cuh)$/ || !(module(target) in may))
				fault("\"" target "\" is not written as \"module/noun.h\"")
			else if (index(may[here], " " module(target) " ") == 0)
				fault(here "/ may not include from " module(target) "/")
			else if (family(target) != "" && family(target) != family(FILENAME))
				fault("nothing outside kernels/" family(target) "/ may include from it")
		}'
	)
}

# `cycles ROOT`: prints a line for each file below ROOT that includes itself through other files.
cycles() {
	(
		cd "$1"
		# shellcheck disable=SC2086 # a list of words
		find $sources \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' \) 2>/dev/null | sort | xargs awk '
		function unit(path) {
			sub(/(_internal)?\.(c|h|cuh)$/, "", path)
			return path
		}
		/^[ \t]*#[ \t]*include[ \t]*"[a-z]+\// {
			target = $0
			sub(/^[^"]*"/, "", target)
			sub(/".*/, "", target)
			if (unit(target) != unit(FILENAME))
				print unit(FILENAME), unit(target)
		}' | sort -u | tsort 2>&1 >/dev/null | sed -n 's/^tsort: \([^:]*\)$/\1 includes itself through others/p'
	)
}

passed=0 failed=0
check() { # check SENTENCE COMMAND…: prints a line of TAP for the command
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

# `planted FILE LINE`: puts LINE before the includes of FILE, and succeeds if the violation is found.
planted() {
	# shellcheck disable=SC2086 # a list of words
	cp -r $sources "$scratch/tree/"
	{
		printf '%s\n' "$2"
		cat "$1"
	} >"$scratch/tree/$1" 2>/dev/null
	broken "$scratch/tree" >"$scratch/found"
	rm -rf "$scratch/tree"/*
	grep -q "^$1:1: " "$scratch/found"
}
mkdir "$scratch/tree"

no_cycle() {
	cycles . >"$scratch/found"
	cat "$scratch/found" >&2
	[ ! -s "$scratch/found" ]
}

# `cycle_planted FILE LINE`: puts LINE before the includes of FILE, and succeeds if the cycle is found.
cycle_planted() {
	# shellcheck disable=SC2086 # a list of words
	cp -r $sources "$scratch/tree/"
	printf '%s\n' "$2" | cat - "$1" >"$scratch/tree/$1"
	cycles "$scratch/tree" >"$scratch/found"
	rm -rf "$scratch/tree"/*
	grep -q "^${1%.*} " "$scratch/found"
}

check "no file includes itself through others" no_cycle
check "a cycle in engine/ is found" cycle_planted engine/definition_files.h '#include "engine/run.h"'
check "a cycle in an op family's shared code is found" cycle_planted kernels/common/attention/roles.h '#include "kernels/common/attention/input_values.h"'
check "every include follows the arrows" none_broken
check "base including from cache is found" planted base/hash.h '#include "cache/store.h"'
check "watcher/fs including from dataset is found" planted watcher/fs/settle.h '#include "dataset/dataset.h"'
check "watcher/fs including from watcher is found" planted watcher/fs/settle.h '#include "watcher/batches.h"'
check "git including from dataset is found" planted git/index.h '#include "dataset/dataset.h"'
check "web including from engine is found" planted web/models_file.h '#include "engine/run.h"'
check "serve including from engine is found" planted serve/rpc.h '#include "engine/run.h"'
check "repos including from dataset is found" planted repos/checkout.h '#include "dataset/dataset.h"'
check "check including from engine is found" planted check/findings.h '#include "engine/run.h"'
check "dataset including from kernels is found" planted dataset/verdict.h '#include "kernels/core/op.h"'
check "the pool including from the judge is found" planted workers/pool/pool.h '# include "workers/judge/trial.h"'
check "the judge including from the pool is found" planted workers/judge/trial.h '#include "workers/pool/pool.h"'
check "the sandbox including from base is found" planted workers/sandbox/sandbox.h '#include "base/err.h"'
check "the judge including from the sandbox is found" planted workers/judge/trial.h '#include "workers/sandbox/sandbox.h"'
check "workers including from cache is found" planted workers/protocol/job.h '#include "cache/store.h"'
check "kernels including from dataset is found" planted kernels/core/op.h '#include "dataset/definition.h"'
check "remote including from engine is found" planted remote/remote_store.h '#include "engine/run.h"'
check "engine including from watcher is found" planted engine/run.h '#include "watcher/client.h"'
check "engine including from report is found" planted engine/run.h '#include "report/text.h"'
check "engine including from cli is found" planted engine/cases.h '#include "cli/options.h"'
check "report including from watcher is found" planted report/text.h '#include "watcher/watch_output.h"'
check "testgen including from watcher is found" planted testgen/update.h '#include "watcher/watch_output.h"'
check "watcher including from cli is found" planted watcher/batches.h '#include "cli/options.h"'
check "one family including from another is found" planted kernels/rope/input_values.h '#include "kernels/gemm/input_values.h"'
check "kernels/core including from a family is found" planted kernels/core/op.h '#include "kernels/gemm/input_values.h"'
check "kernels/core including from kernels/common is found" planted kernels/core/op.h '#include "kernels/common/norm/rms.h"'
check "the engine including from a family is found" planted engine/cases.h '#include "kernels/gemm/input_values.h"'
check "an include that does not name its module is found" planted base/err.h '#include "buf.h"'
check "a header that does not come first is found" planted base/buf.c '#include "base/arena.h"'
echo "1..$((passed + failed))"
[ "$failed" = 0 ]

#!/bin/sh
# fuzz - runs fuzz targets in parallel, each for SECONDS seconds of processor time. Prints the output of each target
# when the target ends. Exits with 1 if a target found a fault. Usage: fuzz.sh ENGINE PROGRAM TARGET|all SECONDS JOBS
set -eu
engine=$1 program=$2 wanted=$3 seconds=$4 jobs=$5
corpus=tests/fuzz/corpus

one() { # one TARGET: runs one target; xargs below starts this script with the word "one"
	case $engine in
	driver) "$program" "$1" "$seconds" ;;
	libfuzzer)
		seeds=$(mktemp -d)
		# libFuzzer measures elapsed time. Elapsed time equals processor time here, because each job has its own
		# processor.
		# shellcheck disable=SC2046 # unquoted: if there is no corpus, no argument is passed
		FUZZ_TARGET=$1 "$program" -max_total_time="$seconds" -max_len=8192 -print_final_stats=1 -verbosity=0 \
			-artifact_prefix="fuzz-$1-" "$seeds" $([ ! -d "$corpus/$1" ] || echo "$corpus/$1") &&
			rm -r "$seeds"
		;;
	esac
}

if [ "$jobs" = one ]; then
	log=$(mktemp)
	if one "$wanted" >"$log" 2>&1; then
		[ "$engine" = driver ] && cat "$log" || printf '%s: %s\n' "$wanted" "$(grep -o 'number_of_executed_units: [0-9]*' "$log")"
		rm "$log"
		exit 0
	fi
	cat "$log"
	rm "$log"
	exit 1
fi
if [ "$wanted" = all ]; then
	wanted=$(sed -n 's/^    {"\([a-z0-9_]*\)", feed_.*/\1/p' tests/fuzz/targets.c)
fi
# shellcheck disable=SC2086 # unquoted: each target is a word
printf '%s\n' $wanted | xargs -P "$jobs" -I TARGET "$0" "$engine" "$program" TARGET "$seconds" one

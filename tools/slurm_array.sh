#!/bin/sh
# slurm_array - runs one shard of `reftest verify` as a task of a Slurm array job (docs/ci.md, "Slurm").
#
#   REFTEST_ROOT=/shared/dataset REFTEST_REMOTE=redis://cache:6379 sbatch --array=1-8 …/slurm_array.sh [OPTION…]
#
# Each task works on a copy of the dataset on its node's local disk ($TMPDIR, else /tmp), because LMDB does not support
# a file that several machines use over a shared filesystem. The tasks share verdicts through the cache at
# $REFTEST_REMOTE. If $REFTEST_EXPORTS is set, each task writes its verdicts to a file shard-I-of-N in this directory,
# for `reftest cache import`. OPTIONs are passed to `reftest verify`. The exit status of each task is the exit status of
# `verify` for its shard. To report the results of all shards, submit a second job that runs `verify --cached-only`.
# Give this job the dependency afterany, so that it also runs after a shard has failed.
#SBATCH --job-name=reftest
set -eu
: "${REFTEST_ROOT:?names the dataset}" "${SLURM_ARRAY_TASK_ID:?is set in an array job: sbatch --array=1-N}"
reftest=${REFTEST:-reftest}
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
for part in definitions workloads blob; do
	[ ! -d "$REFTEST_ROOT/$part" ] || cp -r "$REFTEST_ROOT/$part" "$here/"
done
code=0
"$reftest" --root "$here" verify --shard "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT" "$@" || code=$?
if [ -n "${REFTEST_EXPORTS:-}" ] && [ -d "$here/.reftest/cache" ]; then
	"$reftest" --root "$here" cache export "$REFTEST_EXPORTS/shard-$SLURM_ARRAY_TASK_ID-of-$SLURM_ARRAY_TASK_COUNT"
fi
exit "$code"

#!/bin/sh
# One shard of `reftest verify` as a task of a Slurm array job (README, "On a cluster").
#
#   REFTEST_ROOT=/shared/dataset REFTEST_REMOTE=redis://cache:6379 sbatch --array=1-8 …/slurm_array.sh [OPTION…]
#
# Each task works on a copy of the dataset on its node's own disk ($TMPDIR, else /tmp): LMDB's file is not for several
# machines at once, and a shared filesystem is where several machines meet. Verdicts meet in $REFTEST_REMOTE or, for want of
# one, as files shard-I-of-N in the folder $REFTEST_EXPORTS, for `reftest cache import`. The options are `verify`'s. The
# exit code is the shard's: the whole is judged by who merges (verify --cached-only), so let that wait with afterany.
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

#!/bin/sh
# The blobs of the starter dataset equal the output of tools/starter_blobs.py, byte for byte.
. "$(dirname "$0")/../harness.sh"
step="tools/starter_blobs.py --check"
"$python" -I -S "$top/tools/starter_blobs.py" --check >"$work/out" 2>"$work/err" && status=0 || status=$?
expect_exit 0
cp -r "$top/tools" "$top/blob" .
printf x >>blob/workloads/gemm/gemm_n1024_k4096/key_projection.safetensors
"$python" -I -S tools/starter_blobs.py --check >"$work/out" 2>"$work/err" && status=0 || status=$?
expect_exit 1
expect_says key_projection.safetensors

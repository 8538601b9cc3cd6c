#!/bin/sh
# Replays the workflow that reftest ships and the steps of docs/ci.md. Each run uses a checkout at another path with new
# mtimes, and restores verdicts from an archive. For unchanged definitions, each run reports the stored verdicts. Each
# run verifies the changed definitions, annotates their errors, and saves their verdicts. On a CI machine without a GPU,
# a run accepts the verdicts of a GPU, and says so in a message.
. "$(dirname "$0")/../harness.sh"
tools=$top/tests/e2e/tools
for site in "$top"/.venv-tests/lib/python3*/site-packages; do [ -d "$site" ] && yaml=$site; done
PYTHONPATH=${yaml:-} "$python" -c 'import yaml' 2>/dev/null || fail "there is no yaml: tools/setup.sh --tests installs it"
export GIT_CONFIG_GLOBAL="$work/gitconfig" GIT_CONFIG_SYSTEM=/dev/null REFTEST_PYTHON="$python" CUDA_VISIBLE_DEVICES=
git config --file "$GIT_CONFIG_GLOBAL" user.name test
git config --file "$GIT_CONFIG_GLOBAL" user.email test@localhost
do_git() { git "$@" >"$work/git" 2>&1 || fail "git $*: $(cat "$work/git")"; }
norm=definitions/rmsnorm/tiny_norm.json
given tiny_norm tiny_gemm
# On a CI machine, tools/setup.sh would download files and make would build the program. This machine already has the
# results, so the test replaces make and tools/setup.sh by scripts that only link to them.
mkdir "$work/bin" tools
cat >tools/setup.sh <<'END'
#!/bin/sh
set -e
mkdir -p "$(dirname "$0")/../.venv/bin"
ln -s "$STAND_IN_PYTHON" "$(dirname "$0")/../.venv/bin/python"
END
cat >"$work/bin/make" <<'END'
#!/bin/sh
set -e
[ "${1:-}" != -C ] || { cd "$2" && shift 2; }
[ "${1:-}" != verify ] || tools/setup.sh
ln -s "$STAND_IN_BUILD" build
END
printf '#!/bin/sh\n: >"%s"\nexec "%s" "$@"\n' "$work/asked" "$python" >"$work/python"
chmod +x tools/setup.sh "$work/bin/make" "$work/python"
export STAND_IN_PYTHON="$work/python" STAND_IN_BUILD="$build"
do_git init -q -b main .
do_git add definitions workloads blob tools
do_git commit -qm first
do_git clone -q --bare . "$work/repository" # takes the place of reftest's own repository
export REFTEST_REPOSITORY="file://$work/repository"
# The steps of docs/ci.md use /tmp/reftest; the test replaces /tmp/reftest by the test's own directory.
sed "s|/tmp/reftest|$work/tool|g" "$top/docs/ci.md" >"$work/ci.md"
runs=0 workflow=$top/.github/workflows/reftest.yml caches=$work/caches
ci() { # ci: runs the workflow in a new clone
	runs=$((runs + 1))
	step="run $runs of $(basename "$workflow")"
	clone=$work/clones/$runs
	mkdir -p "$clone"
	rm -rf "$work/tool"
	env -u REFTEST_PYTHON PYTHONPATH="$yaml" "$python" "$tools/replay.py" "$workflow" "$root" "$clone" "$caches" \
		"$work/bin" >"$work/out" 2>"$work/err" </dev/null && status=0 || status=$?
}
ci
expect_exit 0
expect_says '2 definitions: 2 passed; 17 cases run' '# saved reftest-main-1-1'
ci
expect_exit 0
expect_says '# restored reftest-main-1-1' '2 definitions: 2 passed; 0 cases run, 17 cached'

# A wrong epsilon is annotated at its line; new verdicts are saved, and the next run uses them.
edit $norm 'EPSILON = 1e-6' 'EPSILON = 1e-3'
do_git commit -qam wrong
ci
expect_exit 1
expect_says "::error file=$norm,line=" 'title=rmsnorm/tiny_norm%3A failed%3A numeric' '# saved reftest-main-3-1'
ci
expect_exit 1
expect_says '# restored reftest-main-3-1' '0 cases run, 17 cached'
edit $norm 'EPSILON = 1e-3' 'EPSILON = 1e-6  # back'
do_git commit -qam right
ci
expect_exit 0
expect_says '0 cases run, 17 cached'

# The test now runs the steps of docs/ci.md, which clone reftest from its repository.
workflow=$work/ci.md caches=$work/documented
last=$clone
rm -f "$work/asked"
ci
expect_exit 0
expect_says '2 definitions: 2 passed; 17 cases run' '# saved reftest-main-1-1'
[ -s "$clone/reftest.xml" ] || fail "$step: there is no report"
[ -e "$work/asked" ] || fail "$step: the steps did not use the python that they name"
ci
expect_exit 0
expect_says '# restored reftest-main-1-1' '2 definitions: 2 passed; 0 cases run, 17 cached' '# saved reftest-main-2-1'
edit $norm 'EPSILON = 1e-6' 'EPSILON = 1e-3'
do_git commit -qam 'wrong again'
ci
expect_exit 1
expect_says "::error file=$norm,line=" '# saved reftest-main-3-1'
do_git reset -q --hard HEAD~1
clone=$last

# The run uses only stored verdicts: there is no Python interpreter, so no case can run.
cd "$clone"
find . -path ./.git -prune -o -path ./.reftest -prune -o -type f -exec touch -d '2001-02-03 04:05:06' {} +
run verify --changed --cached-only --python /nonexistent
expect_exit 0
expect_says '2 definitions: 2 passed; 0 cases run, 17 cached'
edit workloads/gemm/tiny_gemm.jsonl '{"M": 5}' '{"M": 6}'
run verify --changed --cached-only
expect_exit 3
expect_says 'gemm/tiny_gemm' 'not_cached'
expect_silence_about 'rmsnorm/tiny_norm'
do_git checkout -q .

# Verdicts of a GPU. This machine may have no GPU, so the test copies the CPU's verdicts and labels the copies as
# verdicts of a GPU.
run verify --changed --cached-only --device-class sm_90
expect_exit 3
expect_says 'the stored verdict is from cpu, and this run needs sm_90'
make_relabel
"$work/relabel" . sm_90 rmsnorm/tiny_norm gemm/tiny_gemm >"$work/out" 2>&1 || fail "relabel: $(cat "$work/out")"
run verify --changed --cached-only --device-class sm_90
expect_exit 0
expect_says '2 definitions: 2 passed; 0 cases run, 17 cached' \
	'verdicts of sm_90 from other machines were accepted (--device-class); this machine has no such device'
run verify --format json --device-class sm_90
expect_exit 0
expect "s['device_class'] == 'sm_90' and s['accepted_from_elsewhere'] and s['cases_run'] == 0"
expect "all(case['device_class'] == 'sm_90' and case['torch'] == '2.13.0+cu130' for case in c.values())"
run status --device-class sm_90
expect_exit 0
run verify --changed --cached-only --device-class sm_80
expect_exit 3
run verify --format json --cached-only --device cpu
expect_exit 0
expect "s['device_class'] == 'cpu' and not s['accepted_from_elsewhere']"
expect "all(case['device_class'] == 'cpu' for case in c.values())"
edit $norm 'EPSILON = 1e-6  # back' 'EPSILON = 1e-5'
run verify --changed --device-class sm_90 # this machine cannot run any case for that device class
expect_exit 3
expect_says 'cases without a stored verdict for the device class sm_90 cannot run here'
run verify --device-class h100
expect_exit 2
expect_says "unknown device class 'h100' (--device-class takes cpu or sm_N"

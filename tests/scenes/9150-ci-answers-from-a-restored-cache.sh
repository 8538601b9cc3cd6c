#!/bin/sh
# 9150: the workflow that we ship, and the steps that README prints, replayed: checked out anew at another path each time, with
# verdicts restored from an archive and every mtime new, what did not change is answered from content alone; what did is
# verified, annotated and saved. And a CI without a GPU accepts verdicts that one made, and says so.
. "$(dirname "$0")/scene.sh"
tools=$top/tests/scenes/tools
for site in "$top"/.venv-tests/lib/python3*/site-packages; do [ -d "$site" ] && yaml=$site; done
PYTHONPATH=${yaml:-} "$python" -c 'import yaml' 2>/dev/null || fail "there is no yaml: tools/setup.sh --tests installs it"
export GIT_CONFIG_GLOBAL="$work/gitconfig" GIT_CONFIG_SYSTEM=/dev/null REFTEST_PYTHON="$python" CUDA_VISIBLE_DEVICES=
git config --file "$GIT_CONFIG_GLOBAL" user.name scene
git config --file "$GIT_CONFIG_GLOBAL" user.email scene@localhost
do_git() { git "$@" >"$work/git" 2>&1 || fail "git $*: $(cat "$work/git")"; }
norm=definitions/rmsnorm/tiny_norm.json
given tiny_norm tiny_gemm
# What a run fetches and builds is here already: stand-ins for make and for tools/setup.sh, which leave what those would.
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
do_git clone -q --bare . "$work/repository" # stands for reftest's own
export REFTEST_REPOSITORY="file://$work/repository"
# README's steps work in /tmp/reftest: a place of this scene's own here.
sed "s|/tmp/reftest|$work/tool|g" "$top/README.md" >"$work/README.md"
runs=0 workflow=$top/.github/workflows/reftest.yml caches=$work/caches
ci() { # a run of the workflow, in a clone of its own
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
expect_says '2 definitions: 2 passed; 9 cases run' '# saved reftest-main-1-1'
ci
expect_exit 0
expect_says '# restored reftest-main-1-1' '2 definitions: 2 passed; 0 cases run, 9 cached'

# a wrong epsilon is annotated where it stands; what was learnt is saved all the same, and the next run remembers
edit $norm 'EPSILON = 1e-6' 'EPSILON = 1e-3'
do_git commit -qam wrong
ci
expect_exit 1
expect_says "::error file=$norm,line=" 'title=rmsnorm/tiny_norm%3A failed%3A numeric' '# saved reftest-main-3-1'
ci
expect_exit 1
expect_says '# restored reftest-main-3-1' '0 cases run, 9 cached'
edit $norm 'EPSILON = 1e-3' 'EPSILON = 1e-6  # back'
do_git commit -qam right
ci
expect_exit 0
expect_says '0 cases run, 9 cached'

# the same with README's own steps, which take reftest from its repository
workflow=$work/README.md caches=$work/readme
last=$clone
rm -f "$work/asked"
ci
expect_exit 0
expect_says '2 definitions: 2 passed; 9 cases run' '# saved reftest-main-1-1'
[ -s "$clone/reftest.xml" ] || fail "$step: there is no report"
[ -e "$work/asked" ] || fail "$step: another python was taken than the one that the steps name"
ci
expect_exit 0
expect_says '# restored reftest-main-1-1' '2 definitions: 2 passed; 0 cases run, 9 cached' '# saved reftest-main-2-1'
edit $norm 'EPSILON = 1e-6' 'EPSILON = 1e-3'
do_git commit -qam 'wrong again'
ci
expect_exit 1
expect_says "::error file=$norm,line=" '# saved reftest-main-3-1'
do_git reset -q --hard HEAD~1
clone=$last

# from content alone: no interpreter, nothing that could run
cd "$clone"
find . -path ./.git -prune -o -path ./.reftest -prune -o -type f -exec touch -d '2001-02-03 04:05:06' {} +
run verify --changed --cached-only --python /nonexistent
expect_exit 0
expect_says '2 definitions: 2 passed; 0 cases run, 9 cached'
edit workloads/gemm/tiny_gemm.jsonl '{"M": 5}' '{"M": 6}'
run verify --changed --cached-only
expect_exit 3
expect_says 'gemm/tiny_gemm' 'not_cached'
expect_silence_about 'rmsnorm/tiny_norm'
do_git checkout -q .

# verdicts of a GPU: this machine has none, so a copy of the CPU's is relabelled
run verify --changed --cached-only --device-class sm_90
expect_exit 3
expect_says 'its stored verdict is of cpu, and sm_90 is asked for'
make_relabel
"$work/relabel" . sm_90 rmsnorm/tiny_norm gemm/tiny_gemm >"$work/out" 2>&1 || fail "relabel: $(cat "$work/out")"
run verify --changed --cached-only --device-class sm_90
expect_exit 0
expect_says '2 definitions: 2 passed; 0 cases run, 9 cached' \
	'verdicts that sm_90 gave elsewhere were accepted (--device-class); this machine has no such device'
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
run verify --changed --device-class sm_90 # nothing of that class can run here
expect_exit 3
expect_says 'only verdicts of sm_90 count (--device-class), and what has none cannot run here'
run verify --device-class h100
expect_exit 2
expect_says "'h100' is no class of devices; --device-class takes cpu or sm_N"

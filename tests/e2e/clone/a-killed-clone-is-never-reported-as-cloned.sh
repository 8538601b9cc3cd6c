#!/bin/sh
# `reftest clone` is killed 20 times, at random moments, while it clones and while it updates. After each kill, the next
# run continues the work. Whenever repos_config.json says that a repository was cloned, every file of the recorded
# commit exists. At the end, all repositories are cloned.
. "$(dirname "$0")/../harness.sh"
export GIT_CONFIG_GLOBAL="$work/gitconfig" GIT_CONFIG_SYSTEM=/dev/null
git config --file "$GIT_CONFIG_GLOBAL" user.name test
git config --file "$GIT_CONFIG_GLOBAL" user.email test@localhost
git config --file "$GIT_CONFIG_GLOBAL" init.defaultBranch main
do_git() { git "$@" >"$work/git" 2>&1 || fail "git $*: $(cat "$work/git")"; }
mirror=$work/mirror
# `commit NAME VERSION`: commits 120 files to the repository NAME. Each version replaces two thirds of the files, adds
# some and removes others.
commit() {
	"$python" -I -S -c '
import os, random, sys
folder, version = sys.argv[1], int(sys.argv[2])
draw = random.Random(version)
for i in range(120):
    path = f"{folder}/d{i % 7}/f{i}"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if (i + version) % 10 == 0:
        if os.path.exists(path):
            os.remove(path)
    elif (i + version) % 3 or not os.path.exists(path):
        open(path, "wb").write(draw.randbytes(draw.choice([10, 20000, 60000])))' "$work/$1" "$2"
	do_git -C "$work/$1" add -A
	do_git -C "$work/$1" commit -q -m "version $2"
	do_git -C "$work/$1" push -q "$mirror/$1.git" main
}
for name in sglang flashinfer; do
	do_git init -q --bare "$mirror/$name.git"
	do_git init -q "$work/$name"
	commit $name 1
done

# `whole`: expects that each clone that repos_config.json lists as cloned is complete, and that each folder at the path
# of a repository is a clone.
cat >"$work/whole.py" <<'P'
import json, os, subprocess, sys

def git(path, *words):
    done = subprocess.run(["git", "-C", path, *words], capture_output=True, text=True)
    return done.returncode, done.stdout.strip()

brought = 0
config = json.load(open("repos_config.json")) if os.path.exists("repos_config.json") else {"repositories": {}}
for name, one in config["repositories"].items():
    path = one["path"]
    if one["status"] in ("cloned", "updated", "current"):
        brought += 1
        code, head = git(path, "rev-parse", "HEAD")
        assert code == 0 and head == one["commit"], (name, one, head)
        code, text = git(path, "fsck", "--connectivity-only")
        assert code == 0, (name, "fsck", text)
        code, text = git(path, "status", "--porcelain", "-uno")
        assert code == 0 and text == "", (name, "status", text)
    else:
        assert one["status"] == "incomplete", (name, one)
    if os.path.exists(path):
        assert git(path, "rev-parse", "HEAD")[0] == 0, (name, "half a clone")
print(brought)
P
whole() {
	expectations=$((expectations + 1))
	"$python" -I -S "$work/whole.py" >"$work/brought" 2>"$work/python" || fail "$step, kill $kill: $(tail -n 1 "$work/python")"
}
# Kills a run after a random time. If the run ends before it is killed, the test kills the next runs after shorter
# times.
kill_a_run() {
	begin clone --mirror "$mirror" --only sglang,flashinfer
	sleep "$(awk "BEGIN { srand($seed + $runs); print rand() * $length / 1000 }")"
	if kill -9 "$program" 2>/dev/null; then kills=$((kills + 1)); else length=$((length * 3 / 4 + 10)); fi
	wait "$program" 2>/dev/null || true
	whole
}
# Measures how long a complete run takes here.
began=$(date +%s%3N)
run clone --mirror "$mirror" --only sglang,flashinfer --target-dir once
expect_exit 0
length=$(($(date +%s%3N) - began))
rm -rf once repos_config.json

kills=0 kill=0 runs=0 seed=$(date +%s)
echo "# seed $seed, a run takes $length ms"
while [ $kills -lt 20 ]; do
	runs=$((runs + 1)) kill=$((kills + 1))
	[ $runs -le 200 ] || fail "only $kills of 200 runs were killed before their end"
	kill_a_run
	# A newer commit is made after the eighth kill, and after every second kill from then on. All clones are
	# deleted after the fourth kill.
	if [ $kill -le $kills ] && [ $kill -ge 8 ] && [ $((kill % 2)) = 0 ]; then
		run clone --mirror "$mirror" --only sglang,flashinfer
		expect_exit 0
		whole
		[ "$(cat "$work/brought")" = 2 ] || fail "kill $kill: a run that succeeds brings both"
		commit sglang $kill
	elif [ $kill -le $kills ] && [ $kill = 4 ]; then
		rm -rf repos repos_config.json
	fi
done
echo "# $runs runs, $kills of them killed"
run clone --mirror "$mirror" --only sglang,flashinfer
expect_exit 0
whole
[ "$(cat "$work/brought")" = 2 ] || fail "the last run brings both"
for name in sglang flashinfer; do
	[ "$(git -C repos/$name rev-parse HEAD)" = "$(git -C "$work/$name" rev-parse HEAD)" ] || fail "$name is not the newest commit"
	[ ! -e repos/.$name.partial ] || fail "a partial folder is left"
	[ -z "$(find repos/$name/.git -name '*.lock' -o -name 'reftest-*' -o -name 'tmp_*')" ] || fail "files of killed runs are left"
done

# A run is killed at the worst moment: git has replaced some files, is writing another one, and has locked the index.
commit sglang 98
mkdir "$work/bin"
cat >"$work/bin/git" <<P
#!/bin/sh
for last; do :; done
case " \$* " in *" --detach "*)
	cd "\$2"
	set -- \$("$(command -v git)" diff --name-only --diff-filter=M HEAD "\$last" | head -n 3)
	"$(command -v git)" cat-file blob "\$last:\$1" >"\$1"
	rm "\$2"
	"$(command -v git)" cat-file blob "\$last:\$3" | head -c 5 >"\$3"
	touch .git/index.lock killed
	kill -9 \$PPID ;;
*) exec "$(command -v git)" "\$@" ;;
esac
P
chmod +x "$work/bin/git"
kill="during checkout"
begin_path=$PATH
PATH=$work/bin:$PATH
begin clone --mirror "$mirror" --only sglang
PATH=$begin_path
wait "$program" || true
[ -e repos/sglang/killed ] || fail "the run was not killed while git replaced files"
rm repos/sglang/killed
whole
[ "$(cat "$work/brought")" = 1 ] || fail "an update that is half done is reported as done"
run clone --mirror "$mirror" --only sglang,flashinfer
expect_exit 0
whole
[ "$(cat "$work/brought")" = 2 ] || fail "the update was not finished"

# If a user edits a file after a kill, the run that finishes the update does not overwrite the edit.
old=$(git -C repos/sglang rev-parse HEAD)
commit sglang 99
do_git -C repos/sglang fetch -q --depth=1 "$mirror/sglang.git" "+refs/heads/main:refs/reftest/fetched"
new=$(git -C repos/sglang rev-parse refs/reftest/fetched)
echo "$old $new main" >repos/sglang/.git/reftest-update
edited=$(git -C repos/sglang ls-files | head -n 1)
echo "an edit" >repos/sglang/"$edited"
run clone --mirror "$mirror" --only sglang
expect_exit 1
[ "$(cat repos/sglang/"$edited")" = "an edit" ] || fail "the edit is lost"
grep -q "'$edited' has changed since" "$work/out" || fail "the edited file is not named"
# git was killed while it wrote a file, so this file contains only the beginning of its new content.
changed=$(git -C repos/sglang diff --name-only --diff-filter=M "$old" "$new" | head -n 1)
do_git -C repos/sglang checkout -q -- "$edited"
git -C repos/sglang cat-file blob "$new:$changed" | head -c 5 >repos/sglang/"$changed"
run clone --mirror "$mirror" --only sglang
expect_exit 0
[ "$(git -C repos/sglang rev-parse HEAD)" = "$new" ] && [ -z "$(git -C repos/sglang status --porcelain -uno)" ] ||
	fail "the update was not finished"

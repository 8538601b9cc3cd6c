#!/bin/sh
# `reftest clone` clones each repository once, and updates it later. It changes nothing that it did not create, and
# lists the clones in repos_config.json. If the server is unreachable, a message gives the command with which to try
# again.
. "$(dirname "$0")/../harness.sh"
export GIT_CONFIG_GLOBAL="$work/gitconfig" GIT_CONFIG_SYSTEM=/dev/null
git config --file "$GIT_CONFIG_GLOBAL" user.name test
git config --file "$GIT_CONFIG_GLOBAL" user.email test@localhost
git config --file "$GIT_CONFIG_GLOBAL" init.defaultBranch trunk
do_git() { git "$@" >"$work/git" 2>&1 || fail "git $*: $(cat "$work/git")"; }
mirror=$work/mirror
for name in sglang flashinfer flashinfer-trace; do
	do_git init -q --bare "$mirror/$name.git"
	do_git init -q "$work/$name"
	echo "one of $name" >"$work/$name/one"
	do_git -C "$work/$name" add one
	do_git -C "$work/$name" commit -q -m first
	do_git -C "$work/$name" push -q "$mirror/$name.git" trunk
done
push() { # push NAME: commits the working tree of NAME, and pushes the commit
	do_git -C "$work/$1" add -A
	do_git -C "$work/$1" commit -q -m next
	do_git -C "$work/$1" push -q "$mirror/$1.git" trunk
}
clone() { run clone --mirror "$mirror" "$@"; }
status_of() { # status_of NAME STATUS: expects this status in repos_config.json, and the commit that is checked out
	expectations=$((expectations + 1))
	"$python" -I -S -c '
import json, subprocess, sys
name, status = sys.argv[1:]
c = json.load(open("repos_config.json"))
one = c["repositories"][name]
assert list(c) == ["target_dir", "repositories"] and list(one) == ["path", "status", "commit", "message"], c
head = subprocess.run(["git", "-C", one["path"], "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
sys.exit(0 if (one["status"], one["commit"]) == (status, head) else str((one, head)))' "$1" "$2" 2>"$work/python" ||
		fail "$step: $1 is not $2: $(tail -n 1 "$work/python")"
}
is_file() { # is_file PATH TEXT
	expectations=$((expectations + 1))
	[ "$(cat "$1")" = "$2" ] || fail "$step: $1 contains '$(cat "$1")', expected '$2'"
}

# The first run clones only the newest commit.
clone
expect_exit 0
for name in sglang flashinfer flashinfer-trace; do
	status_of $name cloned
	is_file repos/$name/one "one of $name"
done
[ "$(git -C repos/sglang rev-parse --is-shallow-repository)" = true ] || [ "$(git -C repos/sglang rev-list --count HEAD)" = 1 ] ||
	fail "the clone has a history"
clone
expect_exit 0
status_of sglang current

# The server has a newer commit, with new, changed and removed files. Untracked files stay.
echo two >"$work/sglang/two"
echo new >"$work/sglang/one"
push sglang
echo mine >repos/sglang/mine
clone --only sglang
expect_exit 0
status_of sglang updated
status_of flashinfer current
is_file repos/sglang/one new
is_file repos/sglang/two two
is_file repos/sglang/mine mine
[ -z "$(git -C repos/sglang status --porcelain -uno)" ] || fail "the updated checkout is not clean"
[ "$(git -C repos/sglang symbolic-ref HEAD)" = refs/heads/trunk ] || fail "the branch is not checked out"

# If a clone has local changes, local commits or another branch, the run changes nothing in this clone and succeeds.
echo three >"$work/sglang/one"
push sglang
echo edited >repos/sglang/one
clone --only sglang
expect_exit 0
status_of sglang kept
is_file repos/sglang/one edited
do_git -C repos/sglang commit -q -a -m own
clone --only sglang
status_of sglang kept
is_file repos/sglang/one edited
do_git -C repos/sglang checkout -q --detach
clone --only sglang
status_of sglang kept

# The newer commit adds a file, but the clone already has an untracked file with this name. The untracked file is not
# overwritten, even if git ignores it.
printf 'made\n' >"$work/flashinfer/made"
push flashinfer
mkdir -p repos/flashinfer/.git/info
echo made >repos/flashinfer/.git/info/exclude
echo precious >repos/flashinfer/made
clone --only flashinfer
expect_exit 1
status_of flashinfer failed
is_file repos/flashinfer/made precious
is_file repos/flashinfer/one "one of flashinfer"
rm repos/flashinfer/made
clone --only flashinfer
expect_exit 0
status_of flashinfer updated
is_file repos/flashinfer/made made

# A folder that is not a clone is left unchanged.
mkdir -p elsewhere/sglang
echo text >elsewhere/sglang/file
clone --target-dir elsewhere --only sglang
expect_exit 1
grep -q 'sglang .*is not a clone' "$work/out" || fail "the folder is not named"
is_file elsewhere/sglang/file text
[ ! -e elsewhere/flashinfer ] && [ ! -e elsewhere/flashinfer-trace ] || fail "--only sglang touched another repository"

# If the server is unreachable, a message gives the command with which to try again, and the earlier checkout is kept.
mv "$mirror" "$work/away"
clone --only flashinfer
expect_exit 1
grep -q 'flashinfer .*cannot be fetched (.*); retry with `reftest clone --only flashinfer --target-dir .*--mirror' "$work/out" ||
	fail "no command to retry"
status_of flashinfer failed
is_file repos/flashinfer/made made
clone --target-dir none --only flashinfer-trace
expect_exit 1
[ ! -e none/flashinfer-trace ] || fail "a clone without a server left a folder"
mv "$work/away" "$mirror"

# No shell runs the values of the options, and git never treats a value as one of its own options.
run clone --mirror '$(touch shell);touch shell' --target-dir 'a b;c' --only sglang
expect_exit 1
[ ! -e shell ] || fail "a shell ran"
run clone --mirror --upload-pack=x --only sglang
expect_exit 2
run clone --only torch
expect_exit 2

# Without git-lfs, --lfs names the missing program before it fetches anything. With git-lfs, --lfs pulls the files.
mkdir "$work/lfs"
printf '#!/bin/sh\necho "$*" >>"$LFS_LOG"\n[ ! -e "$LFS_LOG.broken" ]\n' >"$work/lfs/git-lfs"
chmod +x "$work/lfs/git-lfs"
export LFS_LOG="$work/lfs.log"
kept_path=$PATH
PATH=$work/lfs:$PATH
touch "$LFS_LOG.broken"
clone --only flashinfer-trace --target-dir large --lfs
expect_exit 1
grep -q 'needs the program git-lfs, which is not installed; install it and retry with `reftest clone --only flashinfer-trace .*--lfs`' "$work/out" ||
	fail "the missing program is not named"
[ ! -e large/flashinfer-trace ] && [ ! -e large/.flashinfer-trace.partial ] || fail "something was fetched"
rm "$LFS_LOG.broken"
clone --only flashinfer-trace --target-dir large --lfs
expect_exit 0
is_file large/flashinfer-trace/one 'one of flashinfer-trace'
grep -q '^pull' "$LFS_LOG" || fail "nothing was pulled"
PATH=$kept_path

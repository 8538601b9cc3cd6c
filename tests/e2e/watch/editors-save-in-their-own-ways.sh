#!/bin/sh
# Editors and tools write files in different ways. For each save, watch reports one correct verdict on the final
# content, and no intermediate state (an absent, partial or different file). If vim and emacs are installed, the test
# uses them to save. For other editors, the test replays the sequences of system calls with which they save. The
# sequence of emacs is a trace of emacs 28. VS Code: truncates the file, writes it, and calls fdatasync before closing
# it. JetBrains' safe write: creates a second file, renames the old file to another name, renames the new file to the
# old name, and deletes the old file.
. "$(dirname "$0")/../harness.sh"
given tiny_norm tiny_gemm
watch
file=definitions/rmsnorm/tiny_norm.json
cp $file "$work/good"
sed 's/EPSILON = 1e-6/EPSILON = 1e-4/' $file >"$work/bad"

# `saved HOW STATUS`: expects one verdict, on the final content. (If a busy machine delays the writer by a tenth of a
# second or more, the watcher also reports the intermediate state.)
saved() {
	step="saved by $1"
	await "e['event'] == 'verdict' and e['status'] == '$2'"
	expect_events "all(x['status'] == 'invalid' and x['seconds'] >= 0.09 for x in a[:-1] if x['event'] == 'verdict')"
	expect_events "all(b['seconds'] >= 0.09 for b in a if b['event'] == 'batch' and b['batch'] in [x['batch'] for x in a if x['event'] == 'gone'])"
	await_batch
	expect_events "all(x['event'] != 'verdict' for x in a)"
}

cp "$work/bad" $file
saved 'truncating and writing (cp)' failed
cp "$work/good" $file
saved 'truncating and writing (cp), back' passed

python_writes() { "$python" -I -S -c "
import os, sys
path, text = sys.argv[1], open(sys.argv[2]).read()
$1" $file "$2"; }

python_writes '
with open(path, "w") as out:
    out.write(text)
    out.flush()
    os.fdatasync(out.fileno())' "$work/bad"
saved 'truncating, writing and fdatasync (VS Code)' failed

python_writes '
with open(path, "w") as out:
    for at in range(0, len(text), 97):
        out.write(text[at:at + 97])
        out.flush()' "$work/good"
saved 'writing in pieces' passed

python_writes '
os.rename(path, path + "~")
with open(path, "w") as out:
    out.write(text)
os.unlink(path + "~")' "$work/bad"
saved 'renaming the original away (vim, backup)' failed

python_writes '
lock = os.path.join(os.path.dirname(path), ".#tiny_norm.json")
os.symlink("someone@host.1", lock)
os.rename(path, path + "~")
with open(path, "w") as out:
    out.write(text)
with open(path, "r+"):
    pass
os.unlink(lock)' "$work/good"
saved 'a backup and a lock link (emacs)' passed

python_writes '
with open(path + "___jb_tmp___", "w") as out:
    out.write(text)
os.rename(path, path + "___jb_old___")
os.rename(path + "___jb_tmp___", path)
os.unlink(path + "___jb_old___")' "$work/bad"
saved 'a safe write (JetBrains)' failed

python_writes '
with open(path + ".tmp", "w") as out:
    out.write(text)
os.rename(path + ".tmp", path)' "$work/good"
saved 'writing beside and renaming over' passed

python_writes '
os.unlink(path)
with open(path, "w") as out:
    out.write(text)' "$work/bad"
saved 'deleting and writing anew' failed

sed -i 's/EPSILON = 1e-4/EPSILON = 1e-6/' $file
saved 'sed -i' passed

if command -v vim >/dev/null 2>&1; then
	for backup in 'set backup backupcopy=no' 'set nobackup nowritebackup' 'set backup backupcopy=yes'; do
		vim -u NONE -N -es -c "$backup" -c '%s/EPSILON = 1e-6/EPSILON = 1e-4/' -c wq $file </dev/null >/dev/null 2>&1 || true
		saved "vim, $backup" failed
		vim -u NONE -N -es -c "$backup" -c '%s/EPSILON = 1e-4/EPSILON = 1e-6/' -c wq $file </dev/null >/dev/null 2>&1 || true
		saved "vim, $backup" passed
	done
fi
if command -v emacs >/dev/null 2>&1; then
	for how in nil '(setq backup-enable-predicate (lambda (name) t))' '(setq file-precious-flag t)'; do
		for turn in '1e-6 1e-4 failed' '1e-4 1e-6 passed'; do
			# shellcheck disable=SC2086 # words
			set -- $turn
			emacs -Q --batch --eval "$how" --eval "(progn (find-file \"$file\") (search-forward \"EPSILON = $1\")
				(replace-match \"EPSILON = $2\") (save-buffer))" </dev/null >/dev/null 2>&1
			saved "emacs, $how" "$3"
		done
	done
fi
end_watch
expect_nothing_to_do

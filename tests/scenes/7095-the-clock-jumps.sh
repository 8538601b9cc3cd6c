#!/bin/sh
# 7095: while watch runs, the clock of the machine jumps a year ahead, two back, and home, also while a reference runs and
# while half a text waits for its other half: each save gets the verdict of its own text, and what was stored under such
# clocks is neither lost nor believed of another text.
. "$(dirname "$0")/scene.sh"
given tiny_norm tiny_gemm
cat >"$work/clock.c" <<'C'
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
/* Seconds by which the wall clock is off, as the file named CLOCK_FILE says at this moment. */
static long off(void)
{
	FILE *file = fopen(CLOCK_FILE, "r");
	long seconds = 0;

	if (file != NULL && fscanf(file, "%ld", &seconds) != 1)
		seconds = 0;
	if (file != NULL)
		fclose(file);
	return seconds;
}
int clock_gettime(clockid_t clock, struct timespec *now)
{
	int rc = (int)syscall(SYS_clock_gettime, clock, now);

	if (clock == CLOCK_REALTIME)
		now->tv_sec += off();
	return rc;
}
time_t time(time_t *out)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (out != NULL)
		*out = now.tv_sec;
	return now.tv_sec;
}
int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
	struct timespec fine;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &fine);
	*now = (struct timeval){fine.tv_sec, fine.tv_nsec / 1000};
	return 0;
}
C
"${CC:-cc}" -shared -fPIC -O1 -DCLOCK_FILE="\"$work/off\"" -o "$work/clock.so" "$work/clock.c"
jump() {
	echo "$1" >"$work/off.new"
	mv "$work/off.new" "$work/off"
	touch -d "@$(($(date +%s) + $1))" "$work/stamp" # what a file that is written then has for its time
}
year=31536000 from=1e-6
saved() { # EPSILON STATUS: the save has the time that the clock shows
	sed "s/EPSILON = $from/EPSILON = $1/" definitions/rmsnorm/tiny_norm.json >"$work/text"
	touch -r "$work/stamp" "$work/text"
	mv "$work/text" definitions/rmsnorm/tiny_norm.json
	from=$1
	await "e['event'] == 'verdict'"
	heard "e['name'] == 'tiny_norm' and e['status'] == '$2'"
}
jump 0
mkdir "$work/plain"
LD_PRELOAD="$work/clock.so" ASAN_OPTIONS="${ASAN_OPTIONS:-}:verify_asan_link_order=0" "$reftest" --version >"$work/out" 2>"$work/err" ||
	fail "the program does not start under another clock"
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:verify_asan_link_order=0" LD_PRELOAD="$work/clock.so"
begin watch --json --device "$device" --sizes small --jobs 1
unset LD_PRELOAD
echo 0 >"$work/heard"
await "e['event'] == 'ready'"
saved 1e-4 failed
jump $year
saved 1e-6 passed
saved 1e-3 failed
jump -$year
saved 1e-6 passed
saved 1e-2 failed
jump 0
saved 1e-6 passed
heard "e['cases_run'] == 0" # that text was verified before
edit definitions/rmsnorm/tiny_norm.json 'EPSILON = 1e-6' 'EPSILON = 1e-6\nsum(range(20000000))'
await "e['event'] == 'plan'"
jump $year
await "e['event'] == 'verdict'"
heard "e['status'] == 'passed' and e['cases_run'] == 4"
head -c 200 definitions/rmsnorm/tiny_norm.json >"$work/half"
cp definitions/rmsnorm/tiny_norm.json "$work/whole"
cat "$work/half" >definitions/rmsnorm/tiny_norm.json
sleep 0.05
jump -$year
await "e['event'] == 'verdict' and e['status'] == 'invalid'"
cat "$work/whole" >definitions/rmsnorm/tiny_norm.json
await "e['event'] == 'verdict' and e['status'] == 'passed'"
jump 0
end_watch
expect_nothing_to_do

# Nor is a stat believed that another clock left: the same size, the same time, another text.
LD_PRELOAD="$work/clock.so"
export LD_PRELOAD
jump -$year
verify --changed
unset LD_PRELOAD
expect_ran 0
touch -r definitions/rmsnorm/tiny_norm.json "$work/before"
sed -i 's/EPSILON = 1e-6/EPSILON = 1e-4/' definitions/rmsnorm/tiny_norm.json
touch -r "$work/before" definitions/rmsnorm/tiny_norm.json
verify --changed
expect_exit 1
expect_status tiny_norm failed numeric

#!/bin/sh
# own interpreter: the test starts interpreters with another clock.
# While watch runs, the machine's clock jumps a year forward, two years back, and to the right time again. The clock
# also jumps while a reference runs, and while a file is only half written. Each save gets the verdict for its own
# content. Verdicts that were stored while the clock was wrong are neither lost nor used for other content.
. "$(dirname "$0")/../harness.sh"
given tiny_norm tiny_gemm
cat >"$work/clock.c" <<'C'
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
/* Returns the seconds that the file CLOCK_FILE adds to the wall clock at this moment. */
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
	touch -d "@$(($(date +%s) + $1))" "$work/stamp" # gives a file the time stamp that it would get now
}
year=31536000 from=1e-6
saved() { # saved EPSILON STATUS: saves the definition with the time that the clock shows, and expects this status
	sed "s/EPSILON = $from/EPSILON = $1/" definitions/rmsnorm/tiny_norm.json >"$work/text"
	touch -r "$work/stamp" "$work/text"
	mv "$work/text" definitions/rmsnorm/tiny_norm.json
	from=$1
	await "e['event'] == 'verdict'"
	expect_events "e['name'] == 'tiny_norm' and e['status'] == '$2'"
}
jump 0
mkdir "$work/plain"
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:verify_asan_link_order=0"
# A verdict is valid only with the same LD_PRELOAD. Therefore every command of reftest in this test runs with the
# library that replaces the clock.
cat >"$work/clocked" <<C
#!/bin/sh
LD_PRELOAD="$work/clock.so" exec "$reftest" "\$@"
C
chmod +x "$work/clocked"
reftest=$work/clocked
"$reftest" --version >"$work/out" 2>"$work/err" || fail "the program does not start under another clock"
begin watch --json --device "$device" --sizes small --jobs 1
echo 0 >"$work/awaited"
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
expect_events "e['cases_run'] == 0" # the restored content was verified before
edit definitions/rmsnorm/tiny_norm.json 'EPSILON = 1e-6' 'EPSILON = 1e-6\nsum(range(20000000))'
await "e['event'] == 'plan'"
jump $year
await "e['event'] == 'verdict'"
expect_events "e['status'] == 'passed' and e['cases_run'] == 4"
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

# The file now has the size and the time that reftest recorded while the clock was wrong, but different content. reftest
# must notice the change.
jump -$year
verify --changed
jump 0
expect_ran 0
touch -r definitions/rmsnorm/tiny_norm.json "$work/before"
sed -i 's/EPSILON = 1e-6/EPSILON = 1e-4/' definitions/rmsnorm/tiny_norm.json
touch -r "$work/before" definitions/rmsnorm/tiny_norm.json
verify --changed
expect_exit 1
expect_status tiny_norm failed numeric

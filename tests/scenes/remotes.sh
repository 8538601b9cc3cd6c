# remotes - verbs for scenes about shared caches: servers that a scene begins, and that end with it.
servers=
end_servers() {
	for server in $servers; do kill "$server" 2>/dev/null || true; done
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		alive=
		for server in $servers; do
			case $(cat "/proc/$server/stat" 2>/dev/null) in *') Z '* | '') ;; *) alive=1 ;; esac
		done
		[ -n "$alive" ] || break
		sleep 0.2
	done
	for server in $servers; do kill -9 "$server" 2>/dev/null || true; done
	for server in $servers; do wait "$server" 2>/dev/null || true; done
	servers=
}
trap 'code=$?; end_servers; scene_end $code' EXIT
unset REFTEST_REMOTE REFTEST_CACHE_KEY http_proxy HTTP_PROXY all_proxy ALL_PROXY

# until_true COMMAND…: waits until it succeeds, two minutes at most
until_true() {
	for _ in $(seq 2400); do
		"$@" >/dev/null 2>&1 && return 0
		sleep 0.05
	done
	fail "it never came to be that: $*"
}

# redis_begins [OPTION…]: the real redis-server, at $work/redis.sock and nowhere else unless the options say so
redis_begins() {
	command -v redis-server >/dev/null || fail "there is no redis-server: tools/setup.sh --tests installs it"
	redis-server --port 0 --unixsocket "$work/redis.sock" --save '' --appendonly no --dir "$work" "$@" \
		>"$work/redis.log" 2>&1 &
	servers="$servers $!"
	until_true test -S "$work/redis.sock"
	REFTEST_REMOTE=redis+unix://$work/redis.sock
	export REFTEST_REMOTE
}
redis() { redis-cli -s "$work/redis.sock" "$@"; }

# http_begins [USER:PASSWORD]: tests/remotes/http_cache.py; its address is $http, its log $work/http.log
http_begins() {
	rm -f "$work/port"
	: >"$work/http.log"
	"$python" -I -S "$top/tests/remotes/http_cache.py" "$work/port" "$work/http.log" "$@" &
	servers="$servers $!"
	until_true test -s "$work/port"
	http=http://127.0.0.1:$(cat "$work/port")
}

# apache_begins: the real Apache httpd with mod_dav, over folders ac and cas below $work/www; its address is $http
apache_begins() {
	apache=$(command -v apache2 || echo /usr/sbin/apache2) modules=/usr/lib/apache2/modules
	[ -x "$apache" ] || fail "there is no apache2: tools/setup.sh --tests installs it"
	mkdir -p "$work/www/ac" "$work/www/cas" "$work/apache"
	for _ in 1 2 3 4 5; do # a port that is free now may be another's a moment later
		port=$("$python" -I -S -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
		cat >"$work/apache/conf" <<-END
			ServerRoot $work/apache
			ServerName localhost
			PidFile $work/apache/pid
			ErrorLog $work/apache/error
			Listen 127.0.0.1:$port
			LoadModule mpm_event_module $modules/mod_mpm_event.so
			LoadModule authz_core_module $modules/mod_authz_core.so
			LoadModule dav_module $modules/mod_dav.so
			LoadModule dav_fs_module $modules/mod_dav_fs.so
			DavLockDB $work/apache/locks
			DocumentRoot $work/www
			<Directory $work/www>
			Dav On
			Require all granted
			</Directory>
		END
		"$apache" -f "$work/apache/conf" -D FOREGROUND >"$work/apache/out" 2>&1 &
		servers="$servers $!"
		http=http://127.0.0.1:$port
		for _ in $(seq 100); do
			"$python" -I -S -c "import socket; socket.create_connection(('127.0.0.1', $port)).close()" 2>/dev/null && return 0
			kill -0 $! 2>/dev/null || break
			sleep 0.05
		done
	done
	fail "Apache did not come up: $(cat "$work/apache/out" "$work/apache/error" 2>/dev/null)"
}

# server_begins FILE [ARGUMENT…]: a Python server that writes its port to $work/port; it is $port then
server_begins() {
	rm -f "$work/port"
	"$python" -I -S "$@" "$work/port" &
	servers="$servers $!"
	until_true test -s "$work/port"
	port=$(cat "$work/port")
}

# forget: the cache of this dataset is as if nothing had ever been verified
forget() { rm -rf .reftest; }

# expect_told_once TEXT: standard error has exactly one line, and it says so
expect_told_once() {
	expect_says "$1"
	expectations=$((expectations + 1))
	[ "$(wc -l <"$work/err")" = 1 ] || fail "$step: something is said more than once"
}

# expect_within MS COMMAND…
expect_within() {
	expectations=$((expectations + 1))
	most=$1
	shift
	from=$(date +%s%N)
	"$@"
	took=$((($(date +%s%N) - from) / 1000000))
	[ "$took" -le "$most" ] || fail "$step: took $took ms, more than $most"
}

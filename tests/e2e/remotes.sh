# remotes - shell functions for tests of shared caches: they start real and fake cache servers, which are stopped at the
# end of the test.
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
trap 'code=$?; end_servers; test_end $code' EXIT
unset REFTEST_REMOTE REFTEST_CACHE_KEY http_proxy HTTP_PROXY all_proxy ALL_PROXY

# `until_true COMMAND…`: repeats the command until it succeeds, for at most two minutes.
until_true() {
	for _ in $(seq 2400); do
		"$@" >/dev/null 2>&1 && return 0
		sleep 0.05
	done
	fail "this never became true: $*"
}

# `redis_starts [OPTION…]`: starts the real redis-server. By default, it listens only on the socket $work/redis.sock.
# Fails if the server ends.
redis_starts() {
	command -v redis-server >/dev/null || fail "there is no redis-server: tools/setup.sh --tests installs it"
	redis-server --port 0 --unixsocket "$work/redis.sock" --save '' --appendonly no --dir "$work" "$@" \
		>"$work/redis.log" 2>&1 &
	redis_server=$!
	servers="$servers $redis_server"
	until_true redis_is_up_or_ended
	REFTEST_REMOTE=redis+unix://$work/redis.sock
	export REFTEST_REMOTE
	[ -S "$work/redis.sock" ]
}
redis_is_up_or_ended() { [ -S "$work/redis.sock" ] || ! kill -0 "$redis_server"; }
redis_begins() { redis_starts "$@" || fail "redis-server did not start: $(cat "$work/redis.log")"; }

# `redis_on_port_begins [OPTION…]`: as redis_begins, but the server also listens on 127.0.0.1:$port.
redis_on_port_begins() {
	for _ in 1 2 3 4 5; do # see free_port
		port=$(free_port)
		! redis_starts --port "$port" --bind 127.0.0.1 "$@" || return 0
	done
	fail "redis-server did not start: $(cat "$work/redis.log")"
}
redis() { redis-cli -s "$work/redis.sock" "$@"; }

# `http_begins [USER:PASSWORD]`: starts tests/fake_remotes/http_cache.py. Its address is $http, and its log is
# $work/http.log.
http_begins() {
	rm -f "$work/port"
	: >"$work/http.log"
	"$python" -I -S "$top/tests/fake_remotes/http_cache.py" "$work/port" "$work/http.log" "$@" &
	servers="$servers $!"
	until_true test -s "$work/port"
	http=http://127.0.0.1:$(cat "$work/port")
}

# `apache_begins`: starts the real Apache httpd with mod_dav on the folders ac and cas below $work/www. Its address is
# $http.
apache_begins() {
	apache=$(command -v apache2 || echo /usr/sbin/apache2) modules=/usr/lib/apache2/modules
	[ -x "$apache" ] || fail "there is no apache2: tools/setup.sh --tests installs it"
	mkdir -p "$work/www/ac" "$work/www/cas" "$work/apache"
	for _ in 1 2 3 4 5; do # see free_port
		port=$(free_port)
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
	fail "Apache did not start: $(cat "$work/apache/out" "$work/apache/error" 2>/dev/null)"
}

# `server_begins FILE [ARGUMENT…]`: starts a Python server, which writes its port to $work/port. Sets $port to this
# port.
server_begins() {
	rm -f "$work/port"
	"$python" -I -S "$@" "$work/port" &
	servers="$servers $!"
	until_true test -s "$work/port"
	port=$(cat "$work/port")
}

# `refusing_port_begins`: sets $port to a port that refuses connections until `end_servers`. A process binds the port
# without listening, so that no other program can get the port in the meantime.
refusing_port_begins() {
	server_begins -c '
import os, signal, socket, sys
place = socket.socket()
place.bind(("127.0.0.1", 0))
with open(sys.argv[1] + ".new", "w") as file:
    print(place.getsockname()[1], file=file)
os.rename(sys.argv[1] + ".new", sys.argv[1])
signal.pause()'
}

# `free_port`: prints a port that is free at the moment. Another program may take this port. Therefore a server that
# ends immediately is started again with another port.
free_port() {
	"$python" -I -S -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

forget() { rm -rf .reftest; }

# `expect_reported_once TEXT`: expects exactly one line on standard error, with this text.
expect_reported_once() {
	expect_says "$1"
	expectations=$((expectations + 1))
	[ "$(wc -l <"$work/err")" = 1 ] || fail "$step: expected exactly one message"
}

# `expect_within MS COMMAND…`: expects the command to end within MS milliseconds.
expect_within() {
	expectations=$((expectations + 1))
	most=$1
	shift
	from=$(date +%s%N)
	"$@"
	took=$((($(date +%s%N) - from) / 1000000))
	[ "$took" -le "$most" ] || fail "$step: took $took ms, more than $most"
}

#!/bin/sh
# Connects through TLS to a real server, whose certificate is signed by an authority that this test creates. A client
# that trusts this authority shares verdicts as usual. No data is sent to a server without TLS, or to a server whose
# certificate has expired, is for another name or is signed by an unknown authority. In these cases, one message says
# what the user can do, and the result of the run is the same as without a remote.
. "$(dirname "$0")/../harness.sh"
. "$top/tests/e2e/remotes.sh"
command -v openssl >/dev/null || fail "there is no openssl: tools/setup.sh --tests installs it"
unset CURL_CA_BUNDLE SSL_CERT_FILE SSL_CERT_DIR
given tiny_gemm
cat >"$work/tls.conf" <<'END'
[req]
distinguished_name = name
prompt = no
[name]
CN = reftest test
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign
[here]
subjectAltName = IP:127.0.0.1
[elsewhere]
subjectAltName = DNS:cache.example
END
tls() { openssl "$@" 2>"$work/openssl" || fail "openssl $1: $(cat "$work/openssl")"; }
key="-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -config $work/tls.conf"
for authority in ours theirs; do
	# shellcheck disable=SC2086 # words
	tls req -x509 $key -extensions authority -subj "/CN=$authority" -days 2 -keyout "$work/$authority.key" \
		-out "$work/$authority.pem"
done
certificate() { # certificate FILE AUTHORITY EXTENSIONS [DAYS]: creates a server's key and certificate
	# shellcheck disable=SC2086 # words
	tls req $key -keyout "$work/$1.key" -out "$work/$1.csr"
	tls x509 -req -in "$work/$1.csr" -CA "$work/$2.pem" -CAkey "$work/$2.key" -CAcreateserial -days "${4:-1}" \
		-extfile "$work/tls.conf" -extensions "$3" -out "$work/$1.crt"
	cat "$work/$1.key" "$work/$1.crt" >"$work/$1.tls"
}
certificate right ours here
certificate other_name ours elsewhere
certificate expired ours here -1

export REFTEST_REMOTE
https() { # https FILE: starts a server with this certificate
	TLS_PEM=$work/$1.tls
	export TLS_PEM
	http_begins
	unset TLS_PEM
	REFTEST_REMOTE=https://${http#http://}/true
}
https right
SSL_CERT_FILE=$work/ours.pem
export SSL_CERT_FILE
verify
expect_exit 0
all=$(value "s['cases_run']")
[ ! -s "$work/err" ] || fail "$step: unexpected message: $(cat "$work/err")"
[ "$(grep -c '^PUT /true/ac/.* 200$' "$work/http.log")" = $((2 * all)) ] || fail "the server did not accept every verdict"
shares() {
	forget
	verify --cached-only
	expect_exit 0
	expect_cached "$all"
	[ ! -s "$work/err" ] || fail "$step: unexpected message: $(cat "$work/err")"
}
shares
cat "$work/theirs.pem" "$work/ours.pem" >"$work/both.pem"
CURL_CA_BUNDLE=$work/both.pem SSL_CERT_FILE=/nonexistent shares

does_not() { # does_not SENTENCE…: expects that the server is not used and that only local verdicts are accepted
	: >"$work/http.log"
	forget
	verify --cached-only
	expect_exit 3
	expect_cached 0
	expect_reported_once "$1"
	shift
	[ $# = 0 ] || expect_says "$@"
	[ ! -s "$work/http.log" ] || fail "$step: the server was queried: $(cat "$work/http.log")"
}
SSL_CERT_FILE=$work/theirs.pem
does_not 'SSL_CERT_FILE to a file' 'certificate' "$REFTEST_REMOTE" 'the run continues without the remote cache'
unset SSL_CERT_FILE
does_not 'SSL_CERT_FILE to a file'
verify # runs the missing cases, and sends no verdict
expect_exit 0
expect_ran "$all"
expect_reported_once 'SSL_CERT_FILE to a file'
[ ! -s "$work/http.log" ] || fail "$step: the server was queried: $(cat "$work/http.log")"
SSL_CERT_FILE=$work/no-such.pem
export SSL_CERT_FILE
does_not 'a file without a certificate (PEM)'
SSL_CERT_FILE=$work/ours.pem
shares # the same server and the right authority: verdicts are shared

# The certificate comes from the trusted authority, but it has expired, or it is for the name of another server.
end_servers
https other_name
does_not "a name that is in the server's certificate"
end_servers
https expired
does_not 'must be renewed' 'expired'

# The URL says http for a server with TLS, and https for a server without TLS.
end_servers
http_begins
REFTEST_REMOTE=https://${http#http://}/true
does_not 'check that the server supports TLS'
end_servers
https right
REFTEST_REMOTE=$http/true?timeout=5
does_not 'the remote cache http://'
end_servers

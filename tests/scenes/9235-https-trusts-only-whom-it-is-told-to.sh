#!/bin/sh
# 9235: through TLS, to a real server with a certificate of an authority that this scene makes: whoever is told of that
# authority shares verdicts as ever; of an authority that nobody knows, in another server's name, past its time, or where
# nothing speaks TLS, the server is told nothing, that is said once with what mends it, and the run comes to what it would
# have come to without.
. "$(dirname "$0")/scene.sh"
. "$top/tests/scenes/remotes.sh"
command -v openssl >/dev/null || fail "there is no openssl: tools/setup.sh --tests installs it"
unset CURL_CA_BUNDLE SSL_CERT_FILE SSL_CERT_DIR
given tiny_gemm
cat >"$work/tls.conf" <<'END'
[req]
distinguished_name = name
prompt = no
[name]
CN = reftest scene
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
certificate() { # FILE AUTHORITY EXTENSIONS [DAYS]: a server's key and certificate
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
https() { # FILE: a server with that certificate
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
[ ! -s "$work/err" ] || fail "$step: it had something to say: $(cat "$work/err")"
[ "$(grep -c '^PUT /true/ac/.* 200$' "$work/http.log")" = $((2 * all)) ] || fail "not every verdict was taken"
shares() {
	forget
	verify --cached-only
	expect_exit 0
	expect_cached "$all"
	[ ! -s "$work/err" ] || fail "$step: it had something to say: $(cat "$work/err")"
}
shares
cat "$work/theirs.pem" "$work/ours.pem" >"$work/both.pem"
CURL_CA_BUNDLE=$work/both.pem SSL_CERT_FILE=/nonexistent shares

does_not() { # SENTENCE…: nobody is asked, and there are no verdicts but one's own
	: >"$work/http.log"
	forget
	verify --cached-only
	expect_exit 3
	expect_cached 0
	expect_told_once "$1"
	shift
	[ $# = 0 ] || expect_says "$@"
	[ ! -s "$work/http.log" ] || fail "$step: it was asked all the same: $(cat "$work/http.log")"
}
SSL_CERT_FILE=$work/theirs.pem
does_not 'SSL_CERT_FILE names a file' 'certificate' "$REFTEST_REMOTE" 'the run goes on without it'
unset SSL_CERT_FILE
does_not 'SSL_CERT_FILE names a file'
verify # what is missing runs, and nobody is told of it
expect_exit 0
expect_ran "$all"
expect_told_once 'SSL_CERT_FILE names a file'
[ ! -s "$work/http.log" ] || fail "$step: it was asked all the same: $(cat "$work/http.log")"
SSL_CERT_FILE=$work/no-such.pem
export SSL_CERT_FILE
does_not 'there is no certificate (PEM)'
SSL_CERT_FILE=$work/ours.pem
shares # it was there all the time

# The same authority, and a certificate in another server's name, or one past its time.
end_servers
https other_name
does_not "a name that the server's certificate is for"
end_servers
https expired
does_not 'to be renewed' 'expired'

# No TLS where it is asked for, and nothing but TLS where it is not.
end_servers
http_begins
REFTEST_REMOTE=https://${http#http://}/true
does_not 'does it speak TLS there?'
end_servers
https right
REFTEST_REMOTE=$http/true?timeout=5
does_not 'the remote cache http://'
end_servers

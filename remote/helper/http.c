/* http - stores values in an HTTP cache in Bazel's layout. The path /cas/HASH contains the value with the SHA-256 HASH.
 * The path /ac/HASH, where HASH is the SHA-256 of a key, contains an ActionResult: a message with the SHA-256 of the
 * key's value (remote/action_result.h). Any server that supports GET and PUT works.
 *
 * One curl multi handle performs all requests: connections are reused, and with HTTP/2 many requests share a
 * connection. Redirects and other protocols are rejected. A transfer is aborted if its body is too long for a value.
 * The certificate of a server must match the server's name. The certificate must be signed by an authority that the
 * system trusts, or by an authority in the file that $CURL_CA_BUNDLE or $SSL_CERT_FILE names. (The curl program reads
 * these variables; libcurl itself does not.) */
#include "remote/helper/transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

enum { SLOTS = 32, CONNECTIONS = 8, ERROR_TEXT_MAX = REMOTE_VALUE_MAX + 4096 };

struct http {
	struct remote_url url;
	CURLM *multi;
	struct curl_slist *headers;
	const char *authorities; /* file with the certificates of trusted authorities; NULL: the system's authorities
				  * are trusted */
};

/* One request in progress. */
struct slot {
	CURL *easy;
	struct buf body; /* body of the request (PUT) or of the response */
	bool busy, too_long;
	int item;	    /* index of the key or request in the batch */
	int step;	    /* which request of the item this is, from 0; a lookup sends GET /ac and then GET /cas, a
			     * write sends PUT /cas and then PUT /ac for each key */
	struct hashed hash; /* hash of the value in /cas, for step 1 of a lookup */
	size_t size;
	char error[CURL_ERROR_SIZE];
};

/* A batch of lookups or of writes. */
struct batch {
	struct http *http;
	int64_t deadline;
	/* for writes: the time limit from one answer to the next; for lookups: 0 */
	int64_t wait_ms;
	struct slot slots[SLOTS];
	int next, count; /* next: number of started items; count: number of all items */
	int busy;
	const struct hashed *keys; /* for lookups */
	answer_taker *taker;
	void *context;
	const struct put_request *requests; /* for writes */
	int *kept;
	/* Called when a slot's request has ended with the HTTP status `status`. This function may start the next
	 * request of the same item. Returns -1 to end the whole batch with an error. */
	int (*ended)(struct batch *batch, struct slot *slot, long status, struct err *err);
	void (*begin)(struct batch *batch, struct slot *slot);
};

/* Returns the certificate file that the environment names, or NULL. */
static const char *find_authorities(void)
{
	static const char *const names[] = {"CURL_CA_BUNDLE", "SSL_CERT_FILE"};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const char *path = getenv(names[i]);

		if (path != NULL && *path != '\0')
			return path;
	}
	return NULL;
}

static void *http_open(const struct remote_url *url, struct err *err)
{
	struct http *http = calloc(1, sizeof *http);

	if (http == NULL || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		die_no_memory();
	http->url = *url;
	http->authorities = find_authorities();
	http->multi = curl_multi_init();
	http->headers = curl_slist_append(curl_slist_append(NULL, "Content-Type: application/byte-stream"), "Expect:");
	if (http->multi == NULL || http->headers == NULL) {
		err_set(err, "cannot be queried: libcurl cannot be initialised");
		return NULL;
	}
	curl_multi_setopt(http->multi, CURLMOPT_MAX_HOST_CONNECTIONS, (long)CONNECTIONS);
	return http;
}

static void http_close(void *self)
{
	struct http *http = self;

	curl_multi_cleanup(http->multi);
	curl_slist_free_all(http->headers);
	free(http);
}

static size_t take_bytes(char *bytes, size_t size, size_t count, void *context)
{
	struct slot *slot = context;

	if (slot->body.length + size * count > ERROR_TEXT_MAX) {
		slot->too_long = true;
		return 0; /* libcurl aborts a transfer if the callback does not return the number of received bytes */
	}
	buf_add(&slot->body, bytes, size * count);
	return size * count;
}

static void set_limits(CURL *easy)
{
#if LIBCURL_VERSION_NUM >= 0x075500
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
	curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
	curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
}

static void set_user(CURL *easy, const struct remote_url *url)
{
	if (url->user[0] == '\0' && url->password[0] == '\0')
		return;
	curl_easy_setopt(easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
	curl_easy_setopt(easy, CURLOPT_USERNAME, url->user);
	curl_easy_setopt(easy, CURLOPT_PASSWORD, url->password);
}

/* Starts a GET, or a PUT of the slot's body, for the URL BASE/{folder}/{hex}. */
static void send_request(struct batch *batch, struct slot *slot, bool put, const char *folder,
			 const struct hashed *name)
{
	char url[REMOTE_URL_TEXT_MAX + SHA256_HEX + 16];
	int64_t left = batch->deadline - transport_now_ms();
	CURL *easy = slot->easy;

	snprintf(url, sizeof url, "%s/%s/%s", batch->http->url.shown, folder, name->hex);
	curl_easy_reset(easy);
	set_limits(easy);
	set_user(easy, &batch->http->url);
	if (batch->http->authorities != NULL)
		curl_easy_setopt(easy, CURLOPT_CAINFO, batch->http->authorities);
	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_PRIVATE, slot);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, slot->error);
	curl_easy_setopt(easy, CURLOPT_USERAGENT, "reftest");
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
	curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L);
	/* A request has a timeout only if it belongs to a lookup. A request of a write may first have to wait for a free
	 * connection, and this wait would count toward a timeout. */
	if (batch->wait_ms == 0)
		curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)(left > 1 ? left : 1));
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_bytes);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, slot);
	if (put) { /* libcurl copies the request's body, because slot->body will receive the answer */
		curl_easy_setopt(easy, CURLOPT_HTTPHEADER, batch->http->headers);
		curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, "PUT");
		curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)slot->body.length);
		curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, slot->body.data);
	}
	buf_clear(&slot->body);
	slot->too_long = false;
	slot->error[0] = '\0';
	batch->busy += !slot->busy;
	slot->busy = true;
	curl_multi_add_handle(batch->http->multi, easy);
}

static void fill_slots(struct batch *batch)
{
	for (int i = 0; i < SLOTS && batch->next < batch->count; i++) {
		struct slot *slot = &batch->slots[i];

		if (slot->busy)
			continue;
		if (slot->easy == NULL && (slot->easy = curl_easy_init()) == NULL)
			die_no_memory();
		slot->item = batch->next++;
		slot->step = 0;
		batch->begin(batch, slot);
	}
}

/* Returns advice for the user if the check of the server's certificate has failed. OpenSSL's verify result is 10 if a
 * certificate has expired, and 0 or 1 if the certificate chain is not the cause of the failure. */
static const char *remedy_of_certificate(CURL *easy)
{
	long word = 0;

	curl_easy_getinfo(easy, CURLINFO_SSL_VERIFYRESULT, &word);
	return word == 10  ? "; the server's certificate must be renewed"
	       : word <= 1 ? "; REFTEST_REMOTE must use a name that is in the server's certificate"
			   : "; to trust your own authority, set SSL_CERT_FILE to a file with its "
			     "certificate (PEM)";
}

/* Returns advice to append to the error message, or "". */
static const char *remedy(CURL *easy, CURLcode code)
{
	switch (code) {
	case CURLE_PEER_FAILED_VERIFICATION:
		return remedy_of_certificate(easy);
	case CURLE_SSL_CACERT_BADFILE:
		return "; CURL_CA_BUNDLE or SSL_CERT_FILE names a file without a certificate (PEM)";
	case CURLE_SSL_CONNECT_ERROR:
		return "; check that the server supports TLS, or use http://";
	default:
		return "";
	}
}

static int trouble(const struct batch *batch, const struct slot *slot, CURLcode code, struct err *err)
{
	if (code == CURLE_OPERATION_TIMEDOUT)
		return err_set(err, "did not answer within %.3g s", batch->http->url.timeout_ms / 1000.0);
	return err_set(err, "cannot be queried (%s)%s",
		       err_show(slot->error[0] != '\0' ? slot->error : curl_easy_strerror(code)).text,
		       remedy(slot->easy, code));
}

static int take_message(struct batch *batch, const CURLMsg *message, struct err *err)
{
	CURL *easy = message->easy_handle;
	CURLcode code = message->data.result;
	struct slot *slot = NULL;
	long status = 0;

	curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&slot);
	curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
	curl_multi_remove_handle(batch->http->multi, easy);
	slot->busy = false;
	batch->busy--;
	if (code != CURLE_OK && !slot->too_long)
		return trouble(batch, slot, code, err);
	return batch->ended(batch, slot, status, err);
}

static int take_messages(struct batch *batch, struct err *err)
{
	CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(batch->http->multi, &left)) != NULL)
		if (message->msg == CURLMSG_DONE && take_message(batch, message, err) < 0)
			return -1;
	return 0;
}

static void free_slots(struct batch *batch)
{
	for (int i = 0; i < SLOTS; i++) {
		struct slot *slot = &batch->slots[i];

		if (slot->busy)
			curl_multi_remove_handle(batch->http->multi, slot->easy);
		curl_easy_cleanup(slot->easy);
		buf_free(&slot->body);
	}
}

static int run_batch(struct batch *batch, struct err *err)
{
	int rc = 0, running;

	for (fill_slots(batch); rc == 0 && batch->busy > 0; fill_slots(batch)) {
		int64_t left = batch->deadline - transport_now_ms();

		if (left <= 0)
			rc = err_set(err, "did not answer within %.3g s", batch->http->url.timeout_ms / 1000.0);
		else if (curl_multi_perform(batch->http->multi, &running) != CURLM_OK ||
			 curl_multi_poll(batch->http->multi, NULL, 0, running > 0 ? (int)left : 0, NULL) != CURLM_OK)
			rc = err_set(err, "cannot be queried: libcurl failed");
		else
			rc = take_messages(batch, err);
	}
	free_slots(batch);
	return rc;
}

/* ---- lookups ----------------------------------------------------------------------------------------------------- */

static void refuse(struct batch *batch, const struct slot *slot, const char *why)
{
	batch->taker(batch->context, slot->item, NULL, 0, why);
}

static void take_value(struct batch *batch, const struct slot *slot, const struct hashed *hash, const void *value,
		       size_t size)
{
	struct hashed found;

	transport_sha256(value, size, &found);
	if (size > REMOTE_VALUE_MAX)
		refuse(batch, slot, "the value is longer than a verdict can be");
	else if (strcmp(found.hex, hash->hex) != 0)
		refuse(batch, slot, "the bytes of the value do not match its SHA-256");
	else
		batch->taker(batch->context, slot->item, value, size, NULL);
}

static void take_action_result(struct batch *batch, struct slot *slot)
{
	struct action_result result;

	if (!action_result_read(slot->body.data, slot->body.length, &result)) {
		refuse(batch, slot, "the answer is not an ActionResult with one file");
		return;
	}
	memcpy(slot->hash.hex, result.hash, sizeof slot->hash.hex);
	slot->size = result.size;
	if (result.value != NULL) {
		take_value(batch, slot, &slot->hash, result.value, result.size);
	} else if (result.size > REMOTE_VALUE_MAX) {
		refuse(batch, slot, "the value is longer than a verdict can be");
	} else {
		slot->step = 1;
		send_request(batch, slot, false, "cas", &slot->hash);
	}
}

static int unexpected(long status, struct err *err)
{
	const char *hint = status >= 300 && status < 400
			       ? "; redirects are not followed: set REFTEST_REMOTE to the address to which the "
				 "redirect points"
			   : status == 401 || status == 403
			       ? "; the server requires a different user or password (https://USER:PASSWORD@…)"
			       : "";

	return err_set(err, "answered with HTTP status %ld%s", status, hint);
}

static int get_ended(struct batch *batch, struct slot *slot, long status, struct err *err)
{
	if (slot->too_long)
		refuse(batch, slot, "the value is longer than a verdict can be");
	else if (status == 404 || status == 410)
		return 0;
	else if (status != 200 && status != 204)
		return unexpected(status, err);
	else if (slot->step == 0)
		take_action_result(batch, slot);
	else
		take_value(batch, slot, &slot->hash, slot->body.data, slot->body.length);
	return 0;
}

static void get_begin(struct batch *batch, struct slot *slot)
{
	send_request(batch, slot, false, "ac", &batch->keys[slot->item]);
}

static int http_get(void *self, const struct hashed *keys, int count, int64_t deadline, answer_taker *taker,
		    void *context, struct err *err)
{
	struct batch batch = {.http = self,
			      .deadline = deadline,
			      .count = count,
			      .keys = keys,
			      .taker = taker,
			      .context = context,
			      .ended = get_ended,
			      .begin = get_begin};

	return run_batch(&batch, err);
}

/* ---- writes ---------------------------------------------------------------------------------------------------- */

/* Sends the value before the ActionResult that refers to it: servers reject an ActionResult whose files they do not
 * have. */
static void put_begin(struct batch *batch, struct slot *slot)
{
	const struct put_request *request = &batch->requests[slot->item];
	struct hashed hash;

	buf_clear(&slot->body);
	transport_sha256(request->value, request->length, &hash);
	if (slot->step == 0) {
		buf_add(&slot->body, request->value, request->length);
		send_request(batch, slot, true, "cas", &hash);
	} else {
		action_result_write(hash.hex, request->value, request->length, &slot->body);
		send_request(batch, slot, true, "ac", &request->keys[slot->step - 1]);
	}
}

static int put_ended(struct batch *batch, struct slot *slot, long status, struct err *err)
{
	if (slot->too_long)
		return err_set(err, "sent more data than was requested");
	if (status < 200 || status >= 300)
		return unexpected(status, err);
	batch->deadline = transport_now_ms() + batch->wait_ms;
	if (++slot->step <= batch->requests[slot->item].key_count)
		put_begin(batch, slot);
	else
		(*batch->kept)++;
	return 0;
}

static int http_put(void *self, const struct put_request *requests, int count, int64_t wait_ms, int *kept, struct err *err)
{
	struct batch batch = {.http = self,
			      .deadline = transport_now_ms() + wait_ms,
			      .wait_ms = wait_ms,
			      .count = count,
			      .requests = requests,
			      .kept = kept,
			      .ended = put_ended,
			      .begin = put_begin};

	return run_batch(&batch, err);
}

static void http_version(char *text, size_t size)
{
	const curl_version_info_data *info = curl_version_info(CURLVERSION_NOW);

	snprintf(text, size, "libcurl %s%s", info->version, (info->features & CURL_VERSION_HTTP2) != 0 ? " (HTTP/2)" : "");
}

const struct transport transport_http = {http_open, http_get, http_put, http_close, http_version};

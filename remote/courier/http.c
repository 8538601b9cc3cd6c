/* http - values as Bazel's HTTP caches hold them: the value itself below /cas under its own SHA-256, and below /ac
 * under the key's an ActionResult that names it (remote/action_result.h). Any server that takes GET and PUT does.
 *
 * One multi handle for all: connections are kept, and shared by many requests where the server speaks HTTP/2. No
 * redirect is followed, no other protocol spoken; a body that grows beyond what a value can be is cut off. A server's
 * certificate is held to its name and to the system's authorities, or to those in the file that $CURL_CA_BUNDLE or
 * $SSL_CERT_FILE names (as the curl program has it), which libcurl itself does not look at. */
#include "remote/courier/transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

enum { SLOTS = 32, CONNECTIONS = 8, MESSAGE_MAX = REMOTE_VALUE_MAX + 4096 };

struct http {
	struct place place;
	CURLM *multi;
	struct curl_slist *headers;
	const char *authorities; /* the file; NULL: the system's */
};

/* One request on its way. */
struct slot {
	CURL *easy;
	struct buf body; /* what came, or what is sent */
	bool busy, too_long;
	int item;	    /* of the batch: a key's place, a parcel */
	int step;	    /* get: 0 /ac, 1 /cas; put: 0 /cas, then 1 + the key */
	struct hashed hash; /* get, step 1: of the value */
	size_t size;
	char error[CURL_ERROR_SIZE];
};

/* A batch of either kind. */
struct batch {
	struct http *http;
	int64_t deadline;
	int64_t wait_ms; /* put: an answer moves the deadline to so long after it; get: 0 */
	struct slot slots[SLOTS];
	int next, count; /* items begun, and how many there are */
	int busy;
	const struct hashed *keys; /* get */
	answer_taker *taker;
	void *context;
	const struct parcel *parcels; /* put */
	int *kept;
	/* The request of a slot has ended with this status. -1: the whole batch has failed. It may begin the next step.
	 */
	int (*ended)(struct batch *batch, struct slot *slot, long status, struct err *err);
	void (*begin)(struct batch *batch, struct slot *slot);
};

/* The environment's, where it says something; NULL. */
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

static void *http_open(const struct place *place, struct err *err)
{
	struct http *http = calloc(1, sizeof *http);

	if (http == NULL || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		die_no_memory();
	http->place = *place;
	http->authorities = find_authorities();
	http->multi = curl_multi_init();
	http->headers = curl_slist_append(curl_slist_append(NULL, "Content-Type: application/octet-stream"), "Expect:");
	if (http->multi == NULL || http->headers == NULL) {
		err_set(err, "cannot be asked: libcurl does not begin");
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

	if (slot->body.length + size * count > MESSAGE_MAX) {
		slot->too_long = true;
		return 0; /* ends the transfer */
	}
	buf_add(&slot->body, bytes, size * count);
	return size * count;
}

/* What no answer may make us do. */
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

static void set_user(CURL *easy, const struct place *place)
{
	if (place->user[0] == '\0' && place->password[0] == '\0')
		return;
	curl_easy_setopt(easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
	curl_easy_setopt(easy, CURLOPT_USERNAME, place->user);
	curl_easy_setopt(easy, CURLOPT_PASSWORD, place->password);
}

/* Sends GET, or PUT of the slot's body, for BASE/{folder}/{hex}. */
static void send_request(struct batch *batch, struct slot *slot, bool put, const char *folder,
			 const struct hashed *name)
{
	char url[PLACE_TEXT_MAX + SHA256_HEX + 16];
	int64_t left = batch->deadline - transport_now_ms();
	CURL *easy = slot->easy;

	snprintf(url, sizeof url, "%s/%s/%s", batch->http->place.shown, folder, name->hex);
	curl_easy_reset(easy);
	set_limits(easy);
	set_user(easy, &batch->http->place);
	if (batch->http->authorities != NULL)
		curl_easy_setopt(easy, CURLOPT_CAINFO, batch->http->authorities);
	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_PRIVATE, slot);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, slot->error);
	curl_easy_setopt(easy, CURLOPT_USERAGENT, "reftest");
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
	curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L);
	if (batch->wait_ms == 0) /* else what waits for a connection behind others has no time of its own */
		curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)(left > 1 ? left : 1));
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_bytes);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, slot);
	if (put) { /* libcurl copies the body: what the server answers has the buffer to itself */
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

/* By OpenSSL's word on the chain of certificates: 0 or 1 if it was not that which was found wrong, 10 if it is too old.
 */
static const char *remedy_of_certificate(CURL *easy)
{
	long word = 0;

	curl_easy_getinfo(easy, CURLINFO_SSL_VERIFYRESULT, &word);
	return word == 10  ? "; it is the server's to be renewed"
	       : word <= 1 ? "; REFTEST_REMOTE must have a name that the server's certificate is for"
			   : "; an authority of your own is believed once SSL_CERT_FILE names a file with its "
			     "certificate (PEM)";
}

/* What the user can do about it; "": nothing that we know of. */
static const char *remedy(CURL *easy, CURLcode code)
{
	switch (code) {
	case CURLE_PEER_FAILED_VERIFICATION:
		return remedy_of_certificate(easy);
	case CURLE_SSL_CACERT_BADFILE:
		return "; CURL_CA_BUNDLE or SSL_CERT_FILE names a file in which there is no certificate (PEM)";
	case CURLE_SSL_CONNECT_ERROR:
		return "; does it speak TLS there? http:// is without";
	default:
		return "";
	}
}

static int trouble(const struct batch *batch, const struct slot *slot, CURLcode code, struct err *err)
{
	if (code == CURLE_OPERATION_TIMEDOUT)
		return err_set(err, "did not answer within %.3g s", batch->http->place.timeout_ms / 1000.0);
	return err_set(err, "cannot be asked (%s)%s",
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
			rc = err_set(err, "did not answer within %.3g s", batch->http->place.timeout_ms / 1000.0);
		else if (curl_multi_perform(batch->http->multi, &running) != CURLM_OK ||
			 curl_multi_poll(batch->http->multi, NULL, 0, running > 0 ? (int)left : 0, NULL) != CURLM_OK)
			rc = err_set(err, "cannot be asked: libcurl gave up");
		else
			rc = take_messages(batch, err);
	}
	free_slots(batch);
	return rc;
}

/* ---- looking up -------------------------------------------------------------------------------------------------- */

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
		refuse(batch, slot, "it is longer than any verdict");
	else if (strcmp(found.hex, hash->hex) != 0)
		refuse(batch, slot, "its bytes are not what their SHA-256 says");
	else
		batch->taker(batch->context, slot->item, value, size, NULL);
}

static void take_action_result(struct batch *batch, struct slot *slot)
{
	struct action_result result;

	if (!action_result_read(slot->body.data, slot->body.length, &result)) {
		refuse(batch, slot, "it is no ActionResult with one file");
		return;
	}
	memcpy(slot->hash.hex, result.hash, sizeof slot->hash.hex);
	slot->size = result.size;
	if (result.value != NULL) {
		take_value(batch, slot, &slot->hash, result.value, result.size);
	} else if (result.size > REMOTE_VALUE_MAX) {
		refuse(batch, slot, "it is longer than any verdict");
	} else {
		slot->step = 1;
		send_request(batch, slot, false, "cas", &slot->hash);
	}
}

static int unexpected(long status, struct err *err)
{
	const char *hint = status >= 300 && status < 400 ? "; redirects are not followed: give the address it points to"
			   : status == 401 || status == 403
			       ? "; it wants another user or password (https://USER:PASSWORD@…)"
			       : "";

	return err_set(err, "answered with HTTP status %ld%s", status, hint);
}

static int get_ended(struct batch *batch, struct slot *slot, long status, struct err *err)
{
	if (slot->too_long)
		refuse(batch, slot, "it is longer than any verdict");
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

/* ---- keeping ------------------------------------------------------------------------------------------------------
 */

/* The value goes before what names it: such a server refuses an ActionResult whose files it does not have. */
static void put_begin(struct batch *batch, struct slot *slot)
{
	const struct parcel *parcel = &batch->parcels[slot->item];
	struct hashed hash;

	buf_clear(&slot->body);
	transport_sha256(parcel->value, parcel->length, &hash);
	if (slot->step == 0) {
		buf_add(&slot->body, parcel->value, parcel->length);
		send_request(batch, slot, true, "cas", &hash);
	} else {
		action_result_write(hash.hex, parcel->value, parcel->length, &slot->body);
		send_request(batch, slot, true, "ac", &parcel->keys[slot->step - 1]);
	}
}

static int put_ended(struct batch *batch, struct slot *slot, long status, struct err *err)
{
	if (slot->too_long)
		return err_set(err, "answers more than anybody asked for");
	if (status < 200 || status >= 300)
		return unexpected(status, err);
	batch->deadline = transport_now_ms() + batch->wait_ms;
	if (++slot->step <= batch->parcels[slot->item].key_count)
		put_begin(batch, slot);
	else
		(*batch->kept)++;
	return 0;
}

static int http_put(void *self, const struct parcel *parcels, int count, int64_t wait_ms, int *kept, struct err *err)
{
	struct batch batch = {.http = self,
			      .deadline = transport_now_ms() + wait_ms,
			      .wait_ms = wait_ms,
			      .count = count,
			      .parcels = parcels,
			      .kept = kept,
			      .ended = put_ended,
			      .begin = put_begin};

	return run_batch(&batch, err);
}

static const char *http_version(void)
{
	static char text[64];
	const curl_version_info_data *info = curl_version_info(CURLVERSION_NOW);

	snprintf(text, sizeof text, "libcurl %s%s", info->version,
		 (info->features & CURL_VERSION_HTTP2) != 0 ? " (HTTP/2)" : "");
	return text;
}

const struct transport transport_http = {http_open, http_get, http_put, http_close, http_version};

/* rpc - reads and writes messages of JSON-RPC 2.0, one JSON object per line, as in the stdio transport of the Model
 * Context Protocol. The client is not trusted and may send any bytes. */
#ifndef REFTEST_SERVE_RPC_H
#define REFTEST_SERVE_RPC_H

#include <stdbool.h>
#include <stddef.h>

#include <cjson/cJSON.h>

#include "base/buf.h"
#include "base/err.h"

enum {
	RPC_LINE_BYTES = 4 << 20, /* the longest message */
	RPC_ID_BYTES = 200,	  /* the maximum length of an id as JSON */
};

/* The codes of errors. RPC_BUSY is a code of reftest; JSON-RPC defines the other codes. */
enum rpc_code {
	RPC_OK = 0,
	RPC_PARSE_ERROR = -32700,
	RPC_INVALID_REQUEST = -32600,
	RPC_UNKNOWN_METHOD = -32601,
	RPC_INVALID_PARAMS = -32602,
	RPC_BUSY = -32000 /* too many requests wait */
};

enum rpc_kind { RPC_REQUEST, RPC_NOTIFICATION, RPC_RESPONSE };

struct rpc_message {
	enum rpc_kind kind;
	char id[RPC_ID_BYTES]; /* as JSON: "7", "\"a\""; "null" for a notification, or if the id could not be read */
	const char *method;    /* NULL for responses */
	const cJSON *params;   /* an object or an array, or NULL */
	cJSON *tree;	       /* owned; freed by rpc_free */
};

/* Reads one message. On error, returns the error's code, sets `err`, and also sets `out->id` if the id could be read.
 * The caller must call rpc_free even after an error. */
enum rpc_code rpc_read(const char *line, size_t length, struct rpc_message *out, struct err *err);
void rpc_free(struct rpc_message *message);

/* Writes an id as JSON. Returns false if the id is neither a string nor an integer, or if it is too long. */
bool rpc_id_text(const cJSON *id, char out[RPC_ID_BYTES]);

/* Appends a response with its line feed. `result` is JSON. */
void rpc_result(struct buf *out, const char *id, const char *result);
void rpc_error(struct buf *out, const char *id, enum rpc_code code, const char *message);

#endif

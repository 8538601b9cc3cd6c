#include "remote/signature.h"

#include <stdlib.h>

int signature_open(const char *text, struct signing_key **signer, struct err *err)
{
	*signer = NULL;
	if (text == NULL || *text == '\0')
		return 0;
	*signer = signing_key_open(text, err);
	return *signer != NULL ? 1 : -1;
}

static enum signature_kind kind_of(const struct signing_key *signer)
{
	return signing_key_kind(signer) == SIGNING_KEY_HMAC_SHA256 ? SIGNATURE_HMAC_SHA256 : SIGNATURE_ED25519;
}

void signature_sign(const struct signing_key *signer, struct verdict_line *record)
{
	struct buf bytes = {0};

	record->signature_kind = SIGNATURE_NONE;
	record->signature_length = 0;
	if (signer == NULL || !signing_key_signs(signer))
		return;
	verdict_line_signed(record, &bytes);
	record->signature_kind = kind_of(signer);
	record->signature_length = signing_key_sign(signer, bytes.data, bytes.length, record->signature);
	buf_free(&bytes);
}

_Static_assert((int)VERDICT_LINE_SIGNATURE_MAX == (int)SIGNATURE_MAX, "a signature fits");

static void sign_record(void *context, struct verdict_line *record)
{
	signature_sign(context, record);
}

static int check_record(void *context, const struct verdict_line *record, struct err *err)
{
	return signature_check(context, record, err);
}

struct record_signer signature_signer(struct signing_key *signer)
{
	return (struct record_signer){signer, sign_record, check_record};
}

int signature_check(const struct signing_key *signer, const struct verdict_line *record, struct err *err)
{
	struct buf bytes = {0};

	if (signer == NULL)
		return 0;
	if (record->signature_kind == SIGNATURE_NONE)
		return err_set(err, "the record is not signed, but REFTEST_CACHE_KEY requires signatures");
	if (record->signature_kind != kind_of(signer))
		return err_set(err, "the record is signed with a different kind of key than REFTEST_CACHE_KEY");
	verdict_line_signed(record, &bytes);
	bool right = signing_key_check(signer, bytes.data, bytes.length, record->signature, record->signature_length);

	buf_free(&bytes);
	return right ? 0 : err_set(err, "the record's signature was not made with REFTEST_CACHE_KEY");
}

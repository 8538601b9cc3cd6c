#include "commands/signing.h"

#include <stdlib.h>

int signing_open(struct seal **seal, struct err *err)
{
	const char *text = getenv("REFTEST_CACHE_KEY");

	*seal = NULL;
	if (text == NULL || *text == '\0')
		return 0;
	*seal = seal_open(text, err);
	return *seal != NULL ? 1 : -1;
}

static enum signature_kind kind_of(const struct seal *seal)
{
	return seal_kind(seal) == SEAL_HMAC_SHA256 ? SIGNATURE_HMAC_SHA256 : SIGNATURE_ED25519;
}

void signing_sign(const struct seal *seal, struct portable *record, unsigned char room[SEAL_SIGNATURE_MAX])
{
	struct buf bytes = {0};

	record->signature_kind = SIGNATURE_NONE;
	record->signature = NULL;
	record->signature_length = 0;
	if (seal == NULL || !seal_signs(seal))
		return;
	portable_signed(record, &bytes);
	record->signature_kind = kind_of(seal);
	record->signature_length = seal_sign(seal, bytes.data, bytes.length, room);
	record->signature = room;
	buf_free(&bytes);
}

static void carry_sign(void *context, struct portable *record, unsigned char room[CARRY_SIGNATURE_MAX])
{
	signing_sign(context, record, room);
}

static int carry_check(void *context, const struct portable *record, struct err *err)
{
	return signing_check(context, record, err);
}

_Static_assert((int)CARRY_SIGNATURE_MAX == (int)SEAL_SIGNATURE_MAX, "a signature fits");

void signing_carry(struct seal *seal, struct carry_seal *out)
{
	*out = (struct carry_seal){seal, carry_sign, carry_check};
}

int signing_check(const struct seal *seal, const struct portable *record, struct err *err)
{
	struct buf bytes = {0};

	if (seal == NULL)
		return 0;
	if (record->signature_kind == SIGNATURE_NONE)
		return err_set(err, "it is not signed, and REFTEST_CACHE_KEY is set");
	if (record->signature_kind != kind_of(seal))
		return err_set(err, "it is signed with another kind of key than REFTEST_CACHE_KEY");
	portable_signed(record, &bytes);
	bool right = seal_check(seal, bytes.data, bytes.length, record->signature, record->signature_length);

	buf_free(&bytes);
	return right ? 0 : err_set(err, "its signature is not one of REFTEST_CACHE_KEY");
}

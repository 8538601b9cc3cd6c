#include "cache/witness.h"

static void text_or_absent(struct fields *out, struct arena *arena, const char *tag, const char *text)
{
	field_text(out, arena, tag, text != NULL ? text : "(none)");
}

void witness_fields(const char *ground_truth, const char *ground_truth_version, const char *device_class,
                    const char *torch, const char *cuda, const char *python, struct arena *arena, struct fields *out)
{
	text_or_absent(out, arena, "witness.ground_truth", ground_truth);
	text_or_absent(out, arena, "witness.ground_truth_version", ground_truth_version);
	text_or_absent(out, arena, "witness.device_class", device_class);
	text_or_absent(out, arena, "witness.torch", torch);
	text_or_absent(out, arena, "witness.cuda", cuda);
	if (python != NULL)
		field_text(out, arena, "witness.python", python);
}

struct digest verdict_witness(const struct verdict *v)
{
	struct fields fields = {0};
	struct arena arena = {0};

	witness_fields(v->ground_truth, verdict_truth_version(v, &arena), v->device_class, v->torch, v->cuda, v->python,
		       &arena, &fields);
	struct digest witness = fields_digest(&fields);

	arena_free(&arena);
	return witness;
}

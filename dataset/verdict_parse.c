#include "dataset/verdict.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "dataset/verdict_fields.h"

/* Limits of the text and of its lists. They are far above what real verdicts have: at most about 30 outputs, with a few
 * ground truths for each. */
enum { TEXT_BYTES = 16 << 20, OUTPUTS = 1024, CONSTANTS = 64, FINDINGS = 4096 };

static const int64_t EXACT_MAX = ((int64_t)1 << 53) - 1; /* the largest exact integer of JSON */

/* After an error, the reader continues with default values and keeps the first message. At the end, the verdict is
 * rejected. */
struct reader {
	struct arena *arena;
	struct err *err;
	bool damaged;
};

static void damaged(struct reader *r, const char *key, const char *wanted)
{
	if (!r->damaged)
		err_set(r->err, "this is not a verdict, or it is damaged: expected \"%s\" to be %s", key, wanted);
	r->damaged = true;
}

static const char *read_text(struct reader *r, const cJSON *object, const char *key, bool nullable)
{
	const cJSON *value = json_member(object, key);

	if (cJSON_IsString(value))
		return arena_string(r->arena, value->valuestring);
	if (!nullable || !cJSON_IsNull(value))
		damaged(r, key, nullable ? "a string or null" : "a string");
	return nullable ? NULL : "";
}

static double number_of(struct reader *r, const cJSON *value, const char *key)
{
	const char *text = cJSON_GetStringValue(value);

	if (cJSON_IsNumber(value))
		return value->valuedouble;
	if (text != NULL && strcmp(text, "nan") == 0)
		return NAN;
	if (text != NULL && strcmp(text, "inf") == 0)
		return INFINITY;
	if (text != NULL && strcmp(text, "-inf") == 0)
		return -INFINITY;
	damaged(r, key, "a number");
	return 0;
}

static double read_number(struct reader *r, const cJSON *object, const char *key)
{
	return number_of(r, json_member(object, key), key);
}

static int64_t read_integer(struct reader *r, const cJSON *object, const char *key, int64_t least, int64_t most)
{
	int64_t value;

	if (json_integer(json_member(object, key), &value) && value >= least && value <= most)
		return value;
	damaged(r, key, "an integer within its bounds");
	return least;
}

static bool read_bool(struct reader *r, const cJSON *object, const char *key)
{
	const cJSON *value = json_member(object, key);

	if (!cJSON_IsBool(value))
		damaged(r, key, "true or false");
	return cJSON_IsTrue(value);
}

/* Reads a boolean; an absent one is false. */
static bool read_flag(struct reader *r, const cJSON *object, const char *key)
{
	return json_member(object, key) != NULL && read_bool(r, object, key);
}

static enum status read_status(struct reader *r, const cJSON *object)
{
	const char *name = json_text_of(object, "status");
	enum status status = STATUS_INVALID;

	if (name == NULL || !status_parse(name, &status))
		damaged(r, "status", "the name of a status");
	return status;
}

static enum reason read_reason(struct reader *r, const cJSON *object)
{
	const cJSON *value = json_member(object, "reason");
	enum reason reason = REASON_NONE;

	if (!cJSON_IsNull(value) && (!cJSON_IsString(value) || !reason_parse(value->valuestring, &reason)))
		damaged(r, "reason", "the name of a reason or null");
	return reason;
}

/* Returns the first item of the list under `key`. Returns NULL if the value is not a list or has more than `most`
 * items. */
static const cJSON *read_list(struct reader *r, const cJSON *object, const char *key, int most, int *count)
{
	const cJSON *list = json_member(object, key);

	*count = 0;
	if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) > most) {
		damaged(r, key, "a list of bounded length");
		return NULL;
	}
	*count = cJSON_GetArraySize(list);
	return list->child;
}

/* Returns the number of elements of the shape. Indices of elements must be less than this number. */
static int64_t read_shape(struct reader *r, const cJSON *json, struct output_verdict *out)
{
	int64_t elements = 1;
	int count;

	out->rank = RANK_SCALAR;
	if (cJSON_IsNull(json_member(json, "shape")))
		return 1;
	out->rank = 0;
	for (const cJSON *item = read_list(r, json, "shape", RANK_MAX, &count); item != NULL; item = item->next) {
		int64_t *size = &out->shape[out->rank++];

		if (!json_integer(item, size) || *size < 0 || __builtin_mul_overflow(elements, *size, &elements)) {
			damaged(r, "shape", "a list of sizes");
			*size = 0;
			elements = 0;
		}
	}
	return elements;
}

static void read_metrics(struct reader *r, const cJSON *json, struct metrics *metrics)
{
	for (const struct verdict_field *field = verdict_fields; field->name != NULL; field++) {
		char *at = (char *)metrics + field->offset;

		if (field->kind == FIELD_INTEGER)
			*(int64_t *)at = read_integer(r, json, field->name, 0, EXACT_MAX);
		else if (field->kind == FIELD_NUMBER)
			*(double *)at = read_number(r, json, field->name);
		else
			*(bool *)at = read_bool(r, json, field->name);
	}
}

static void read_worst_list(struct reader *r, const cJSON *item, int64_t elements, struct worst *worst)
{
	int count = cJSON_GetArraySize(item);
	const cJSON *at = item->child;

	if (!cJSON_IsArray(item) || count < 2 || count > 4 || !json_integer(at, &worst->index) || worst->index < 0 ||
	    worst->index >= elements) {
		damaged(r, "worst", "a list of indices and values");
		return;
	}
	at = at->next;
	worst->reference = worst->ground_truth = number_of(r, at, "worst");
	if (count > 2) {
		at = at->next;
		worst->ground_truth = number_of(r, at, "worst");
	}
	worst->diff = count > 3 ? number_of(r, at->next, "worst") : fabs(worst->reference - worst->ground_truth);
}

static void read_worst(struct reader *r, const cJSON *json, int64_t elements, struct metrics *metrics)
{
	struct worst *worst = metrics->worst;
	const cJSON *item = read_list(r, json, "worst", METRICS_WORST, &metrics->worst_count);

	for (; item != NULL; item = item->next, worst++)
		read_worst_list(r, item, elements, worst);
}

static void read_output(struct reader *r, const cJSON *json, struct output_verdict *out)
{
	out->name = read_text(r, json, "name", false);
	out->ground_truth = read_text(r, json, "ground_truth", true);
	out->status = read_status(r, json);
	out->reason = read_reason(r, json);
	out->atol = read_number(r, json, "atol");
	out->rtol = read_number(r, json, "rtol");
	out->hit_ratio = read_number(r, json, "hit_ratio_needed");
	int64_t elements = read_shape(r, json, out);

	out->other_bits = read_flag(r, json, "other_bits");
	read_metrics(r, json, &out->metrics);
	if (out->metrics.hits > out->metrics.elements)
		damaged(r, "hits", "no more than the number of elements");
	read_worst(r, json, elements, &out->metrics);
}

static void read_outputs(struct reader *r, const cJSON *json, struct verdict *out)
{
	const cJSON *item = read_list(r, json, "outputs", OUTPUTS, &out->output_count);
	struct output_verdict *outputs = arena_array(r->arena, (size_t)out->output_count, sizeof *outputs);

	out->outputs = outputs;
	for (; item != NULL; item = item->next)
		read_output(r, item, outputs++);
}

static void read_constants(struct reader *r, const cJSON *json, struct verdict *out)
{
	const cJSON *item = read_list(r, json, "constants", CONSTANTS, &out->constant_count);
	struct named_value *constants = arena_array(r->arena, (size_t)out->constant_count, sizeof *constants);

	out->constants = constants;
	for (; item != NULL; item = item->next, constants++) {
		constants->name = read_text(r, item, "name", false);
		constants->value = read_number(r, item, "value");
		constants->source = read_text(r, item, "source", false);
	}
}

/* Reads a list of sentences. Returns NULL if the list is absent and not needed. */
static const char *const *read_sentences(struct reader *r, const cJSON *json, const char *key, bool needed, int most,
					 int *count)
{
	if (!needed && json_member(json, key) == NULL)
		return NULL;
	const cJSON *item = read_list(r, json, key, most, count);
	const char **sentences = arena_array(r->arena, (size_t)*count, sizeof *sentences);

	for (int i = 0; item != NULL; item = item->next, i++) {
		if (!cJSON_IsString(item))
			damaged(r, key, "a list of strings");
		sentences[i] = arena_string(r->arena, cJSON_IsString(item) ? item->valuestring : "");
	}
	return sentences;
}

/* Checks that a picture has rows, that all its rows have the same length, and that each letter stands for a level. */
static void check_heat(struct reader *r, const struct difference_map *map)
{
	size_t columns = map->rows > 0 ? strlen(map->heat[0]) : 0;
	bool good = columns > 0 && columns <= DIFFERENCE_SIDE;

	for (int i = 0; i < map->rows && good; i++)
		good = strlen(map->heat[i]) == columns && strspn(map->heat[i], "0123456789abcdefghijklmnopqrstuv") == columns;
	if (!good)
		damaged(r, "heat", "rows of levels");
}

static void read_difference(struct reader *r, const cJSON *json, struct difference_map *out)
{
	int count;
	const cJSON *item = read_list(r, json, "histogram", DIFFERENCE_LEVELS, &count);

	out->output = read_text(r, json, "output", false);
	out->row_axis = read_text(r, json, "row_axis", true);
	out->column_axis = read_text(r, json, "column_axis", true);
	out->row_length = read_integer(r, json, "row_length", 1, EXACT_MAX);
	out->column_length = read_integer(r, json, "column_length", 1, EXACT_MAX);
	out->heat = read_sentences(r, json, "heat", true, DIFFERENCE_SIDE, &out->rows);
	check_heat(r, out);
	for (int i = 0; item != NULL; item = item->next, i++)
		out->histogram[i] = cJSON_IsNumber(item) && item->valuedouble >= 0 && item->valuedouble <= (double)EXACT_MAX
					? (int64_t)item->valuedouble
					: 0;
}

/* Reads the pictures of differences. Verdicts of earlier versions of reftest have none. */
static void read_differences(struct reader *r, const cJSON *json, struct verdict *out)
{
	if (json_member(json, "differences") == NULL)
		return;
	const cJSON *item = read_list(r, json, "differences", OUTPUTS, &out->difference_count);
	struct difference_map *differences = arena_array(r->arena, (size_t)out->difference_count, sizeof *differences);

	out->differences = differences;
	for (; item != NULL; item = item->next, differences++)
		read_difference(r, item, differences);
}

static void read_diagnosis(struct reader *r, const cJSON *json, struct verdict *out)
{
	enum { DIAGNOSIS_LIST = 64 };

	out->diagnosis = read_sentences(r, json, "diagnosis", false, DIAGNOSIS_LIST, &out->diagnosis_count);
	out->diagnosed = cJSON_IsTrue(json_member(json, "diagnosed"));
	out->regions = read_sentences(r, json, "regions", false, OUTPUTS, &out->region_count);
	read_differences(r, json, out);
}

static struct latency_spread read_spread(struct reader *r, const cJSON *json, const char *key)
{
	const cJSON *spread = json_member(json, key);
	struct latency_spread out = {0};

	if (cJSON_IsNull(spread))
		return out;
	out.median = read_number(r, spread, "median");
	out.low = read_number(r, spread, "low");
	out.high = read_number(r, spread, "high");
	out.runs = (int)read_integer(r, spread, "runs", 1, INT32_MAX);
	return out;
}

/* Reads the latencies, which only verdicts of `reftest bench` have. */
static void read_latencies(struct reader *r, const cJSON *json, struct verdict *out)
{
	if (json_member(json, "latencies") == NULL)
		return;
	const cJSON *item = read_list(r, json, "latencies", LATENCIES_MAX, &out->latency_count);
	struct latency *latency = arena_array(r->arena, (size_t)out->latency_count, sizeof *latency);

	out->latencies = latency;
	for (; item != NULL; item = item->next, latency++) {
		latency->name = read_text(r, item, "name", false);
		latency->cuda_events = strcmp(read_text(r, item, "timer", false), "cuda_events") == 0;
		latency->warm = read_spread(r, item, "warm");
		latency->cold = read_spread(r, item, "cold");
	}
}

/* Reads the ground truths that were tried. If only builtin was tried, the verdict has no list of ground truths. */
static void read_tried(struct reader *r, const cJSON *json, struct verdict *out)
{
	const cJSON *item;
	struct tried_truth *tried;

	if (json_member(json, "witnesses") == NULL)
		return;
	out->all_tried = read_bool(r, json, "all_witnesses");
	item = read_list(r, json, "witnesses", GROUND_TRUTHS_MAX, &out->tried_count);
	tried = arena_array(r->arena, (size_t)out->tried_count, sizeof *tried);
	out->tried = tried;
	for (; item != NULL; item = item->next, tried++) {
		tried->name = read_text(r, item, "name", false);
		tried->version = read_text(r, item, "version", true);
		tried->passed_over = read_text(r, item, "passed_over", true);
		tried->accident = read_bool(r, item, "accident");
		tried->coarse = read_bool(r, item, "coarse");
		tried->not_asked = read_flag(r, item, "not_asked");
		tried->not_built = read_flag(r, item, "not_built");
		tried->seconds = read_number(r, item, "seconds");
		tried->prepared = read_number(r, item, "prepared");
		tried->margin = json_member(item, "margin") != NULL ? read_number(r, item, "margin") : NAN;
	}
}

/* Reads the margins on other drivers. Verdicts of earlier versions of reftest have none. */
static void read_drivers(struct reader *r, const cJSON *json, struct verdict *out)
{
	const cJSON *item;
	struct driver_margin *drivers;

	if (json_member(json, "drivers") == NULL)
		return;
	item = read_list(r, json, "drivers", DRIVER_MARGINS_MAX, &out->driver_count);
	drivers = arena_array(r->arena, (size_t)out->driver_count, sizeof *drivers);
	out->drivers = drivers;
	for (; item != NULL; item = item->next, drivers++) {
		drivers->driver = read_text(r, item, "driver", false);
		drivers->status = read_status(r, item);
		drivers->time = read_integer(r, item, "time", -EXACT_MAX, EXACT_MAX);
		drivers->margin = read_number(r, item, "margin");
	}
}

static enum check_result read_check_result(struct reader *r, const cJSON *json)
{
	const char *name = json_text_of(json, "result");

	for (int i = 0; name != NULL && i < CHECK_RESULTS; i++)
		if (strcmp(name, check_result_name((enum check_result)i)) == 0)
			return (enum check_result)i;
	damaged(r, "result", "the result of a check");
	return CHECK_NOT_RUN;
}

/* Reads the axes of a check. Verdicts of earlier versions of reftest have none. */
static void read_check_axes(struct reader *r, const cJSON *json, struct check *check)
{
	const cJSON *object = json_member(json, "axes"), *item;
	struct check_axis *axes;

	if (object == NULL)
		return;
	if (!cJSON_IsObject(object) || cJSON_GetArraySize(object) > CHECK_AXES_MAX) {
		damaged(r, "axes", "an object");
		return;
	}
	axes = arena_array(r->arena, (size_t)cJSON_GetArraySize(object), sizeof *axes);
	check->axes = axes;
	cJSON_ArrayForEach(item, object)
	{
		if (!cJSON_IsBool(item))
			damaged(r, "axes", "true or false");
		axes[check->axis_count++] = (struct check_axis){arena_string(r->arena, item->string), cJSON_IsTrue(item)};
	}
}

static void read_checks(struct reader *r, const cJSON *json, struct verdict *out)
{
	const cJSON *item;
	struct check *checks;

	if (json_member(json, "checks") == NULL)
		return;
	item = read_list(r, json, "checks", CHECKS_MAX, &out->check_count);
	checks = arena_array(r->arena, (size_t)out->check_count, sizeof *checks);
	out->checks = checks;
	for (; item != NULL; item = item->next, checks++) {
		checks->name = read_text(r, item, "name", false);
		checks->result = read_check_result(r, item);
		checks->evidence = read_text(r, item, "evidence", false);
		read_check_axes(r, item, checks);
	}
}

static void read_verdict(struct reader *r, const cJSON *json, struct verdict *out)
{
	out->status = read_status(r, json);
	out->reason = read_reason(r, json);
	out->message = read_text(r, json, "message", true);
	out->second_set = read_flag(r, json, "second_set");
	out->weak = read_bool(r, json, "weak");
	out->device_class = read_text(r, json, "device_class", true);
	out->device = read_text(r, json, "device", true);
	out->ground_truth = read_text(r, json, "ground_truth", true);
	out->ground_truth_version = read_text(r, json, "ground_truth_version", true);
	out->torch = read_text(r, json, "torch", true);
	out->cuda = read_text(r, json, "cuda", true);
	if (cJSON_HasObjectItem(json, "python"))
		out->python = read_text(r, json, "python", true);
	if (cJSON_HasObjectItem(json, "driver"))
		out->driver = read_text(r, json, "driver", true);
	if (cJSON_HasObjectItem(json, "containment"))
		out->containment = read_text(r, json, "containment", true);
	if (cJSON_HasObjectItem(json, "isolation")) {
		out->isolation = read_text(r, json, "isolation", true);
		out->isolation_reason = read_text(r, json, "isolation_reason", true);
	}
	if (cJSON_HasObjectItem(json, "after"))
		out->after = read_text(r, json, "after", true);
	out->seconds = read_number(r, json, "seconds");
	out->time = read_integer(r, json, "time", -EXACT_MAX, EXACT_MAX);
	out->elements = read_integer(r, json, "elements", 0, EXACT_MAX);
	out->reference_line = (int)read_integer(r, json, "reference_line", 0, INT32_MAX);
	read_outputs(r, json, out);
	read_constants(r, json, out);
	out->findings = read_sentences(r, json, "findings", true, FINDINGS, &out->finding_count);
	read_tried(r, json, out);
	read_drivers(r, json, out);
	read_checks(r, json, out);
	read_diagnosis(r, json, out);
	read_latencies(r, json, out);
}

const struct verdict *verdict_parse(const char *text, size_t length, struct arena *arena, struct err *err)
{
	const struct json_text json_text = {.name = "verdict", .text = text, .length = length, .first_line = 1};
	struct reader r = {.arena = arena, .err = err};

	if (length > TEXT_BYTES) {
		err_set(err, "this is not a verdict: the text has %zu bytes, more than the limit of %d", length,
		        TEXT_BYTES);
		return NULL;
	}
	cJSON *json = json_parse(&json_text, err);

	if (json == NULL)
		return NULL;
	struct verdict *out = arena_alloc(arena, sizeof *out);

	read_verdict(&r, json, out);
	cJSON_Delete(json);
	return r.damaged ? NULL : out;
}

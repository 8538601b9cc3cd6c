#include "dataset/verdict.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include "base/json.h"

/* Limits on lists. A verdict has a few ground truths for each of about 30 outputs at most. */
enum { TEXT_BYTES = 16 << 20, OUTPUTS = 1024, CONSTANTS = 64, FINDINGS = 4096 };

static const int64_t EXACT_MAX = ((int64_t)1 << 53) - 1; /* the largest exact integer of JSON */

/* --- names --------------------------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	enum status_group group;
	int severity;
} statuses[] = {
    [STATUS_PASSED] = {"passed", GROUP_VERIFIED, 0},   [STATUS_SKIPPED] = {"skipped", GROUP_UNVERIFIED, 10},
    [STATUS_ERROR] = {"error", GROUP_WRONG, 20},       [STATUS_FAILED] = {"failed", GROUP_WRONG, 30},
    [STATUS_INVALID] = {"invalid", GROUP_INVALID, 40}, [STATUS_CHECKED] = {"checked", GROUP_UNVERIFIED, 5},
};

_Static_assert(sizeof statuses / sizeof *statuses == STATUS_COUNT, "each status has a row");

static const struct {
	const char *name;
	bool transient; /* the next run of the same case may give another verdict */
	bool limit;
} reasons[REASON_COUNT] = {
    [REASON_SHAPE] = {"shape"},
    [REASON_DTYPE] = {"dtype"},
    [REASON_NUMERIC] = {"numeric"},
    [REASON_NONFINITE] = {"nonfinite"},
    [REASON_NONDETERMINISTIC] = {"nondeterministic"},
    [REASON_MUTATED_INPUT] = {"mutated_input"},
    [REASON_GROUND_TRUTHS_DISAGREE] = {"ground_truths_disagree"},
    [REASON_NO_GROUND_TRUTH] = {"no_ground_truth"},
    [REASON_MEMORY] = {"memory", .transient = true},
    [REASON_MISSING_BLOB] = {"missing_blob", .transient = true},
    [REASON_UNSUPPORTED_DEVICE] = {"unsupported_device", .transient = true},
    [REASON_WEAK] = {"weak"},
    [REASON_RAISED] = {"raised"},
    [REASON_CRASHED] = {"crashed", .transient = true},
    [REASON_TIMEOUT] = {"timeout", .transient = true},
    [REASON_GROUND_TRUTH] = {"ground_truth", .transient = true},
    [REASON_OUT_OF_BOUNDS] = {"out_of_bounds"},
    [REASON_NOT_CACHED] = {"not_cached"},
    [REASON_UNSUPPORTED_DTYPE] = {"unsupported_dtype"},
    [REASON_CHANGED] = {"changed", .transient = true},
    [REASON_MEMORY_LIMIT] = {"memory_limit", .transient = true, .limit = true},
    [REASON_PROCESS_LIMIT] = {"process_limit", .transient = true, .limit = true},
    [REASON_UNKNOWN_DTYPE] = {"unknown_dtype"},
    [REASON_NO_REFERENCE] = {"no_reference"},
    [REASON_INPUTS] = {"inputs"},
    [REASON_CONSTANTS] = {"constants"},
    [REASON_UNSTEADY] = {"unsteady"},
    [REASON_UNATTESTED] = {"unattested"},
    [REASON_FILE_LIMIT] = {"file_limit", .transient = true, .limit = true},
};

static const char *const check_results[CHECK_RESULTS] = {
    [CHECK_HOLDS] = "holds", [CHECK_FAILS] = "fails", [CHECK_NOT_RUN] = "not_run", [CHECK_PROPERTY] = "property"};

bool verdict_is_contained(const struct verdict *verdict)
{
	return verdict->containment != NULL ? strcmp(verdict->containment, "full") == 0 : verdict->torch == NULL;
}

const char *check_result_name(enum check_result result)
{
	return check_results[result];
}

const char *status_name(enum status status)
{
	return statuses[status].name;
}

enum status_group status_group(enum status status)
{
	return statuses[status].group;
}

int status_severity(enum status status)
{
	return statuses[status].severity;
}

const char *reason_name(enum reason reason)
{
	return reasons[reason].name;
}

bool reason_is_transient(enum reason reason)
{
	return reasons[reason].transient;
}

bool reason_is_limit(enum reason reason)
{
	return reasons[reason].limit;
}

bool status_parse(const char *name, enum status *out)
{
	for (int i = 0; i < STATUS_COUNT; i++)
		if (strcmp(statuses[i].name, name) == 0) {
			*out = (enum status)i;
			return true;
		}
	return false;
}

bool reason_parse(const char *name, enum reason *out)
{
	for (int i = REASON_NONE + 1; i < REASON_COUNT; i++)
		if (strcmp(reasons[i].name, name) == 0) {
			*out = (enum reason)i;
			return true;
		}
	return false;
}

/* --- the fields of metrics in JSON and in the struct --------------------------------------------------------- */

enum field_kind { FIELD_INTEGER, FIELD_NUMBER, FIELD_BOOL };

static const struct field {
	const char *name;
	enum field_kind kind;
	size_t offset; /* position of the member in struct metrics */
} fields[] = {
    {"elements", FIELD_INTEGER, offsetof(struct metrics, elements)},
    {"hits", FIELD_INTEGER, offsetof(struct metrics, hits)},
    {"nan_reference", FIELD_INTEGER, offsetof(struct metrics, nan_reference)},
    {"nan_ground_truth", FIELD_INTEGER, offsetof(struct metrics, nan_ground_truth)},
    {"inf_reference", FIELD_INTEGER, offsetof(struct metrics, inf_reference)},
    {"inf_ground_truth", FIELD_INTEGER, offsetof(struct metrics, inf_ground_truth)},
    {"max_abs", FIELD_NUMBER, offsetof(struct metrics, max_abs)},
    {"mean_abs", FIELD_NUMBER, offsetof(struct metrics, mean_abs)},
    {"max_rel", FIELD_NUMBER, offsetof(struct metrics, max_rel)},
    {"mean_rel", FIELD_NUMBER, offsetof(struct metrics, mean_rel)},
    {"cosine", FIELD_NUMBER, offsetof(struct metrics, cosine)},
    {"mse", FIELD_NUMBER, offsetof(struct metrics, mse)},
    {"margin", FIELD_NUMBER, offsetof(struct metrics, margin)},
    {"zeros_would_pass", FIELD_BOOL, offsetof(struct metrics, zeros_would_pass)},
    {"passed", FIELD_BOOL, offsetof(struct metrics, passed)},
};
enum { FIELDS = sizeof fields / sizeof *fields };

/* --- writing ------------------------------------------------------------------------------------------------- */

static void write_key(struct buf *out, const char *key)
{
	char last = out->length == 0 ? '{' : out->data[out->length - 1];

	if (last != '{' && last != '[')
		buf_text(out, ", ");
	buf_printf(out, "\"%s\": ", key);
}

static void write_text(struct buf *out, const char *key, const char *text)
{
	write_key(out, key);
	if (text == NULL)
		buf_text(out, "null");
	else
		buf_json_string(out, text);
}

static void write_number(struct buf *out, const char *key, double number)
{
	write_key(out, key);
	buf_json_number(out, number);
}

static void write_integer(struct buf *out, const char *key, int64_t number)
{
	write_key(out, key);
	buf_printf(out, "%" PRId64, number);
}

static void write_bool(struct buf *out, const char *key, bool value)
{
	write_key(out, key);
	buf_text(out, value ? "true" : "false");
}

static void write_state(struct buf *out, enum status status, enum reason reason)
{
	write_text(out, "status", status_name(status));
	write_text(out, "reason", reason_name(reason));
}

static void write_metrics(const struct metrics *metrics, struct buf *out)
{
	for (int i = 0; i < FIELDS; i++) {
		const char *at = (const char *)metrics + fields[i].offset;

		if (fields[i].kind == FIELD_INTEGER)
			write_integer(out, fields[i].name, *(const int64_t *)at);
		else if (fields[i].kind == FIELD_NUMBER)
			write_number(out, fields[i].name, *(const double *)at);
		else
			write_bool(out, fields[i].name, *(const bool *)at);
	}
}

static void write_integers(struct buf *out, const char *key, const int64_t *numbers, int count)
{
	write_key(out, key);
	buf_text(out, "[");
	for (int i = 0; i < count; i++)
		buf_printf(out, "%s%" PRId64, i == 0 ? "" : ", ", numbers[i]);
	buf_text(out, "]");
}

/* Converts a row-major index of an element to one index for each dimension, and writes these indices. */
static void write_place(struct buf *out, const struct output_verdict *output, int64_t flat)
{
	int64_t index[RANK_MAX];

	for (int i = output->rank - 1; i >= 0; i--) {
		int64_t size = output->shape[i] < 1 ? 1 : output->shape[i];

		index[i] = flat % size;
		flat /= size;
	}
	write_integers(out, "index", index, output->rank < 0 ? 0 : output->rank);
}

static bool same_bits(double a, double b)
{
	return memcmp(&a, &b, sizeof a) == 0;
}

/* Writes [[index, reference, ground truth, difference], …]. Omits a difference that the reader can compute from the two
 * values, and a ground truth that equals the reference. */
static void write_worst(const struct output_verdict *output, struct buf *out)
{
	write_key(out, "worst");
	buf_text(out, "[");
	for (int i = 0; i < output->metrics.worst_count; i++) {
		const struct worst *worst = &output->metrics.worst[i];
		bool follows = same_bits(worst->diff, fabs(worst->reference - worst->ground_truth));

		buf_printf(out, "%s[%" PRId64 ", ", i == 0 ? "" : ", ", worst->index);
		buf_json_number(out, worst->reference);
		if (!follows || !same_bits(worst->reference, worst->ground_truth)) {
			buf_text(out, ", ");
			buf_json_number(out, worst->ground_truth);
		}
		if (!follows) {
			buf_text(out, ", ");
			buf_json_number(out, worst->diff);
		}
		buf_text(out, "]");
	}
	buf_text(out, "]");
}

/* Writes the worst elements for the command line: objects, with one index for each dimension. */
static void write_shown_worst(const struct output_verdict *output, struct buf *out)
{
	write_key(out, "worst");
	buf_text(out, "[");
	for (int i = 0; i < output->metrics.worst_count; i++) {
		const struct worst *worst = &output->metrics.worst[i];

		buf_text(out, i == 0 ? "{" : ", {");
		write_place(out, output, worst->index);
		write_number(out, "reference", worst->reference);
		write_number(out, "ground_truth", worst->ground_truth);
		write_number(out, "diff", worst->diff);
		buf_text(out, "}");
	}
	buf_text(out, "]");
}

static void write_output(const struct output_verdict *output, struct buf *out)
{
	buf_text(out, "{");
	write_text(out, "name", output->name);
	write_text(out, "ground_truth", output->ground_truth);
	write_state(out, output->status, output->reason);
	write_number(out, "atol", output->atol);
	write_number(out, "rtol", output->rtol);
	write_number(out, "hit_ratio_needed", output->hit_ratio);
	if (output->other_bits)
		write_bool(out, "other_bits", true);
	if (output->rank == RANK_SCALAR)
		write_text(out, "shape", NULL);
	else
		write_integers(out, "shape", output->shape, output->rank);
	write_metrics(&output->metrics, out);
	write_worst(output, out);
	buf_text(out, "}");
}

static void write_constant(const struct named_value *constant, struct buf *out)
{
	buf_text(out, "{");
	write_text(out, "name", constant->name);
	write_number(out, "value", constant->value);
	write_text(out, "source", constant->source);
	buf_text(out, "}");
}

static void write_tried_truth(const struct tried_truth *tried, struct buf *out)
{
	buf_text(out, "{");
	write_text(out, "name", tried->name);
	write_text(out, "version", tried->version);
	write_text(out, "passed_over", tried->passed_over);
	write_bool(out, "accident", tried->accident);
	write_bool(out, "coarse", tried->coarse);
	if (tried->not_asked)
		write_bool(out, "not_asked", true);
	write_number(out, "seconds", tried->seconds);
	write_number(out, "prepared", tried->prepared);
	if (!isnan(tried->margin))
		write_number(out, "margin", tried->margin);
	buf_text(out, "}");
}

void verdict_write_tried(const struct verdict *verdict, struct buf *out)
{
	buf_text(out, "[");
	for (int i = 0; i < verdict->tried_count; i++) {
		buf_text(out, i == 0 ? "" : ", ");
		write_tried_truth(&verdict->tried[i], out);
	}
	buf_text(out, "]");
}

/* Writes the ground truths that were tried. If builtin is the only ground truth, the verdict has no such list, as in
 * earlier versions. */
static void write_tried(const struct verdict *verdict, struct buf *out)
{
	if (verdict->tried_count == 0)
		return;
	write_bool(out, "all_witnesses", verdict->all_tried);
	write_key(out, "witnesses");
	verdict_write_tried(verdict, out);
}

const char *verdict_truth_version(const struct verdict *verdict, struct arena *arena)
{
	struct buf text = {0};
	const char *copy;

	if (verdict->tried_count == 0 || (verdict->tried_count == 1 && !verdict->all_tried))
		return verdict->ground_truth_version;
	buf_text(&text, verdict->all_tried ? "all of " : "first of ");
	for (int i = 0; i < verdict->tried_count; i++)
		buf_printf(&text, "%s%s %s", i == 0 ? "" : "; ", verdict->tried[i].name,
		           verdict->tried[i].version == NULL ? "" : verdict->tried[i].version);
	copy = arena_copy(arena, text.data, text.length);
	buf_free(&text);
	return copy;
}

static void write_lists(const struct verdict *verdict, struct buf *out)
{
	write_key(out, "outputs");
	buf_text(out, "[");
	for (int i = 0; i < verdict->output_count; i++) {
		buf_text(out, i == 0 ? "" : ", ");
		write_output(&verdict->outputs[i], out);
	}
	buf_text(out, "], \"constants\": [");
	for (int i = 0; i < verdict->constant_count; i++) {
		buf_text(out, i == 0 ? "" : ", ");
		write_constant(&verdict->constants[i], out);
	}
	buf_text(out, "], \"findings\": ");
	buf_json_strings(out, verdict->findings, verdict->finding_count);
}

void verdict_write_diagnosis(const struct verdict *verdict, struct buf *out)
{
	buf_json_strings(out, verdict->diagnosis, verdict->diagnosis_count);
}

void verdict_write_regions(const struct verdict *verdict, struct buf *out)
{
	buf_json_strings(out, verdict->regions, verdict->region_count);
}

static void write_difference(const struct difference_map *d, struct buf *out)
{
	buf_text(out, "{\"output\": ");
	buf_json_string(out, d->output);
	write_text(out, "row_axis", d->row_axis);
	write_text(out, "column_axis", d->column_axis);
	write_integer(out, "row_length", d->row_length);
	write_integer(out, "column_length", d->column_length);
	write_key(out, "heat");
	buf_json_strings(out, d->heat, d->rows);
	write_integers(out, "histogram", d->histogram, DIFFERENCE_LEVELS);
	buf_text(out, "}");
}

void verdict_write_differences(const struct verdict *verdict, struct buf *out)
{
	buf_text(out, "[");
	for (int i = 0; i < verdict->difference_count; i++) {
		buf_text(out, i > 0 ? ", " : "");
		write_difference(&verdict->differences[i], out);
	}
	buf_text(out, "]");
}

/* Writes the cause of a failure. Verdicts without one have no such fields, as in earlier versions. */
static void write_diagnosis(const struct verdict *verdict, struct buf *out)
{
	if (verdict->diagnosed || verdict->diagnosis_count > 0) {
		write_key(out, "diagnosis");
		verdict_write_diagnosis(verdict, out);
	}
	if (verdict->diagnosed)
		write_bool(out, "diagnosed", true);
	if (verdict->region_count > 0) {
		write_key(out, "regions");
		verdict_write_regions(verdict, out);
	}
	if (verdict->difference_count > 0) {
		write_key(out, "differences");
		verdict_write_differences(verdict, out);
	}
}

/* Writes the axes of a check, if it has any: "axes": {"n": true}. */
static void write_check_axes(const struct check *check, struct buf *out)
{
	if (check->axis_count == 0)
		return;
	write_key(out, "axes");
	buf_text(out, "{");
	for (int i = 0; i < check->axis_count; i++) {
		buf_text(out, i > 0 ? ", " : "");
		buf_json_string(out, check->axes[i].name);
		buf_text(out, check->axes[i].holds ? ": true" : ": false");
	}
	buf_text(out, "}");
}

void verdict_write_checks(const struct verdict *verdict, struct buf *out)
{
	buf_text(out, "[");
	for (int i = 0; i < verdict->check_count; i++) {
		buf_text(out, i == 0 ? "{" : ", {");
		write_text(out, "name", verdict->checks[i].name);
		write_text(out, "result", check_result_name(verdict->checks[i].result));
		write_text(out, "evidence", verdict->checks[i].evidence);
		write_check_axes(&verdict->checks[i], out);
		buf_text(out, "}");
	}
	buf_text(out, "]");
}

/* Writes the checks of a case without ground truth. Other verdicts have no such list, as in earlier versions. */
static void write_checks(const struct verdict *verdict, struct buf *out)
{
	if (verdict->check_count == 0)
		return;
	write_key(out, "checks");
	verdict_write_checks(verdict, out);
}

static void write_spread(struct buf *out, const char *key, const struct latency_spread *spread)
{
	write_key(out, key);
	if (spread->runs == 0) {
		buf_text(out, "null");
		return;
	}
	buf_text(out, "{");
	write_number(out, "median", spread->median);
	write_number(out, "low", spread->low);
	write_number(out, "high", spread->high);
	write_integer(out, "runs", spread->runs);
	buf_text(out, "}");
}

void verdict_write_latencies(const struct verdict *verdict, struct buf *out)
{
	buf_text(out, "[");
	for (int i = 0; i < verdict->latency_count; i++) {
		buf_text(out, i == 0 ? "{" : ", {");
		write_text(out, "name", verdict->latencies[i].name);
		write_text(out, "timer", verdict->latencies[i].cuda_events ? "cuda_events" : "wall");
		write_spread(out, "warm", &verdict->latencies[i].warm);
		write_spread(out, "cold", &verdict->latencies[i].cold);
		buf_text(out, "}");
	}
	buf_text(out, "]");
}

void verdict_write(const struct verdict *verdict, struct buf *out)
{
	buf_text(out, "{");
	write_state(out, verdict->status, verdict->reason);
	write_text(out, "message", verdict->message);
	write_bool(out, "weak", verdict->weak);
	write_text(out, "device_class", verdict->device_class);
	write_text(out, "device", verdict->device);
	write_text(out, "ground_truth", verdict->ground_truth);
	write_text(out, "ground_truth_version", verdict->ground_truth_version);
	write_tried(verdict, out);
	write_text(out, "torch", verdict->torch);
	write_text(out, "cuda", verdict->cuda);
	if (verdict->containment != NULL)
		write_text(out, "containment", verdict->containment);
	if (verdict->isolation != NULL) {
		write_text(out, "isolation", verdict->isolation);
		write_text(out, "isolation_reason", verdict->isolation_reason);
	}
	write_number(out, "seconds", verdict->seconds);
	write_integer(out, "time", verdict->time);
	write_integer(out, "elements", verdict->elements);
	write_integer(out, "reference_line", verdict->reference_line);
	write_lists(verdict, out);
	write_diagnosis(verdict, out);
	write_checks(verdict, out);
	if (verdict->latency_count > 0) {
		write_key(out, "latencies");
		verdict_write_latencies(verdict, out);
	}
	buf_text(out, "}");
}

static void write_shown_output(const struct output_verdict *output, struct buf *out)
{
	const struct metrics *metrics = &output->metrics;

	buf_text(out, "{");
	write_text(out, "name", output->name);
	write_text(out, "ground_truth", output->ground_truth);
	write_state(out, output->status, output->reason);
	write_integer(out, "elements", metrics->elements);
	write_number(out, "atol", output->atol);
	write_number(out, "rtol", output->rtol);
	write_number(out, "hit_ratio_needed", output->hit_ratio);
	write_number(out, "margin", metrics->margin);
	if (output->other_bits)
		write_bool(out, "other_bits", true);
	write_bool(out, "zeros_would_pass", metrics->zeros_would_pass);
	write_number(out, "max_abs", metrics->max_abs);
	write_number(out, "max_rel", metrics->max_rel);
	write_number(out, "mean_abs", metrics->mean_abs);
	write_number(out, "mean_rel", metrics->mean_rel);
	write_number(out, "cosine", metrics->cosine);
	write_number(out, "mse", metrics->mse);
	write_number(out, "hit_ratio", metrics->elements == 0 ? 1 : (double)metrics->hits / (double)metrics->elements);
	write_integer(out, "nan_reference", metrics->nan_reference);
	write_integer(out, "nan_ground_truth", metrics->nan_ground_truth);
	write_integer(out, "inf_reference", metrics->inf_reference);
	write_integer(out, "inf_ground_truth", metrics->inf_ground_truth);
	write_shown_worst(output, out);
	buf_text(out, "}");
}

void verdict_write_outputs(const struct verdict *verdict, struct buf *out)
{
	buf_text(out, "[");
	for (int i = 0; i < verdict->output_count; i++) {
		buf_text(out, i == 0 ? "" : ", ");
		write_shown_output(&verdict->outputs[i], out);
	}
	buf_text(out, "]");
}

/* --- reading back -------------------------------------------------------------------------------------------- */

/* State of reading. After an error, the reader continues with default values and keeps the first message; the verdict
 * is then rejected. */
struct reader {
	struct arena *arena;
	struct err *err;
	bool damaged;
};

static void damaged(struct reader *r, const char *key, const char *wanted)
{
	if (!r->damaged)
		err_set(r->err, "not a verdict, or a damaged one: expected \"%s\" to be %s", key, wanted);
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

/* Returns the first item of the list under `key`. The list may have at most `most` items, and, if `objects`, only
 * objects. Returns NULL if the value is not such a list. */
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

/* Returns the number of elements of the shape, which is the limit for the indices of elements. */
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
	for (int i = 0; i < FIELDS; i++) {
		char *at = (char *)metrics + fields[i].offset;

		if (fields[i].kind == FIELD_INTEGER)
			*(int64_t *)at = read_integer(r, json, fields[i].name, 0, EXACT_MAX);
		else if (fields[i].kind == FIELD_NUMBER)
			*(double *)at = read_number(r, json, fields[i].name);
		else
			*(bool *)at = read_bool(r, json, fields[i].name);
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

	out->other_bits = json_member(json, "other_bits") != NULL && read_bool(r, json, "other_bits");
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

/* Reads a list of sentences. Returns NULL if the verdict has no such list and need not have it. */
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

/* Checks that a picture has rows, all of the same length, of letters that are levels. */
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

/* Reads the pictures of differences, which verdicts of earlier versions lack. */
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

/* Reads the ground truths that were tried. If builtin is the only ground truth, the verdict has no such list. */
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
		tried->not_asked = json_member(item, "not_asked") != NULL && read_bool(r, item, "not_asked");
		tried->seconds = read_number(r, item, "seconds");
		tried->prepared = read_number(r, item, "prepared");
		tried->margin = json_member(item, "margin") != NULL ? read_number(r, item, "margin") : NAN;
	}
}

static enum check_result read_check_result(struct reader *r, const cJSON *json)
{
	const char *name = json_text_of(json, "result");

	for (int i = 0; name != NULL && i < CHECK_RESULTS; i++)
		if (strcmp(name, check_results[i]) == 0)
			return (enum check_result)i;
	damaged(r, "result", "the result of a check");
	return CHECK_NOT_RUN;
}

/* Reads the axes of a check. Verdicts of earlier versions have none. */
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
	out->weak = read_bool(r, json, "weak");
	out->device_class = read_text(r, json, "device_class", true);
	out->device = read_text(r, json, "device", true);
	out->ground_truth = read_text(r, json, "ground_truth", true);
	out->ground_truth_version = read_text(r, json, "ground_truth_version", true);
	out->torch = read_text(r, json, "torch", true);
	out->cuda = read_text(r, json, "cuda", true);
	if (cJSON_HasObjectItem(json, "containment"))
		out->containment = read_text(r, json, "containment", true);
	if (cJSON_HasObjectItem(json, "isolation")) {
		out->isolation = read_text(r, json, "isolation", true);
		out->isolation_reason = read_text(r, json, "isolation_reason", true);
	}
	out->seconds = read_number(r, json, "seconds");
	out->time = read_integer(r, json, "time", -EXACT_MAX, EXACT_MAX);
	out->elements = read_integer(r, json, "elements", 0, EXACT_MAX);
	out->reference_line = (int)read_integer(r, json, "reference_line", 0, INT32_MAX);
	read_outputs(r, json, out);
	read_constants(r, json, out);
	out->findings = read_sentences(r, json, "findings", true, FINDINGS, &out->finding_count);
	read_tried(r, json, out);
	read_checks(r, json, out);
	read_diagnosis(r, json, out);
	read_latencies(r, json, out);
}

const struct verdict *verdict_parse(const char *text, size_t length, struct arena *arena, struct err *err)
{
	const struct json_text json_text = {.name = "verdict", .text = text, .length = length, .first_line = 1};
	struct reader r = {.arena = arena, .err = err};

	if (length > TEXT_BYTES) {
		err_set(err, "not a verdict: it has %zu bytes, more than the limit of %d", length,
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

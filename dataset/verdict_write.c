#include "dataset/verdict.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "dataset/verdict_fields.h"

/* Writes [item, …]; `write` is called with a pointer to each item, and with `out`. */
#define WRITE_LIST(items, count, write, out)                       \
	do {                                                       \
		buf_text(out, "[");                                \
		for (int item = 0; item < (count); item++) {       \
			buf_text(out, item == 0 ? "" : ", ");      \
			write(&(items)[item], out);                \
		}                                                  \
		buf_text(out, "]");                                \
	} while (0)

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
	for (const struct verdict_field *field = verdict_fields; field->name != NULL; field++) {
		const char *at = (const char *)metrics + field->offset;

		if (field->kind == FIELD_INTEGER)
			write_integer(out, field->name, *(const int64_t *)at);
		else if (field->kind == FIELD_NUMBER)
			write_number(out, field->name, *(const double *)at);
		else
			write_bool(out, field->name, *(const bool *)at);
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

/* Converts the row-major index of an element to one index for each dimension, and writes these indices. */
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

/* Writes [[index, reference, ground truth, difference], …]. Omits a difference that follows from the two values. Also
 * omits a value of the ground truth that equals the value of the reference. */
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

/* Writes the worst elements for the command line, as objects with one index for each dimension. */
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
	if (tried->not_built)
		write_bool(out, "not_built", true);
	write_number(out, "seconds", tried->seconds);
	write_number(out, "prepared", tried->prepared);
	if (!isnan(tried->margin))
		write_number(out, "margin", tried->margin);
	buf_text(out, "}");
}

void verdict_write_tried(const struct verdict *verdict, struct buf *out)
{
	WRITE_LIST(verdict->tried, verdict->tried_count, write_tried_truth, out);
}

/* Writes the ground truths that were tried. If only builtin was tried, writes no list, so that the text has the same
 * form as in earlier versions of reftest. */
static void write_tried(const struct verdict *verdict, struct buf *out)
{
	if (verdict->tried_count == 0)
		return;
	write_bool(out, "all_witnesses", verdict->all_tried);
	write_key(out, "witnesses");
	verdict_write_tried(verdict, out);
}

static void write_lists(const struct verdict *verdict, struct buf *out)
{
	write_key(out, "outputs");
	WRITE_LIST(verdict->outputs, verdict->output_count, write_output, out);
	write_key(out, "constants");
	WRITE_LIST(verdict->constants, verdict->constant_count, write_constant, out);
	write_key(out, "findings");
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
	WRITE_LIST(verdict->differences, verdict->difference_count, write_difference, out);
}

/* Writes the cause of a failure. If the cause is unknown, writes nothing, so that the text has the same form as in
 * earlier versions of reftest. */
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

/* Writes the axes of a check if the check has axes: "axes": {"n": true}. */
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

static void write_check(const struct check *check, struct buf *out)
{
	buf_text(out, "{");
	write_text(out, "name", check->name);
	write_text(out, "result", check_result_name(check->result));
	write_text(out, "evidence", check->evidence);
	write_check_axes(check, out);
	buf_text(out, "}");
}

void verdict_write_checks(const struct verdict *verdict, struct buf *out)
{
	WRITE_LIST(verdict->checks, verdict->check_count, write_check, out);
}

/* Writes the results of the checks that need no ground truth. If there are none, writes nothing, so that the text has
 * the same form as in earlier versions of reftest. */
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

static void write_latency(const struct latency *latency, struct buf *out)
{
	buf_text(out, "{");
	write_text(out, "name", latency->name);
	write_text(out, "timer", latency->cuda_events ? "cuda_events" : "wall");
	write_spread(out, "warm", &latency->warm);
	write_spread(out, "cold", &latency->cold);
	buf_text(out, "}");
}

void verdict_write_latencies(const struct verdict *verdict, struct buf *out)
{
	WRITE_LIST(verdict->latencies, verdict->latency_count, write_latency, out);
}

/* Writes the margins on other drivers. If the verdict has no such margins, writes nothing, so that the text has the
 * same form as in earlier versions of reftest. */
static void write_drivers(const struct verdict *verdict, struct buf *out)
{
	if (verdict->driver_count == 0)
		return;
	write_key(out, "drivers");
	buf_text(out, "[");
	for (int i = 0; i < verdict->driver_count; i++) {
		const struct driver_margin *other = &verdict->drivers[i];

		buf_text(out, i == 0 ? "{" : ", {");
		write_text(out, "driver", other->driver);
		write_text(out, "status", status_name(other->status));
		write_integer(out, "time", other->time);
		write_number(out, "margin", other->margin);
		buf_text(out, "}");
	}
	buf_text(out, "]");
}

void verdict_write(const struct verdict *verdict, struct buf *out)
{
	buf_text(out, "{");
	write_state(out, verdict->status, verdict->reason);
	write_text(out, "message", verdict->message);
	if (verdict->second_set)
		write_bool(out, "second_set", true);
	write_bool(out, "weak", verdict->weak);
	write_text(out, "device_class", verdict->device_class);
	write_text(out, "device", verdict->device);
	write_text(out, "ground_truth", verdict->ground_truth);
	write_text(out, "ground_truth_version", verdict->ground_truth_version);
	write_tried(verdict, out);
	write_text(out, "torch", verdict->torch);
	write_text(out, "cuda", verdict->cuda);
	if (verdict->python != NULL)
		write_text(out, "python", verdict->python);
	if (verdict->driver != NULL)
		write_text(out, "driver", verdict->driver);
	if (verdict->containment != NULL)
		write_text(out, "containment", verdict->containment);
	if (verdict->isolation != NULL) {
		write_text(out, "isolation", verdict->isolation);
		write_text(out, "isolation_reason", verdict->isolation_reason);
	}
	if (verdict->after != NULL)
		write_text(out, "after", verdict->after);
	write_number(out, "seconds", verdict->seconds);
	write_integer(out, "time", verdict->time);
	write_integer(out, "elements", verdict->elements);
	write_integer(out, "reference_line", verdict->reference_line);
	write_drivers(verdict, out);
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
	WRITE_LIST(verdict->outputs, verdict->output_count, write_shown_output, out);
}

#include "report/run_json.h"

#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "engine/approval_state.h"
#include "engine/definition_files.h"
#include "engine/settings.h"
#include "report/common_diagnosis.h"
#include "report/exit_status.h"
#include "report/ground_truth_matrix.h"
#include "report/totals.h"

static void json_real(struct buf *out, const char *key, double value)
{
	buf_printf(out, ", \"%s\": ", key);
	buf_json_number(out, value);
}

/* Writes the shard of this run, or null if the run is not sharded. */
static void json_shard(struct buf *out, const struct shard *shard)
{
	if (shard->count > 0)
		buf_printf(out, ", \"shard\": \"%d/%d\"", shard->number, shard->count);
	else
		buf_text(out, ", \"shard\": null");
}

static void json_axes(struct buf *out, const struct result *result, const struct case_result *c)
{
	const struct job *job = c->test->job;
	const char *comma = "";

	buf_text(out, ", \"axes\": {");
	for (int i = 0; job != NULL && i < job->problem.axis_count; i++)
		if (result->definition->axes[i].var && (job->input_code == NULL || job->input_code->given[i])) {
			buf_text(out, comma);
			buf_json_string(out, job->problem.axes[i].name);
			buf_printf(out, ": %" PRId64, job->axis[i]);
			comma = ", ";
		}
	buf_text(out, "}");
}

static void json_findings(struct buf *out, const struct case_result *c)
{
	const struct verdict *v = c->verdict;
	char edge[512];

	buf_text(out, ", \"findings\": [");
	for (int i = 0; v != NULL && i < v->finding_count; i++) {
		buf_text(out, i > 0 ? ", " : "");
		buf_json_string(out, v->findings[i]);
	}
	if (case_is_finding(c)) {
		snprintf(edge, sizeof edge, "%s is %s%s%s", c->test->id, status_name(v->status),
			 c->test->convention != NULL ? "; expected by convention: " : "",
			 c->test->convention != NULL ? c->test->convention : "");
		buf_text(out, v->finding_count > 0 ? ", " : "");
		buf_json_string(out, edge);
	}
	buf_text(out, "]");
}

/* Writes "full", or a list of what the reference could access besides its inputs and outputs. */
static void json_containment(struct buf *out, const char *text)
{
	if (text == NULL || strcmp(text, "full") == 0) {
		buf_json_next_member(out, "containment", text);
		return;
	}
	buf_text(out, ", \"containment\": [");
	for (const char *at = text; *at != '\0';) {
		size_t length = strcspn(at, ",");

		buf_text(out, at == text ? "" : ", ");
		buf_json_bytes(out, at, length);
		at += length + (at[length] == ',');
	}
	buf_text(out, "]");
}

static void json_list(struct buf *out, const char *key, void (*write)(const struct verdict *, struct buf *),
		      const struct verdict *v)
{
	buf_printf(out, ", \"%s\": ", key);
	write(v, out);
}

void report_json_case(struct buf *out, const struct result *result, const struct case_result *c)
{
	static const struct verdict none;
	const struct verdict *v = c->verdict != NULL ? c->verdict : &none;

	buf_text(out, "{");
	buf_json_member(out, "id", c->test->id);
	buf_json_next_member(out, "status", v != &none ? status_name(v->status) : "unknown");
	buf_json_next_member(out, "reason", v != &none ? reason_name(v->reason) : NULL);
	buf_json_next_member(out, "message", v->message);
	buf_printf(out, ", \"cached\": %s, \"kept\": %s, \"weak\": %s, ", c->cached ? "true" : "false",
	           c->in_store && v != &none ? "true" : "false", v->weak ? "true" : "false");
	buf_json_member(out, "convention", c->test->convention);
	buf_json_next_member(out, "why", c->why);
	buf_json_next_member(out, "device", v->device);
	buf_json_next_member(out, "device_class", v->device_class);
	buf_json_next_member(out, "ground_truth", v->ground_truth);
	buf_json_next_member(out, "ground_truth_version", v->ground_truth_version);
	json_list(out, "witnesses", verdict_write_tried, v);
	buf_json_next_member(out, "torch", v->torch);
	buf_json_next_member(out, "python", v->python);
	json_containment(out, v->containment);
	buf_json_next_member(out, "isolation", v->isolation);
	buf_json_next_member(out, "isolation_reason", v->isolation_reason);
	buf_json_next_member(out, "after", v->after);
	json_axes(out, result, c);
	json_real(out, "seconds", v->seconds);
	buf_printf(out, ", \"reference_line\": %d", v->reference_line);
	buf_json_next_member(out, "printed", c->printed);
	json_findings(out, c);
	json_list(out, "checks", verdict_write_checks, v);
	json_list(out, "diagnosis", verdict_write_diagnosis, v);
	json_list(out, "regions", verdict_write_regions, v);
	if (v->difference_count > 0)
		json_list(out, "differences", verdict_write_differences, v);
	if (v->latency_count > 0)
		json_list(out, "latencies", verdict_write_latencies, v);
	json_list(out, "outputs", verdict_write_outputs, v);
	buf_text(out, "}");
}

/* Writes the hidden constants (numbers that no field of the definition contains, such as an epsilon). If a verdict
 * contains the value of a constant, writes this value, because it was measured when the case ran. */
static void json_constants(struct buf *out, const struct result *result)
{
	const struct cases *made = result->made;

	buf_text(out, ", \"constants\": [");
	for (int i = 0; made != NULL && i < made->constant_count; i++) {
		const char *source = made->constants[i].source;
		double value = made->constants[i].value;

		for (int k = 0; k < result->case_count; k++) {
			const struct verdict *v = result->cases[k].verdict;

			for (int n = 0; v != NULL && n < v->constant_count; n++)
				if (strcmp(v->constants[n].name, made->constants[i].name) == 0) {
					value = v->constants[n].value;
					source = v->constants[n].source;
				}
		}
		buf_text(out, i > 0 ? ", {" : "{");
		buf_json_member(out, "name", made->constants[i].name);
		json_real(out, "value", value);
		buf_json_next_member(out, "source", source);
		buf_text(out, "}");
	}
	buf_text(out, "]");
}

static void json_notes(struct buf *out, const struct result *result)
{
	const struct definition *d = result->definition;
	const struct cases *made = result->made;
	const char *more[] = {made != NULL ? made->how_matched : NULL, made != NULL ? made->no_sizes : NULL, made != NULL ? made->init_failed : NULL,
	                      made != NULL ? made->no_gradients : NULL,
	                      result->outside};
	const char *comma = "";

	buf_text(out, ", \"notes\": [");
	for (int i = 0; d != NULL && i < d->note_count; i++, comma = ", ") {
		buf_text(out, comma);
		buf_json_string(out, d->notes[i]);
	}
	for (size_t i = 0; i < sizeof more / sizeof *more; i++)
		if (more[i] != NULL) {
			buf_text(out, comma);
			buf_json_string(out, more[i]);
			comma = ", ";
		}
	buf_text(out, "]");
}

void report_json_approval(struct buf *out, const struct result *result)
{
	const char *state = approval_state_name(approval_state_of(result));
	const struct approval *approval = result->approved.approval;
	struct arena arena = {0};

	if (state == NULL) {
		buf_text(out, ", \"approval\": null");
		return;
	}
	buf_text(out, ", \"approval\": {");
	buf_json_member(out, "state", state);
	buf_json_next_member(out, "date", approval != NULL ? approval->date : NULL);
	buf_json_next_member(out, "note", approval != NULL ? approval->note : NULL);
	buf_json_next_member(out, "message", approval_sentence(result, &arena));
	buf_text(out, "}");
	arena_free(&arena);
}

static void json_counts(struct buf *out, const struct summary *counts)
{
	const uint32_t by_status[] = {
	    [STATUS_PASSED] = counts->passed, [STATUS_SKIPPED] = counts->skipped, [STATUS_ERROR] = counts->errors,
	    [STATUS_FAILED] = counts->failed, [STATUS_INVALID] = counts->invalid, [STATUS_CHECKED] = counts->checked,
	};

	_Static_assert(sizeof by_status / sizeof *by_status == STATUS_COUNT, "`counts` has a member for each status");
	buf_printf(out, ", \"counts\": {\"cases\": %" PRIu32, counts->cases);
	for (int s = 0; s < STATUS_COUNT; s++)
		buf_printf(out, ", \"%s\": %" PRIu32, status_name((enum status)s), by_status[s]);
	buf_text(out, "}");
}

/* Writes the members that are known even if the definition's files were not read. (Files that have not changed are not
 * read.) */
static void json_status(struct buf *out, const struct result *result)
{
	buf_json_member(out, "name", result->file->name);
	buf_json_next_member(out, "op_type", result->file->op_type);
	buf_json_next_member(out, "status", result->known ? status_name(result->status) : "unknown");
	buf_json_next_member(out, "reason", reason_name(result->reason));
	buf_json_next_member(out, "message", result->message);
	buf_printf(out, ", \"changed\": %s", result->changed ? "true" : "false");
	json_counts(out, &result->counts);
}

static void json_short_definition(struct buf *out, const struct result *result)
{
	buf_text(out, "{");
	json_status(out, result);
	diagnosis_json(result, out);
	buf_text(out, "}");
}

static void json_definition(struct buf *out, const struct result *result)
{
	buf_text(out, "{");
	json_status(out, result);
	json_constants(out, result);
	buf_json_next_member(out, "family", result->made != NULL && result->made->op != NULL ? result->made->op->op->name : NULL);
	buf_json_next_member(out, "matched_by", result->made != NULL ? cases_matched(result->made) : NULL);
	buf_json_next_member(out, "fi_api", result->definition != NULL ? result->definition->fi_api : NULL);
	buf_json_next_member(out, "hf_id", result->definition != NULL ? result->definition->hf_id : NULL);
	buf_json_next_member(out, "bounds_from", report_has_dataset_bound(result) ? result->run->program->settings->file : NULL);
	json_notes(out, result);
	diagnosis_json(result, out);
	report_json_approval(out, result);
	buf_text(out, ", \"cases\": [");
	for (int i = 0; i < result->case_count; i++) {
		buf_text(out, i > 0 ? ",\n  " : "\n  ");
		report_json_case(out, result, &result->cases[i]);
	}
	buf_text(out, "]}");
}

/* With --ground-truth all, writes which ground truths are available for each op family, and the reasons why the others
 * are not available. (Verdicts do not contain these reasons.) */
static void json_truths(struct buf *out, const struct run *run)
{
	const struct truth_choice *choice = &run->machine.truths;
	const struct kernels_api *api = run->program->kernels.api;
	const struct ground_truths_matrix matrix = {
	    .device_class = run->machine.policy.device_class,
	    .facts = choice->facts,
	    .fact_count = choice->fact_count,
	    .ops = api == NULL ? NULL : api->ops,
	    .op_count = api == NULL ? 0 : api->op_count,
	    .trouble = choice->trouble,
	};

	if (!choice->all)
		return;
	buf_text(out, ",\n \"ground_truths\": ");
	ground_truths_matrix_json(&matrix, out);
}

/* Writes the settings of the dataset that took effect. */
static void json_settings(struct buf *out, const struct run *run)
{
	const struct settings *settings = run->program->settings;
	const char *between = "";

	for (int id = 0; id < SETTING_COUNT; id++) {
		if ((run->options->from_settings >> id & 1) == 0)
			continue;
		buf_printf(out, "%s{", between);
		buf_json_member(out, "key", settings->of[id].key);
		buf_json_next_member(out, "value", settings->of[id].text);
		buf_json_next_member(out, "file", settings->file);
		buf_printf(out, ", \"line\": %d}", settings->of[id].line);
		between = ", ";
	}
}

void report_json(const struct run *run, const struct report_options *options)
{
	struct totals totals = totals_of(run);
	struct buf out = {0};

	buf_text(&out, "{\"schema\": 1");
	buf_json_next_member(&out, "root", run->program->root);
	buf_printf(&out, ", \"summary\": {\"definitions\": %" PRId64, totals.definitions);
	for (int s = 0; s < STATUS_COUNT; s++)
		buf_printf(&out, ", \"%s\": %" PRId64, status_name((enum status)s), totals.by_status[s]);
	buf_printf(&out,
		   ", \"unknown\": %" PRId64 ", \"cases_run\": %" PRId64 ", \"cases_cached\": %" PRId64
		   ", \"cases_shared\": %" PRId64 ", \"elements\": %" PRId64,
		   totals.unknown, run->cases_run, run->cases_cached, run->cases_shared, totals.elements);
	json_real(&out, "seconds", run->seconds);
	buf_printf(&out, ", \"exit\": %d, \"interrupted\": %s, \"stopped\": %s, ", exit_status_of_runs(run, options->solutions, options->strict),
		   run->interrupted ? "true" : "false", run->stopped ? "true" : "false");
	buf_json_member(&out, "not_kept", run->not_stored);
	json_shard(&out, &run->options->shard);
	buf_json_next_member(&out, "device_class", run->machine.policy.device_class);
	json_containment(&out, run->containment);
	buf_printf(&out, ", \"accepted_from_elsewhere\": %s", run->machine.accepted != NULL ? "true" : "false");
	buf_text(&out, "},\n \"settings\": [");
	json_settings(&out, run);
	buf_text(&out, "],\n \"problems\": ");
	buf_json_strings(&out, run->problems, run->problem_count);
	buf_text(&out, ",\n \"definitions\": [");
	for (int i = 0; i < run->count; i++) {
		buf_text(&out, i > 0 ? ",\n " : "\n ");
		(options->no_cases ? json_short_definition : json_definition)(&out, run->results[i]);
		fwrite(out.data, 1, out.length, stdout);
		buf_clear(&out);
	}
	buf_text(&out, "]");
	json_truths(&out, run);
	if (options->solutions != NULL)
		options->solutions_json(options->solutions, &out);
	buf_text(&out, "}\n");
	fwrite(out.data, 1, out.length, stdout);
	buf_free(&out);
}

#include "engine/run_defaults.h"

#include <string.h>

#include "engine/accepted_states.h"
#include "engine/case_sizes.h"

static void default_sizes(const struct settings *settings, struct run_options *options)
{
	if (options->cases.sizes_given || settings->of[SETTING_SIZES].key == NULL)
		return;
	memcpy(options->cases.size, settings->size, sizeof settings->size);
	options->from_settings |= 1u << SETTING_SIZES;
}

/* Copies the bounds of the setting `tolerance`, and marks the setting as used. The mark is set even if options of the
 * command line replace all these bounds. */
static void default_tolerance(const struct settings *settings, struct run_options *options)
{
	if (settings->of[SETTING_TOLERANCE].key == NULL)
		return;
	memcpy(options->cases.dataset_by_dtype, settings->by_dtype, sizeof settings->by_dtype);
	options->cases.dataset_bounds = true;
	/* without the details of its cases, a result cannot say whether one of its bounds is from reftest.toml */
	options->details = true;
	options->from_settings |= 1u << SETTING_TOLERANCE;
}

void run_defaults(const struct settings *settings, struct run_options *options)
{
	static const struct settings none;

	settings = settings != NULL ? settings : &none;
	default_sizes(settings, options);
	default_tolerance(settings, options);
	if (options->device == NULL && settings->device != NULL) {
		options->device = settings->device;
		options->from_settings |= 1u << SETTING_DEVICE;
	}
	if (options->accept == NULL && settings->accept != NULL) {
		options->accept = settings->accept;
		options->from_settings |= 1u << SETTING_ACCEPT;
	}
	if (options->ground_truth == NULL && settings->ground_truth != NULL)
		options->from_settings |= 1u << SETTING_GROUND_TRUTH;
	if (options->required == NULL && settings->required != NULL)
		options->from_settings |= 1u << SETTING_REQUIRE_CONTAINMENT;
	if (options->device == NULL)
		options->device = "auto";
	options->accept_bits = accepted_states_read(options->accept);
}

int run_sizes_read(const char *list, struct case_options *cases, struct err *err)
{
	if (list == NULL)
		return 0;
	memset(cases->size, 0, sizeof cases->size);
	cases->sizes_given = true;
	return case_sizes_read(list, cases->size, err);
}

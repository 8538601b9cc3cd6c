#include "cli/command.h"

const struct command *const commands[] = {
    &command_verify, &command_status, &command_list, &command_explain, &command_tolerance, &command_coverage, &command_report, &command_drift,
    &command_watch,
    &command_check, &command_diff, &command_approve, &command_extract, &command_web, &command_affected,
    &command_generate, &command_bench, &command_clone, &command_cache, &command_key, &command_hook, &command_warm, &command_work,
    &command_serve,
    &command_doctor, &command_help, &command_document, &command_complete,
};

const int command_count = sizeof commands / sizeof commands[0];

int command_shown(void)
{
	int shown = 0;

	while (shown < command_count && !commands[shown]->hidden)
		shown++;
	return shown;
}

const char global_synopsis[] = "[--root DIR] COMMAND [options] [NAME…]";
const char global_summary[] = "verify reference implementations of GPU kernels against ground truth";

#define AT(member) offsetof(struct global_options, member)
const struct option_row global_rows[] = {
    {"--root", OPTION_FOLDER, AT(root), "DIR", NULL,
     "root folder of the dataset (default: $REFTEST_ROOT, then $FIB_DATASET_PATH, then the nearest parent folder that "
     "contains definitions/)"},
    {"-V, --version", OPTION_FLAG, AT(version), NULL, NULL, "print the version"},
};

const int global_row_count = sizeof global_rows / sizeof global_rows[0];

const struct exit_row exit_rows[] = {
    {EXIT_VERIFIED, "verified", "Every selected definition is verified. For other commands: the command succeeded."},
    {EXIT_FAILED, "failed", "A case failed, or a check found an error."},
    {EXIT_USAGE, "usage or invalid input", "The command line, a definition or a workload is invalid."},
    {EXIT_UNVERIFIED, "not verifiable here",
     "A case has no verdict and did not run: there is no device or no ground truth for it, or --cached-only was "
     "given."},
    {EXIT_INTERNAL, "internal", "reftest itself failed, or its output could not be written."},
    {EXIT_INTERRUPTED, "interrupted", "A signal interrupted the command."},
};

const int exit_row_count = sizeof exit_rows / sizeof exit_rows[0];

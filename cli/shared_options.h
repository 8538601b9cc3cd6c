/* shared_options - defines the options that several commands have, and applies their values to a run. An option that
 * only one command has is defined in the file of this command. The options of a command are in a struct shared_options,
 * or in a struct whose first member is a struct shared_options. If only one command has an option, the row of this
 * option uses AT(member), a macro of the command's file. If a command has a help text of its own for a shared option,
 * the row of this option uses SHARED(member). */
#ifndef REFTEST_CLI_SHARED_OPTIONS_H
#define REFTEST_CLI_SHARED_OPTIONS_H

#include <stdint.h>

#include "cli/options.h"
#include "engine/run.h"

/* If a command does not have an option, the member of this option keeps its default. */
struct shared_options {
	const char *root, *repos, *device, *device_class, *python, *ground_truth, *sizes, *required, *accept, *isolation, *format;
	const char *case_id[2]; /* --case and NULL */
	bool no_diagnosis, edge, backward, no_workloads, staged_arena, index, alone;
	int jobs;
	double atol, rtol, hit_ratio, timeout;
	uint64_t seed;
	int64_t memory;
	struct words op_types, tolerances;
};

#define SHARED(member) offsetof(struct shared_options, member)

/* Returns the default values of the options: the text format, no tolerance, 120 seconds. */
struct shared_options shared_options_default(void);

/* Sets the root of the program to the value of a --root after the command's name. If there is no such option, a --root
 * before the command's name remains the root. */
void shared_options_root(const struct shared_options *o, struct program *program);

/* Stores the root and the folder of checkouts in `program`, and fills in the options of a run in `out`. The strings in
 * `out` point into `o`. Returns 0, or -1 and sets `err` if a value is invalid. */
int shared_options_read(const struct shared_options *o, struct program *program, struct run_options *out, struct err *err);

/* Returns the options that a command must repeat to run one case of this run again: " --seed 3". */
const char *shared_options_repeat(const struct shared_options *o, struct arena *arena);

#define DEVICES "auto|cpu|cuda|cuda:N"
#define SIZES "small|medium|large"
/* The names that --help and the completions of --ground-truth offer. The list includes the names of the tables in
 * python/libraries/; the name of a new table must be added to the list. reftest finds out at run time which ground
 * truths are available. */
#define GROUND_TRUTHS \
	"auto|all|builtin|flashinfer|flashinfer_fa3|flashinfer_mask|flashinfer_trtllm|sglang|sgl_kernel|fla|fla_chunk|torch|fi_api|truth|chain|solution"

#define ROW_ROOT {"--root", OPTION_FOLDER, SHARED(root), "DIR", NULL, "root folder of the dataset"}
#define ROW_REPOS                                                                                              \
	{"--repos", OPTION_FOLDER, SHARED(repos), "DIR", NULL,                                                     \
	 "use the checkouts of FlashInfer and SGLang in DIR instead of installed libraries (default: the checkouts in " \
	 "repos_config.json, if a library is not installed)"}
#define ROW_OP_TYPE \
	{"--op-type", OPTION_OP_TYPES, SHARED(op_types), "T", NULL, "select the definitions of op_type T (repeatable)"}
#define ROW_INDEX {"--staged", OPTION_FLAG, SHARED(index), NULL, NULL, "read git's index instead of the working tree"}
#define ROW_BACKWARD \
	{"--backward", OPTION_FLAG, SHARED(backward), NULL, NULL, "also check the gradients through each reference"}
#define ROW_NO_DIAGNOSIS \
	{"--no-diagnosis", OPTION_FLAG, SHARED(no_diagnosis), NULL, NULL, "do not look for the causes of failures"}
#define ROW_EDGE                                            \
	{"--edge", OPTION_FLAG, SHARED(edge), NULL, NULL, \
	 "add edge cases (empty inputs, single elements, inputs for which implementations follow different conventions), " \
	 "and print findings"}
#define ROW_STAGED_ARENA \
	{"--staged-arena", OPTION_FLAG, SHARED(staged_arena), NULL, NULL, "copy tensors through host memory even if CUDA IPC works"}
#define ROW_ALONE \
	{"--alone", OPTION_FLAG, SHARED(alone), NULL, NULL, "do not query a running `reftest watch` of this dataset"}
#define ROW_NO_WORKLOADS \
	{"--no-workloads", OPTION_FLAG, SHARED(no_workloads), NULL, NULL, "omit the cases of workload files"}
#define ROW_DEVICE {"--device", OPTION_CHOICE, SHARED(device), "D", DEVICES, \
	 "device to run on; cuda: all GPUs that are visible; cuda:0,1: these two (default: reftest.toml, else auto)"}
#define ROW_DEVICE_OF_VERDICTS \
	{"--device", OPTION_CHOICE, SHARED(device), "D", DEVICES, \
	 "device whose verdicts are used (default: reftest.toml, else auto)"}
#define ROW_DEVICE_CLASS                                                    \
	{"--device-class", OPTION_TEXT,                                     \
	 SHARED(device_class), "C",                                             \
	 "cpu|sm_80|sm_90|sm_100", "count only verdicts of this device class, from any machine: cpu, sm_90, …"}
#define ROW_GROUND_TRUTH                                              \
	{"--ground-truth", OPTION_TEXT, SHARED(ground_truth), "NAMES", GROUND_TRUTHS, \
	 "implementations to compare with: auto (the best one available), all (every one, and all must agree), or names " \
	 "separated by commas (default: reftest.toml, else auto)"}
#define ROW_ACCEPT                                          \
	{"--accept", OPTION_CHOICES, SHARED(accept), "LIST", "checked|approved|unattested", \
	 "exit with 0 even if definitions are only checked. checked: all of them; approved: definitions that agree with " \
	 "an approved reference; unattested: definitions that agree with a ground truth that takes the value of a constant " \
	 "from the reference"}
#define ROW_SIZES \
	{"--sizes", OPTION_CHOICES, SHARED(sizes), "LIST", SIZES, "sizes of the generated cases (default: reftest.toml, else small,medium)"}
#define ROW_SEED {"--seed", OPTION_SEED, SHARED(seed), "N", NULL, "seed of the generated inputs (default: 0)"}
#define ROW_TOLERANCE                                                                  \
	{"--tolerance", OPTION_LIST, SHARED(tolerances), "[DTYPE=]ATOL[,RTOL[,HIT]]", NULL, \
	 "tolerance of every output, or of the outputs of one dtype; without RTOL, both are ATOL (repeatable)"}
#define ROW_ATOL {"--atol", OPTION_REAL, SHARED(atol), "X", NULL, "absolute tolerance of every output"}
#define ROW_RTOL {"--rtol", OPTION_REAL, SHARED(rtol), "X", NULL, "relative tolerance of every output"}
#define ROW_HIT_RATIO                                   \
	{"--hit-ratio", OPTION_REAL, SHARED(hit_ratio), "X", NULL, \
	 "fraction of the elements that must be within tolerance, above 0 and at most 1"}
#define ROW_TIMEOUT {"--timeout", OPTION_REAL, SHARED(timeout), "S", NULL, "seconds that one case may take (default: 120)"}
#define ROW_MEMORY                                            \
	{"--memory", OPTION_SIZE, SHARED(memory), "SIZE", NULL, \
	 "memory that a reference may use: bytes, or a number with K, M, G or T (default: 4G and 64 times the tensors of its " \
	 "largest case)"}
#define ROW_JOBS                                          \
	{"--jobs", OPTION_INT, SHARED(jobs), "N", NULL, \
	 "number of references that run in parallel (default: limited by the cores and the memory; `reftest doctor` " \
	 "prints it)"}
#define ROW_ISOLATION                                             \
	{"--isolation", OPTION_CHOICE, SHARED(isolation), "HOW", "own|kept", \
	 "own: every definition gets a process of its own; kept: references share a process if their source code shows that " \
	 "they leave nothing behind in it (default: own)"}
/* The names of gaps in the sandbox, which the table in workers/sandbox/sandbox_gaps.c defines. */
#define GAPS                                                                                                       \
	"none|full|files|attributes|network|local_services|signals|process_memory|process_list|ipc|capabilities|kernel|"       \
	"processes|disk|memory"
#define ROW_REQUIRE_CONTAINMENT                                             \
	{"--require-containment", OPTION_CHOICES, SHARED(required), "LIST", GAPS, \
	 "run a reference, or use its verdict, only if the reference can reach nothing in LIST; `full` stands for " \
	 "everything that LIST can contain (default: reftest.toml, else none)"}
#define ROW_PYTHON                                          \
	{"--python", OPTION_FILE, SHARED(python), "PATH", NULL, \
	 "Python interpreter with torch (default: $REFTEST_PYTHON, then .venv, then python3)"}
#define ROW_TEXT_OR_JSON {"--format", OPTION_CHOICE, SHARED(format), "F", "text|json", "output format (default: text)"}

#endif

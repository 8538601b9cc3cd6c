#include "testgen/vacuous_tests.h"

#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "engine/sparse_checkout.h"
#include "testgen/test_class.h"
#include "testgen/test_list.h"
#include "workers/pool/machine_resources.h"
#include "workers/pool/process.h"

extern char **environ;

enum { ANSWERS_MAX = 64 << 20, REASON_MAX = 400, MODULE_MAX = 100, PATH_SIZE = 4096 };

/* The hand-written test files, and the input for python/vacuous_tests.py: one line of JSON per file. */
struct questions {
	struct string_list paths;
	struct buf lines;
};

/* Finds the definition that the test file `file` is named after, and returns its element of `files`. If there is none,
 * returns NULL and counts the definitions whose names occur in the text of the test file: adds their number to `names`,
 * and sets `named` to the last of them. */
static const struct dataset_file *named_after(const struct dataset_file *files, int count, const char *file,
					      const struct buf *text, const struct dataset_file **named, int *names)
{
	size_t stem = strlen(file) - strlen("test_.py");

	for (int i = 0; i < count; i++) {
		if (strlen(files[i].name) == stem && memcmp(files[i].name, file + 5, stem) == 0)
			return &files[i];
		if (memmem(text->data, text->length, files[i].name, strlen(files[i].name)) == NULL)
			continue;
		*named = &files[i];
		(*names)++;
	}
	return NULL;
}

/* Returns the definition that a test file is named after or, if there is none, the only definition whose name occurs in
 * the file. Returns NULL if there is no such definition, or if it is not checked out. */
static const struct dataset_file *subject_of(const struct dataset *dataset, const struct sparse *sparse,
					     const char *file, const struct buf *text)
{
	const struct dataset_file *named = NULL, *away = NULL;
	int names = 0;
	const struct dataset_file *here =
	    named_after(dataset->definitions, dataset->definition_count, file, text, &named, &names);

	if (here != NULL || named_after(sparse->definitions, sparse->count, file, text, &away, &names) != NULL)
		return here;
	return names == 1 ? named : NULL;
}

static void add_question(struct questions *q, const struct dataset *dataset, const struct dataset_file *subject,
			 const char *file)
{
	const char *path = arena_printf(q->paths.arena, "%s%s", TESTS_FOLDER, file);
	const struct definition *definition = NULL;
	struct arena arena = {0};

	if (subject != NULL)
		definition = test_class_definition(dataset->fd, subject, &arena, NULL);
	string_list_add(&q->paths, path);
	buf_text(&q->lines, "{\"path\": ");
	buf_json_string(&q->lines, path);
	if (definition != NULL && definition->reference != NULL) {
		buf_text(&q->lines, ", \"reference\": ");
		buf_json_string(&q->lines, definition->reference);
		buf_text(&q->lines, ", \"entry_point\": ");
		buf_json_string(&q->lines, definition->entry_point);
		buf_text(&q->lines, ", \"about\": ");
		buf_json_string(&q->lines, subject->path);
	}
	buf_text(&q->lines, "}\n");
	arena_free(&arena);
}

/* Finds the hand-written test files. For each file that cannot be read, adds a message to `messages`. */
static int find_files(const struct dataset *dataset, const char *root, struct questions *q,
		      struct string_list *messages, struct err *err)
{
	struct arena *arena = messages->arena;
	struct sparse sparse = {.asked = false};
	struct test_list test_list;

	if (test_list_names(&test_list, dataset->fd, root, arena, err) < 0 ||
	    sparse_ask(&sparse, dataset, arena, err) < 0)
		return -1;
	for (int i = 0; i < test_list.count; i++) {
		const char *name = test_list.names[i];
		struct buf text = {0};
		struct err why = {""};
		enum owner owner;
		enum file_answer answer = test_list_read(&test_list, name, &text, &owner, &why);

		if (answer == FILE_ERROR)
			string_list_add(messages, arena_string(arena, why.text));
		if (answer == FILE_OK && owner != OWNER_REFTEST && text.length > 0)
			add_question(q, dataset, subject_of(dataset, &sparse, name, &text), name);
		buf_free(&text);
	}
	return 0;
}

/* Checks the form of a finding. Returns a description of what is wrong, or NULL. */
static const char *fault_of(const cJSON *finding)
{
	const char *reason = json_text_of(finding, "reason");
	int64_t line;

	if (!json_integer(json_member(finding, "line"), &line) || line < 1 || line > INT_MAX)
		return "a finding without a line";
	if (reason == NULL || *reason == '\0' || strlen(reason) > (size_t)REASON_MAX * 4)
		return "a finding without a reason";
	for (; *reason != '\0'; reason++)
		if ((unsigned char)*reason < 0x20 || *reason == 0x7f)
			return "a reason with control characters";
	return NULL;
}

static bool is_module_name(const cJSON *value)
{
	const char *name = cJSON_IsString(value) ? value->valuestring : "";
	size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");

	return length > 0 && length <= MODULE_MAX && name[length] == '\0';
}

static const char *fault_of_answer(const cJSON *json)
{
	const cJSON *findings = json_member(json, "findings"), *vacuous = json_member(json, "vacuous"),
		    *missing = json_member(json, "missing"), *finding;
	const char *fault = cJSON_IsArray(findings) ? NULL : "no findings";

	cJSON_ArrayForEach (finding, findings)
		fault = fault != NULL ? fault : fault_of(finding);
	if (fault == NULL && vacuous != NULL && !cJSON_IsBool(vacuous))
		fault = "a value of \"vacuous\" that is neither true nor false";
	if (fault == NULL && missing != NULL && !cJSON_IsNull(missing) && !is_module_name(missing))
		fault = "a value of \"missing\" that is not the name of a module";
	return fault;
}

int vacuous_tests_read_answer(const char *path, const char *line, size_t length, struct string_list *messages,
			      struct vacuous_answer *out, struct err *err)
{
	const struct json_text text = {"the answer", line, length, 1};
	cJSON *json = json_parse(&text, err);
	const char *fault = fault_of_answer(json), *missing = fault == NULL ? json_text_of(json, "missing") : NULL;
	const cJSON *finding;

	*out = (struct vacuous_answer){.vacuous = fault == NULL && cJSON_IsTrue(json_member(json, "vacuous")),
				       .missing = missing != NULL ? arena_string(messages->arena, missing) : NULL};
	if (json != NULL && fault != NULL)
		err_set(err, "the answer about %s has %s", err_show(path).text, fault);
	if (fault == NULL)
		cJSON_ArrayForEach (finding, json_member(json, "findings")) {
			const char *reason = arena_printf(messages->arena, "%d: %s", json_member(finding, "line")->valueint,
							  json_text_of(finding, "reason"));

			out->reason = out->reason == NULL ? reason : out->reason;
			string_list_add(messages, arena_printf(messages->arena, "%s:%s", path, reason));
		}
	cJSON_Delete(json);
	return fault == NULL ? 0 : -1;
}

struct vacuous_files {
	struct string_list paths, reasons;
};

/* Reads the answers of python/vacuous_tests.py, one line per test file, and returns the number of valid answers. Sets
 * `err` if a line is invalid. */
static int read_answers(const struct buf *answers, const struct questions *q, struct string_list *messages,
			struct vacuous_files *vacuous, struct vacuous_tests *out, struct err *err)
{
	size_t at = 0;
	int i = 0;

	for (; i < q->paths.count && at < answers->length; i++) {
		const char *line = answers->data + at, *end = memchr(line, '\n', answers->length - at);

		struct vacuous_answer answer;

		if (end == NULL || vacuous_tests_read_answer(q->paths.items[i], line, (size_t)(end - line), messages, &answer,
							     err) != 0)
			break;
		if (answer.vacuous) {
			string_list_add(&vacuous->paths, q->paths.items[i]);
			string_list_add(&vacuous->reasons, answer.reason != NULL ? answer.reason : "no test can fail");
		}
		out->uncollected += answer.missing != NULL;
		out->missing = out->missing == NULL ? answer.missing : out->missing;
		at = (size_t)(end - answers->data) + 1;
	}
	return i;
}

/* Writes the input for python/vacuous_tests.py to a memfd and returns its descriptor. (With a pipe, this process and
 * the script could block each other, because both would write and neither would read.) */
static int write_questions(const struct buf *lines, struct err *err)
{
	int fd = memfd_create("audit", MFD_CLOEXEC);

	if (fd >= 0 && (size_t)write(fd, lines->data, lines->length) == lines->length && lseek(fd, 0, SEEK_SET) == 0)
		return fd;
	err_errno(err, "cannot write the input of vacuous_tests.py");
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Runs python/vacuous_tests.py. If the script fails, sets `err`. Even then, `answers` contains the answers that the
 * script printed before it failed. */
static int ask(const struct questions *q, const char *python, const char *root, struct buf *answers,
	       struct err *err)
{
	char script[PATH_SIZE];
	const char *const words[] = {"-IS", script, root, NULL};
	int fd, rc;

	if (machine_script("vacuous_tests.py", "REFTEST_AUDIT", script, sizeof script, err) != 0 ||
	    (fd = write_questions(&q->lines, err)) < 0)
		return -1;
	rc = machine_ask_python(python, words, environ, fd, ANSWERS_MAX, answers, err);
	close(fd);
	return rc;
}

static int audit_files(const struct questions *q, const char *python, const char *root, struct string_list *messages,
		       struct vacuous_files *vacuous, struct vacuous_tests *out, struct err *err)
{
	struct buf answers = {0};
	struct err why = {""};
	int rc = ask(q, python, root, &answers, &why);
	int count = read_answers(&answers, q, messages, vacuous, out, &why);

	if (count < q->paths.count)
		rc = err_set(err, "cannot audit %s: %s", err_show(q->paths.items[count]).text,
			     why.text[0] != '\0' ? why.text : "vacuous_tests.py printed no finding for it");
	else if (rc != 0)
		err_set(err, "cannot audit %s: %s", TESTS_FOLDER, why.text);
	buf_free(&answers);
	return rc;
}

int vacuous_tests_find(const struct dataset *dataset, const char *root, const char *python, struct arena *arena,
		     struct vacuous_tests *out, struct err *err)
{
	struct string_list messages = {.arena = arena};
	struct vacuous_files vacuous = {{.arena = arena}, {.arena = arena}};
	struct questions q = {.paths = {.arena = arena}};
	char path[PATH_SIZE];
	int rc = find_files(dataset, root, &q, &messages, err);

	*out = (struct vacuous_tests){.files = q.paths.count};
	if (rc == 0 && q.paths.count > 0) {
		out->no_python = machine_python(python, root, path, sizeof path, err) != 0;
		out->python = arena_string(arena, path);
		rc = out->no_python ? -1 : audit_files(&q, path, root, &messages, &vacuous, out, err);
	}
	out->messages = messages.items;
	out->message_count = messages.count;
	out->vacuous = vacuous.paths.items;
	out->reasons = vacuous.reasons.items;
	out->vacuous_count = vacuous.paths.count;
	buf_free(&q.lines);
	return rc;
}

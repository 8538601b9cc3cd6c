#include "engine/staged_dataset.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/reftest_folder.h"
#include "base/sha256.h"
#include "base/shell_word.h"
#include "engine/solution_truth.h"
#include "git/objects.h"

enum { BLOB_BYTES = INT32_MAX, POINTER_BYTES = 1024, DAY_SECONDS = 24 * 60 * 60, DIFF_BYTES = 1 << 30 };

/* The paths that differ between git's index and HEAD. */
struct changes {
	bool asked, unknown; /* unknown: every path counts as changed */
	struct buf bytes;
	const char **paths; /* sorted paths, relative to the top of the working tree; they point into `bytes` */
	int count;
};

struct staged_solution {
	const char *definition, *path; /* relative to the root */
};

struct staged {
	struct repository repository;
	struct index index;
	struct buf bytes; /* the index file; paths point into it */
	struct arena *arena;
	const struct dataset *dataset;
	struct git objects;   /* git cat-file --batch */
	struct git ignored;  /* git check-ignore --stdin */
	struct changes changes;
	struct staged_solution *solutions; /* sorted by definition, then by path; see staged_list_solutions */
	int solution_count;
	const char *folder;  /* the folder for extracted blobs, relative to the root; NULL: not created yet */
	const char **placed; /* the extracted files; their paths are relative to the root */
	int placed_count, placed_room;
};

/* ---- finding the root -------------------------------------------------------------------------------------------- */

static bool is_folder(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Returns whether the index has an entry below "definitions/" in `folder`, which is "" or a folder such as
 * "data/set/". */
static bool lists_definitions(const struct index *index, const char *folder)
{
	size_t head = strlen(folder);

	for (int i = 0; i < index->count; i++)
		if (strncmp(index->entries[i].path, folder, head) == 0 &&
		    strncmp(index->entries[i].path + head, "definitions/", 12) == 0)
			return true;
	return false;
}

/* Returns whether the folder `prefix` of the repository contains a dataset, on disk or in git's index. If `climb` is
 * true, also searches the parent folders, and sets `prefix` to the folder with the dataset. */
static bool find_dataset(const struct repository *repository, const struct index *index, bool climb, char *prefix,
			 struct arena *arena)
{
	for (;;) {
		size_t length = strlen(prefix);

		if (lists_definitions(index, prefix) ||
		    is_folder(arena_printf(arena, "%s/%sdefinitions", repository->top, prefix)))
			return true;
		if (!climb || length == 0)
			return false;
		prefix[length - 1] = '\0';
		prefix[strrchr(prefix, '/') != NULL ? strrchr(prefix, '/') - prefix + 1 : 0] = '\0';
	}
}

/* Searches git's index for a dataset in `folder` or, if `climb` is true, in a parent of `folder`. Returns 1 and sets
 * `root` if a dataset is found, and 0 if none is found. Returns -1 and sets `err` on error. */
static int root_from_index(const char *folder, bool climb, char *root, size_t size, struct err *err)
{
	struct repository repository;
	struct arena arena = {0};
	struct buf bytes = {0};
	struct index index;
	int rc = -1;

	if (repository_find(folder, &repository, NULL) < 0)
		return 0;
	char *prefix = arena_string(&arena, repository.prefix);

	if (git_index(&repository, &bytes, &arena, &index, err) == 0)
		rc = find_dataset(&repository, &index, climb, prefix, &arena);
	if (rc > 0) {
		int length = (int)strlen(prefix) - 1; /* without the final '/' */
		const char *found = strcmp(prefix, repository.prefix) == 0 ? folder
				    : length < 0
					? repository.top
					: arena_printf(&arena, "%s/%.*s", repository.top, length, prefix);

		if (snprintf(root, size, "%s", found) >= (int)size)
			rc = err_set(err, "%s: the path is too long", found);
	}
	buf_free(&bytes);
	arena_free(&arena);
	return rc;
}

int staged_root(const char *given, char *root, size_t size, struct err *err)
{
	const char *named = dataset_named_root(given);
	struct err why = {""};
	int rc;

	if (named == NULL ? is_folder("definitions") : dataset_find_root(given, root, size, &why) == 0)
		return named == NULL ? dataset_find_root(given, root, size, err) : 0;
	rc = root_from_index(named != NULL ? named : ".", named == NULL, root, size, err);
	if (rc != 0)
		return rc < 0 ? -1 : 0;
	return named == NULL ? dataset_find_root(given, root, size, err)
			     : err_set(err, "%s; git's index has no definitions in this folder either", why.text);
}

/* ---- the dataset ------------------------------------------------------------------------------------------------- */

static struct object_name name_of(const struct staged *staged, const struct index_entry *entry)
{
	struct object_name name = {.length = (unsigned char)staged->repository.object_bytes};

	if (entry->conflict)
		return (struct object_name){0};
	memcpy(name.bytes, entry->object, name.length);
	return name;
}

static bool begins(const char *text, const char *head)
{
	return strncmp(text, head, strlen(head)) == 0;
}

/* Returns whether a scan of the dataset on disk would follow the symbolic link or submodule at `path`. A scan follows a
 * link in three places: the folder `kind` ("definitions") itself, the folders in `kind`, and the files with the suffix
 * `suffix` in these folders. */
static bool is_followed(const char *path, const char *kind, const char *suffix)
{
	size_t head = strlen(kind), tail = strlen(suffix), length = strlen(path);

	if (!begins(path, kind) || (path[head] != '/' && path[head] != '\0'))
		return false;
	if (path[head] == '\0')
		return true;
	const char *name = path + head + 1, *file = strchr(name, '/');

	if (file == NULL)
		return *name != '.';
	return strchr(file + 1, '/') == NULL && *name != '.' && file[1] != '.' &&
	       strcmp(path + length - tail, suffix) == 0;
}

static const char *not_followed(const struct index_entry *entry, const char *path, struct arena *arena)
{
	if (entry->kind == ENTRY_SUBMODULE)
		return arena_printf(arena,
				    "%s: git's index has a submodule at this path; a submodule's files are in its own "
				    "index, so verify the submodule with --root",
				    path);
	return arena_printf(arena,
			    "%s: git's index has a symbolic link at this path, which --staged does not follow; verify "
			    "the working tree without --staged",
			    path);
}

static int list_dataset(struct staged *staged, const char *root, struct dataset *dataset, struct err *err)
{
	size_t head = strlen(staged->repository.prefix), count = (size_t)staged->index.count;
	struct listed_file *files = arena_array(staged->arena, count, sizeof *files);
	const char **problems = arena_array(staged->arena, count, sizeof *problems);
	int listed = 0, problem_count = 0;

	for (size_t i = 0; i < count; i++) {
		const struct index_entry *entry = &staged->index.entries[i];
		const char *path = entry->path + head;

		if (strncmp(entry->path, staged->repository.prefix, head) != 0)
			continue;
		if (entry->kind == ENTRY_FILE &&
		    (begins(path, "definitions/") || begins(path, "workloads/") || begins(path, "truths/") ||
		     begins(path, "approved/")))
			files[listed++] = (struct listed_file){path, name_of(staged, entry)};
		else if (entry->kind != ENTRY_FILE &&
			 (is_followed(path, "definitions", ".json") || is_followed(path, "workloads", ".jsonl") ||
			  is_followed(path, "truths", ".py") || is_followed(path, "approved", ".json")))
			problems[problem_count++] = not_followed(entry, path, staged->arena);
	}
	if (dataset_listed(root, files, listed, staged->arena, dataset, err) < 0)
		return -1;
	dataset->problems = problems;
	dataset->problem_count = problem_count;
	return 0;
}

struct staged *staged_open(const char *root, struct arena *arena, struct dataset *dataset, struct err *err)
{
	struct staged *staged = arena_alloc(arena, sizeof *staged);

	*staged = (struct staged){.arena = arena, .dataset = dataset};
	if (repository_find(root, &staged->repository, err) == 0 &&
	    git_index(&staged->repository, &staged->bytes, arena, &staged->index, err) == 0 &&
	    list_dataset(staged, root, dataset, err) == 0)
		return staged;
	staged_close(staged);
	return NULL;
}

void staged_close(struct staged *staged)
{
	git_end(&staged->objects);
	git_end(&staged->ignored);
	for (int i = 0; i < staged->placed_count; i++)
		unlinkat(staged->dataset->fd, staged->placed[i], 0);
	if (staged->folder != NULL)
		unlinkat(staged->dataset->fd, staged->folder, AT_REMOVEDIR);
	buf_free(&staged->bytes);
	buf_free(&staged->changes.bytes);
}

/* ---- solutions --------------------------------------------------------------------------------------------------- */

static int compare_solutions(const void *a, const void *b)
{
	const struct staged_solution *left = a, *right = b;
	int order = strcmp(left->definition, right->definition);

	return order != 0 ? order : strcmp(left->path, right->path);
}

void staged_list_solutions(struct staged *staged, struct dataset *dataset)
{
	size_t head = strlen(staged->repository.prefix), count = (size_t)staged->index.count;
	const char **problems = arena_array(staged->arena, (size_t)dataset->problem_count + count, sizeof *problems);
	char definition[PATH_MAX];

	staged->solutions = arena_array(staged->arena, count, sizeof *staged->solutions);
	if (dataset->problem_count > 0)
		memcpy(problems, dataset->problems, (size_t)dataset->problem_count * sizeof *problems);
	for (size_t i = 0; i < count; i++) {
		const struct index_entry *entry = &staged->index.entries[i];
		const char *path = entry->path + head;

		if (strncmp(entry->path, staged->repository.prefix, head) != 0)
			continue;
		if (entry->kind != ENTRY_FILE && (is_solution_path(path) || strcmp(path, "solutions") == 0))
			problems[dataset->problem_count++] = not_followed(entry, path, staged->arena);
		else if (solution_definition_path(path, definition, sizeof definition))
			staged->solutions[staged->solution_count++] =
			    (struct staged_solution){arena_string(staged->arena, definition), path};
	}
	dataset->problems = problems;
	if (staged->solution_count > 1)
		qsort(staged->solutions, (size_t)staged->solution_count, sizeof *staged->solutions, compare_solutions);
}

/* Returns the index of the first solution of the definition, or of a definition that comes after it. */
static int first_solution(const struct staged *staged, const char *definition)
{
	int low = 0, high = staged->solution_count;

	while (low < high) {
		int middle = low + (high - low) / 2;

		if (strcmp(staged->solutions[middle].definition, definition) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const char **staged_solutions(const struct staged *staged, const char *definition, struct arena *arena, int *count)
{
	const char **out = arena_array(arena, SOLUTIONS_MAX, sizeof *out);

	*count = 0;
	for (int i = first_solution(staged, definition); i < staged->solution_count && *count < SOLUTIONS_MAX &&
							 strcmp(staged->solutions[i].definition, definition) == 0;
	     i++)
		out[(*count)++] = staged->solutions[i].path;
	return out;
}

/* ---- what the commit changes ------------------------------------------------------------------------------------- */

static int compare_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Runs git to list the paths that differ between the index and HEAD. Before the first commit, there is no HEAD, so
 * every path counts as changed. */
static void ask_changes(struct staged *staged)
{
	static const char *const head[] = {"rev-parse", "--quiet", "--verify", "HEAD^{commit}", NULL};
	static const char *const words[] = {"diff-index", "--cached", "--name-only", "--no-renames",
					    "-z",	  "HEAD",     "--",	     NULL};
	struct changes *changes = &staged->changes;
	size_t room = 0;

	changes->asked = true;
	changes->unknown = git_output(&staged->repository, head, PATH_MAX, &changes->bytes, NULL) < 0 ||
			   git_output(&staged->repository, words, DIFF_BYTES, &changes->bytes, NULL) < 0;
	if (changes->unknown)
		return;
	for (size_t i = 0; i < changes->bytes.length; i++)
		room += changes->bytes.data[i] == '\0';
	changes->paths = arena_array(staged->arena, room, sizeof *changes->paths);
	for (size_t at = 0; at < changes->bytes.length; at += strlen(changes->bytes.data + at) + 1)
		changes->paths[changes->count++] = changes->bytes.data + at;
	if (changes->count > 1)
		qsort(changes->paths, (size_t)changes->count, sizeof *changes->paths, compare_text);
}

bool staged_changes(struct staged *staged, const char *path)
{
	const struct changes *changes = &staged->changes;

	if (!changes->asked)
		ask_changes(staged);
	while (strncmp(path, "./", 2) == 0)
		path += 2;
	const char *wanted = arena_printf(staged->arena, "%s%s", staged->repository.prefix, path);

	return changes->unknown || (changes->count > 0 && bsearch(&wanted, changes->paths, (size_t)changes->count,
								   sizeof *changes->paths, compare_text) != NULL);
}

int staged_changed_files(struct staged *staged, struct arena *arena, const char ***files)
{
	const struct changes *changes = &staged->changes;
	size_t prefix = strlen(staged->repository.prefix);
	int count = 0;

	if (!changes->asked)
		ask_changes(staged);
	if (changes->unknown)
		return -1;
	*files = arena_array(arena, (size_t)changes->count + 1, sizeof **files);
	for (int i = 0; i < changes->count; i++)
		if (strncmp(changes->paths[i], staged->repository.prefix, prefix) == 0)
			(*files)[count++] = changes->paths[i] + prefix;
	return count;
}

/* ---- contents ---------------------------------------------------------------------------------------------------- */

static int conflict(struct staged *staged, const char *path, struct err *err)
{
	return err_set(err, "%s: the file has a merge conflict in git's index; resolve it, then `git add %s`", path,
		       arena_shell_word(staged->arena, path));
}

int staged_read(struct staged *staged, const char *path, const struct object_name *object, size_t limit,
		struct buf *out, struct err *err)
{
	if (object->length == 0)
		return conflict(staged, path, err);
	return git_object(&staged->objects, &staged->repository, object->bytes, path, limit, out, err);
}

/* Returns 1 if git ignores the path, and 0 if not. Returns -1 if `git check-ignore` exits without an answer, as for a
 * path in a submodule or beyond a symbolic link.
 *
 * Git answers with four strings: the .gitignore file, the number of the line, the pattern in this line, and the path.
 * If the pattern is empty (no pattern matched) or starts with '!', the path is not ignored. */
static int ask_ignored(struct staged *staged, const char *path)
{
	static const char *const words[] = {"check-ignore", "--stdin", "-z", "--verbose", "--non-matching", NULL};
	size_t length = strlen(path) + 1;
	int texts = 0;
	bool ignored = false;
	char byte;

	if (staged->ignored.process == 0 && git_start(&staged->ignored, &staged->repository, words, NULL) < 0)
		return -1;
	if (!file_write_all(staged->ignored.in, path, length))
		return -1;
	for (char before = '\0'; texts < 4 && read(staged->ignored.out, &byte, 1) == 1; before = byte) {
		ignored = ignored || (texts == 2 && before == '\0' && byte != '\0' && byte != '!');
		texts += byte == '\0';
	}
	return texts == 4 ? ignored : -1;
}

/* Returns whether git ignores a path. If git exits because of a path, this path counts as not ignored, and the next
 * call starts git again. */
static bool is_ignored(struct staged *staged, const char *path)
{
	int answer = ask_ignored(staged, path);

	if (answer < 0)
		git_end(&staged->ignored);
	return answer > 0;
}

enum staged_answer staged_find(struct staged *staged, const char *path, struct object_name *object, struct err *err)
{
	char full[PATH_MAX];

	while (strncmp(path, "./", 2) == 0)
		path += 2;
	snprintf(full, sizeof full, "%s%s", staged->repository.prefix, path);
	const struct index_entry *entry = index_find(&staged->index, full);

	*object = (struct object_name){0};
	if (entry == NULL && is_ignored(staged, full))
		return STAGED_IGNORED;
	if (entry == NULL || entry->kind != ENTRY_FILE) {
		err_set(err, "%s: the file is not in git's index, so it would be missing from the commit; run `git add %s`",
			path, arena_shell_word(staged->arena, path));
		return STAGED_NOT;
	}
	*object = name_of(staged, entry);
	if (object->length > 0)
		return STAGED_FOUND;
	conflict(staged, path, err);
	return STAGED_NOT;
}

/* ---- blobs ------------------------------------------------------------------------------------------------------- */

/* Parses a Git LFS pointer, "version …\noid sha256:HEX\nsize N\n" (the Git LFS specification). Returns false if the
 * text is not a pointer. */
static bool read_pointer(const struct buf *text, char hex[2 * SHA256_BYTES + 1], size_t *size)
{
	const char *oid, *bytes;

	if (text->length > POINTER_BYTES || text->length == 0 ||
	    !begins(text->data, "version https://git-lfs.github.com/spec/"))
		return false;
	oid = strstr(text->data, "\noid sha256:");
	bytes = strstr(text->data, "\nsize ");
	if (oid == NULL || bytes == NULL || strspn(oid + 12, "0123456789abcdef") != 2 * SHA256_BYTES)
		return false;
	memcpy(hex, oid + 12, 2 * SHA256_BYTES);
	hex[2 * SHA256_BYTES] = '\0';
	*size = strtoull(bytes + 6, NULL, 10);
	return true;
}

/* Computes two digests of a file in one pass: the SHA-256, which Git LFS uses, and reftest's own digest
 * (base/hash.h). */
struct both {
	struct sha256 sum;
	struct hash *hash;
};

static void add_to_both(const unsigned char *bytes, size_t length, void *context)
{
	struct both *both = context;

	sha256_add(&both->sum, bytes, length);
	hash_add(both->hash, bytes, length);
}

/* Returns whether the file has the SHA-256 `hex`, which an LFS pointer states. Computes `content` in the same pass as
 * the SHA-256, because another process may write to the file between two passes. */
static bool holds_stated(int fd, int64_t size, const char *hex, struct digest *content)
{
	struct both both = {.hash = hash_begin()};
	bool read = file_each_part(fd, 0, size, add_to_both, &both);
	unsigned char digest[SHA256_BYTES];
	char found[2 * SHA256_BYTES + 1];

	*content = hash_end(both.hash);
	sha256_end(&both.sum, digest);
	for (int i = 0; i < SHA256_BYTES; i++)
		snprintf(found + 2 * i, 3, "%02x", digest[i]);
	return read && strcmp(found, hex) == 0;
}

/* Maps the file into memory if it has the size and the SHA-256 of the LFS pointer. */
static bool map_stated(int folder, const char *path, const char *hex, size_t size, struct staged_blob *out)
{
	struct stat st;
	int fd;

	if (file_open_beneath(folder, path, &fd, &st, NULL) != FILE_OK)
		return false;
	bool holds = (uintmax_t)st.st_size == size && holds_stated(fd, st.st_size, hex, &out->content);

	close(fd);
	if (holds)
		holds = file_map_beneath(folder, path, &out->mapping, NULL) == FILE_OK;
	return holds;
}

/* Maps the content that an LFS pointer stands for. The content comes from the file in the working tree or, if that file
 * has other content, from LFS's own storage. */
static int map_pointer(struct staged *staged, const char *path, const char *hex, size_t size, struct staged_blob *out,
		       struct err *err)
{
	char kept[2 * SHA256_BYTES + 32];
	bool found = map_stated(staged->dataset->fd, path, hex, size, out);

	if (!found) {
		int common = open(staged->repository.common, O_PATH | O_DIRECTORY | O_CLOEXEC);

		snprintf(kept, sizeof kept, "lfs/objects/%.2s/%.2s/%s", hex, hex + 2, hex);
		found = common >= 0 && map_stated(common, kept, hex, size, out);
		if (common >= 0)
			close(common);
	}
	out->data = out->mapping.data;
	out->length = out->mapping.length;
	if (found)
		return 0;
	err_set(err,
		"%s: git's index has a Git LFS pointer whose content is not on this machine; run `git lfs "
		"fetch --include %s`",
		path, arena_shell_word(staged->arena, arena_printf(staged->arena, "%s%s", staged->repository.prefix, path)));
	return 1;
}

int staged_blob(struct staged *staged, const char *path, const struct object_name *object, struct staged_blob *out,
		struct err *err)
{
	char hex[2 * SHA256_BYTES + 1];
	size_t size;

	*out = (struct staged_blob){0};
	int rc = staged_read(staged, path, object, BLOB_BYTES, &out->bytes, err);

	if (rc != 0)
		return rc;
	if (read_pointer(&out->bytes, hex, &size))
		return map_pointer(staged, path, hex, size, out, err);
	out->data = (const unsigned char *)out->bytes.data;
	out->length = out->bytes.length;
	out->content = digest_of(out->data, out->length);
	return 0;
}

void staged_blob_free(struct staged_blob *blob)
{
	buf_free(&blob->bytes);
	file_unmap(&blob->mapping);
	*blob = (struct staged_blob){0};
}

/* ---- extracting blobs to files for the judge --------------------------------------------------------------------- */

/* Removes a folder of extracted blobs if the folder is at least a day old. A folder of this age is from a run that was
 * killed before it could remove the folder. */
static void sweep_folder(int reftest_fd, const char *name)
{
	int fd = openat(reftest_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	struct stat st;

	if (folder == NULL) {
		if (fd >= 0)
			close(fd);
		return;
	}
	if (fstat(fd, &st) == 0 && st.st_mtim.tv_sec + DAY_SECONDS < time(NULL)) {
		for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
			unlinkat(fd, entry->d_name, 0);
		unlinkat(reftest_fd, name, AT_REMOVEDIR);
	}
	closedir(folder);
}

static void sweep(const struct staged *staged)
{
	int fd = openat(staged->dataset->fd, ".reftest", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);

	if (folder == NULL) {
		if (fd >= 0)
			close(fd);
		return;
	}
	for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
		if (begins(entry->d_name, "staged-"))
			sweep_folder(fd, entry->d_name);
	closedir(folder);
}

static int make_folder(struct staged *staged, struct err *err)
{
	char *path = arena_printf(staged->arena, "%s/.reftest/staged-XXXXXX", staged->dataset->root);

	/* without a store, nothing has created .reftest yet */
	if (reftest_folder_make(staged->dataset->root, err) < 0)
		return -1;
	sweep(staged);
	if (mkdtemp(path) == NULL)
		return err_errno(err, "cannot create %s", path);
	staged->folder = path + strlen(staged->dataset->root) + 1;
	return 0;
}

static void remember(struct staged *staged, const char *path)
{
	if (staged->placed_count == staged->placed_room) {
		int room = staged->placed_room * 2 + 16;
		const char **longer = arena_array(staged->arena, (size_t)room, sizeof *longer);

		if (staged->placed_count > 0)
			memcpy(longer, staged->placed, (size_t)staged->placed_count * sizeof *longer);
		staged->placed = longer;
		staged->placed_room = room;
	}
	staged->placed[staged->placed_count++] = arena_string(staged->arena, path);
}

static int write_file(int fd, const char *path, const char *bytes, size_t length, struct err *err)
{
	return file_write_all(fd, bytes, length) ? 0 : err_errno(err, "cannot write %s", path);
}

int staged_place(struct staged *staged, const struct digest *content, const void *bytes, size_t length,
		 struct arena *arena, const char **path, struct err *err)
{
	char hex[DIGEST_HEX];

	if (staged->folder == NULL && make_folder(staged, err) < 0)
		return -1;
	digest_hex(content, hex);
	*path = arena_printf(arena, "%s/%s.safetensors", staged->folder, hex);
	int fd = openat(staged->dataset->fd, *path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0 && errno == EEXIST) /* the same content was already extracted for another workload line */
		return 0;
	if (fd < 0)
		return err_errno(err, "cannot create %s", *path);
	int rc = write_file(fd, *path, bytes, length, err);

	close(fd);
	if (rc < 0)
		unlinkat(staged->dataset->fd, *path, 0);
	else
		remember(staged, *path);
	return rc;
}

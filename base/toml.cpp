/* The adapter to toml++. No exception leaves this file.
 *
 * toml++ 3.3 asserts what some texts break ("[[["). An assertion that fails therefore throws, and the text is
 * refused. */
extern "C" {
#include "base/toml.h"
}

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace
{

[[noreturn]] void refuse()
{
	throw std::logic_error("an assertion of toml++ failed");
}

} /* namespace */

#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 1
#define TOML_ASSERT(holds) ((holds) ? static_cast<void>(0) : refuse())
#define TOML_ENABLE_FORMATTERS 0
#define TOML_MAX_NESTED_VALUES 16
#include <toml++/toml.h>

static_assert(TOML_MAX_NESTED_VALUES == TOML_DEPTH, "the header states the depth");

namespace
{

struct reader {
	const char *name;
	struct arena *arena;
	struct err *err;
};

int fail_at(const reader &reader, const toml::source_region &at, const char *what)
{
	return err_set(reader.err, "%s:%d:%d: %s", reader.name, static_cast<int>(at.begin.line),
		       static_cast<int>(at.begin.column), what);
}

/* Copies a text. Returns NULL and sets the error if it contains a NUL, because C strings end there. */
const char *copy_text(const reader &reader, std::string_view text, const toml::source_region &at)
{
	if (text.find('\0') != std::string_view::npos) {
		fail_at(reader, at, "the text contains the character \\u0000, which is not allowed");
		return nullptr;
	}
	return arena_copy(reader.arena, text.data(), text.size());
}

int copy_value(const reader &reader, const toml::node &node, int depth, toml_value *out);

toml_value *new_items(const reader &reader, size_t count)
{
	return static_cast<toml_value *>(arena_array(reader.arena, count, sizeof(toml_value)));
}

int copy_list(const reader &reader, const toml::array &list, int depth, toml_value *out)
{
	toml_value *items = new_items(reader, list.size());

	out->kind = TOML_LIST;
	for (const toml::node &node : list)
		if (copy_value(reader, node, depth + 1, &items[out->count++]) < 0)
			return -1;
	out->items = items;
	return 0;
}

/* Copies the members of a table. toml++ sorts them by their keys; the order of the text is that of their positions. */
int copy_table(const reader &reader, const toml::table &table, int depth, toml_value *out)
{
	toml_value *items = new_items(reader, table.size());

	out->kind = TOML_TABLE;
	for (auto &&[key, node] : table) {
		toml_value *item = &items[out->count++];

		if (copy_value(reader, node, depth + 1, item) < 0)
			return -1;
		item->line = static_cast<int>(key.source().begin.line);
		item->column = static_cast<int>(key.source().begin.column);
		item->key = copy_text(reader, key.str(), key.source());
		if (item->key == nullptr)
			return -1;
	}
	std::stable_sort(items, items + out->count, [](const toml_value &a, const toml_value &b) {
		return a.line != b.line ? a.line < b.line : a.column < b.column;
	});
	out->items = items;
	return 0;
}

int copy_value(const reader &reader, const toml::node &node, int depth, toml_value *out)
{
	const toml::source_region &at = node.source();

	out->line = static_cast<int>(at.begin.line);
	out->column = static_cast<int>(at.begin.column);
	if (depth > TOML_DEPTH)
		return fail_at(reader, at, "the value is nested too deeply");
	if (const toml::table *table = node.as_table())
		return copy_table(reader, *table, depth, out);
	if (const toml::array *list = node.as_array())
		return copy_list(reader, *list, depth, out);
	if (const toml::value<std::string> *text = node.as_string()) {
		out->kind = TOML_TEXT;
		out->text = copy_text(reader, text->get(), at);
		return out->text == nullptr ? -1 : 0;
	}
	if (const toml::value<int64_t> *integer = node.as_integer()) {
		out->kind = TOML_INTEGER;
		out->integer = integer->get();
	} else if (const toml::value<double> *real = node.as_floating_point()) {
		out->kind = TOML_REAL;
		out->real = real->get();
	} else if (const toml::value<bool> *flag = node.as_boolean()) {
		out->kind = TOML_FLAG;
		out->flag = flag->get();
	} else {
		out->kind = TOML_TIME;
	}
	return 0;
}

} /* namespace */

const struct toml_value *toml_parse(const char *name, const char *text, size_t length, struct arena *arena,
				    struct err *err)
{
	const reader reader = {name, arena, err};

	if (length > TOML_BYTES) {
		err_set(err, "%s: the file has more than %d KiB", name, TOML_BYTES >> 10);
		return nullptr;
	}
	try {
		const toml::table table = toml::parse(std::string_view(text, length));
		toml_value *out = new_items(reader, 1);

		return copy_table(reader, table, 0, out) < 0 ? nullptr : out;
	} catch (const toml::parse_error &error) {
		std::string what(error.description());

		/* toml++ quotes characters of the text as they are */
		std::replace_if(what.begin(), what.end(), [](unsigned char c) { return c < 0x20; }, ' ');
		fail_at(reader, error.source(), what.c_str());
	} catch (const std::exception &) {
		err_set(err, "%s: the file is not valid TOML", name);
	}
	return nullptr;
}

const char *toml_kind_name(enum toml_kind kind)
{
	static const char *const names[] = {"a text",  "a whole number", "a number", "true or false",
					    "a list", "a table",	"a date or a time"};

	return names[kind];
}

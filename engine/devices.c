#include "engine/devices.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool names_ordinal(const struct device_choice *choice, int ordinal)
{
	for (int i = 0; i < choice->count; i++)
		if (choice->ordinals[i] == ordinal)
			return true;
	return false;
}

/* Reads a list such as "0,2". Returns 0. Returns 1 if the text is not such a list. Returns -1 with a message if the
 * list contains a number twice. */
static int read_ordinals(const char *text, struct device_choice *out, struct err *err)
{
	for (;;) {
		char *end;
		long ordinal;

		if (text[0] < '0' || text[0] > '9')
			return 1;
		ordinal = strtol(text, &end, 10);
		if (ordinal >= DEVICES_MOST || (*end != '\0' && *end != ','))
			return 1;
		if (names_ordinal(out, (int)ordinal))
			return err_set(err, "--device names cuda:%ld twice", ordinal);
		out->ordinals[out->count++] = (int)ordinal;
		if (*end == '\0')
			return 0;
		text = end + 1;
	}
}

int devices_read(const char *text, struct device_choice *out, struct err *err)
{
	static const struct {
		const char *word;
		enum device_kind kind;
	} words[] = {{"auto", DEVICE_AUTO}, {"cpu", DEVICE_CPU}, {"cuda", DEVICE_ALL_GPUS}};
	int rc = 1;

	*out = (struct device_choice){.kind = DEVICE_GPUS};
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (strcmp(text, words[i].word) == 0) {
			out->kind = words[i].kind;
			return 0;
		}
	if (strncmp(text, "cuda:", 5) == 0)
		rc = read_ordinals(text + 5, out, err);
	return rc <= 0 ? rc
		       : err_set(err, "unknown device '%s' (--device takes auto, cpu, cuda, cuda:N or a list as in cuda:0,1)",
				 err_show(text).text);
}

static void leave_out(struct devices *out, const char *sentence)
{
	out->left_out[out->left_out_count++] = sentence;
}

/* Adds a device to `out`. Returns false if `class_name` differs from the class of the devices that `out` already
 * has. */
static bool add_device(struct devices *out, const char *name, const char *class_name, struct arena *arena)
{
	if (out->count > 0 && strcmp(out->class_name, class_name) != 0)
		return false;
	if (out->count == 0)
		out->class_name = arena_string(arena, class_name);
	out->names[out->count++] = name;
	return true;
}

static enum devices_answer choose_named(const struct device_choice *choice, struct device_probe probe, struct arena *arena,
					struct devices *out, struct err *err)
{
	char class_name[DEVICE_CLASS_SIZE];

	for (int i = 0; i < choice->count; i++) {
		const char *name = arena_printf(arena, "cuda:%d", choice->ordinals[i]);

		if (probe.class_of(probe.self, name, class_name, err) != 0)
			return DEVICES_UNUSABLE;
		if (!add_device(out, name, class_name, arena)) {
			err_set(err, "%s is %s and %s is %s; choose devices of one class", out->names[0], out->class_name, name,
				class_name);
			return DEVICES_DIFFER;
		}
	}
	return DEVICES_FOUND;
}

/* If no device can be used, the message says why the first one cannot be used. */
static enum devices_answer choose_all(int visible, struct device_probe probe, struct arena *arena, struct devices *out,
				      struct err *err)
{
	char class_name[DEVICE_CLASS_SIZE];

	for (int i = 0; i < visible && i < DEVICES_MOST; i++) {
		const char *name = arena_printf(arena, "cuda:%d", i);
		struct err why = {""};

		if (probe.class_of(probe.self, name, class_name, &why) != 0) {
			leave_out(out, arena_printf(arena, "%s is not used: %s", name, why.text));
			if (err->text[0] == '\0')
				*err = why;
		} else if (!add_device(out, name, class_name, arena)) {
			leave_out(out, arena_printf(arena, "%s is not used, because all GPUs of a run must be of one class: it is "
						    "%s, but %s is %s", name, class_name, out->names[0],
						    out->class_name));
		}
	}
	return out->count > 0 ? DEVICES_FOUND : DEVICES_UNUSABLE;
}

enum devices_answer devices_choose(const struct device_choice *choice, int visible, struct device_probe probe,
				   struct arena *arena, struct devices *out, struct err *err)
{
	static const struct device_choice first = {.kind = DEVICE_GPUS, .count = 1};

	*out = (struct devices){.class_name = NULL};
	*err = (struct err){""};
	if (choice->kind == DEVICE_ALL_GPUS)
		return choose_all(visible < 1 ? 1 : visible, probe, arena, out, err);
	return choose_named(choice->kind == DEVICE_AUTO ? &first : choice, probe, arena, out, err);
}

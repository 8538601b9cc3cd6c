/* devices - reads the value of --device, and chooses the devices of a run: one, or several GPUs of one class. */
#ifndef REFTEST_ENGINE_DEVICES_H
#define REFTEST_ENGINE_DEVICES_H

#include "base/arena.h"
#include "base/err.h"

enum { DEVICES_MOST = 64, DEVICE_CLASS_SIZE = 64 };

enum device_kind {
	DEVICE_AUTO,	/* the first GPU if there is one, otherwise the CPU */
	DEVICE_CPU,
	DEVICE_ALL_GPUS, /* "cuda": all visible GPUs */
	DEVICE_GPUS	/* "cuda:0", "cuda:0,2": the named GPUs */
};

struct device_choice {
	enum device_kind kind;
	int ordinals[DEVICES_MOST]; /* in the order in which they are named */
	int count;
};

/* Returns 0. Returns -1 with a message if the text is not valid or names a device twice. */
int devices_read(const char *text, struct device_choice *out, struct err *err);

/* How the class of a device ("sm_90") is queried. `class_of` returns -1 with a message if the device cannot be used. */
struct device_probe {
	int (*class_of)(void *self, const char *device, char class_name[DEVICE_CLASS_SIZE], struct err *err);
	void *self;
};

/* The devices of a run. */
struct devices {
	const char *names[DEVICES_MOST]; /* "cuda:0", … */
	int count;
	const char *class_name; /* the class of all these devices */
	const char *left_out[DEVICES_MOST]; /* for each device that was left out, a sentence that says why */
	int left_out_count;
};

enum devices_answer { DEVICES_FOUND, DEVICES_UNUSABLE, DEVICES_DIFFER };

/* Chooses the GPUs. For DEVICE_GPUS, chooses the named GPUs; for DEVICE_AUTO, chooses the first GPU. For
 * DEVICE_ALL_GPUS, tries the `visible` GPUs (at least one), and chooses all usable GPUs that have the same class as the
 * first usable GPU. Returns DEVICES_UNUSABLE with a message if one of the named GPUs cannot be used or if there is no
 * usable GPU, and DEVICES_DIFFER if the classes of the named GPUs differ. */
enum devices_answer devices_choose(const struct device_choice *choice, int visible, struct device_probe probe,
				   struct arena *arena, struct devices *out, struct err *err);

#endif

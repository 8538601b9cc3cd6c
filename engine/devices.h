/* devices - reads the value of --device, and chooses the devices of a run: one, or several GPUs of one class. */
#ifndef REFTEST_ENGINE_DEVICES_H
#define REFTEST_ENGINE_DEVICES_H

#include "base/arena.h"
#include "base/err.h"

enum { DEVICES_MOST = 64, DEVICE_CLASS_SIZE = 64 };

enum device_kind {
	DEVICE_AUTO,	/* the first GPU, if there is one, else the CPU */
	DEVICE_CPU,
	DEVICE_ALL_GPUS, /* "cuda": all visible GPUs */
	DEVICE_GPUS	/* "cuda:0", "cuda:0,2": these */
};

struct device_choice {
	enum device_kind kind;
	int ordinals[DEVICES_MOST]; /* in the order in which they are named */
	int count;
};

/* Returns -1 with a message if the text names no device, or a device twice. */
int devices_read(const char *text, struct device_choice *out, struct err *err);

/* Where the class of a device ("sm_90") comes from. `class_of` returns -1 with a message if the device cannot be
 * used. */
struct device_probe {
	int (*class_of)(void *self, const char *device, char class_name[DEVICE_CLASS_SIZE], struct err *err);
	void *self;
};

/* The devices of a run. */
struct devices {
	const char *names[DEVICES_MOST]; /* "cuda:0", … */
	int count;
	const char *class_name; /* of all of them */
	const char *left_out[DEVICES_MOST]; /* for each device that was left out, a sentence that says why */
	int left_out_count;
};

enum devices_answer { DEVICES_FOUND, DEVICES_UNUSABLE, DEVICES_DIFFER };

/* Chooses the GPUs: those that are named, or, for DEVICE_ALL_GPUS, those of the `visible` GPUs (at least one is tried)
 * that can be used and are of the class of the first that can. For DEVICE_AUTO, the first GPU. Named devices are never
 * left out: DEVICES_UNUSABLE with a message if one cannot be used, or if there is none; DEVICES_DIFFER if their classes
 * differ. */
enum devices_answer devices_choose(const struct device_choice *choice, int visible, struct device_probe probe,
				   struct arena *arena, struct devices *out, struct err *err);

#endif

#include "base/process_suspended.h"

#include <stdio.h>
#include <string.h>

bool process_is_stopped(long process)
{
	char path[64], text[256];

	snprintf(path, sizeof path, "/proc/%ld/stat", process);
	FILE *file = process > 0 ? fopen(path, "re") : NULL;
	size_t length = file != NULL ? fread(text, 1, sizeof text - 1, file) : 0;

	if (file != NULL)
		fclose(file);
	text[length] = '\0';
	/* The text is "PID (name) state …". The name may contain any character, so search for the last ')'. */
	const char *end = strrchr(text, ')');

	return end != NULL && end[1] == ' ' && (end[2] == 'T' || end[2] == 't');
}

/* mapped FILE OFFSET STEP BYTE… - writes to a file through one shared mapping that it keeps: the bytes one after the other at
 * the offset, each when a file STEP1, STEP2, … has come; makes STEP0 once it is mapped, and removes STEPn when it has
 * written. The descriptor is closed long before. Ends when it was told of all, and then only by a signal. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct stat st;
	int fd = open(argv[1], O_RDWR);
	char name[4096];

	if (argc < 5 || fd < 0 || fstat(fd, &st) != 0)
		return 1;
	char *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	long offset = strtol(argv[2], NULL, 10);

	close(fd);
	if (bytes == MAP_FAILED)
		return 1;
	for (int i = 4; i < argc; i++) {
		snprintf(name, sizeof name, "%s%d", argv[3], i - 3);
		while (access(name, F_OK) != 0)
			usleep(10000);
		bytes[offset] = argv[i][0];
		unlink(name);
	}
	pause();
	return 0;
}

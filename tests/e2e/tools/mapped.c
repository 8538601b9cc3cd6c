/* mapped FILE OFFSET STEP BYTE… - writes bytes to a file through a shared mapping, one after the other at the same
 * offset. Maps FILE, closes the file descriptor and reads the byte at the offset. For n = 1, 2, …: waits until the file
 * STEPn exists, writes the nth BYTE, and removes STEPn. After the last byte, waits for a signal that ends the program. */
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
	(void)*(volatile char *)&bytes[offset];
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

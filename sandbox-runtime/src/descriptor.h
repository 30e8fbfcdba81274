/* Descriptors: owned ones close themselves, and small files are read and written in one go. */
#ifndef SANDBUS_DESCRIPTOR_H
#define SANDBUS_DESCRIPTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* `OWNED_FD int fd = open(...)` is closed when it goes out of scope; set it to -1 to give it away. */
#define OWNED_FD __attribute__((cleanup(descriptor_close)))

/* Closes *fd if it is open and sets it to -1; errno stays as it was. */
void descriptor_close(int *fd);

/* Reads a whole small file below `dir` as text, at most size - 1 bytes. Returns the length, or -1 with errno. */
ssize_t descriptor_read_text(int dir, const char *path, char *text, size_t size);

/* Writes text to an existing file below `dir` with one write. */
bool descriptor_write_text(int dir, const char *path, const char *text);

/* Writes all bytes, going on after short writes. False with errno. */
bool descriptor_write_all(int fd, const void *bytes, size_t length);

/* Two connected ends of a packet socket, closed on exec. */
bool descriptor_packet_pair(int pair[2]);

#endif

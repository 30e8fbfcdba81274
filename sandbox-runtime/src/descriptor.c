#include "descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void descriptor_close(int *fd)
{
    int saved = errno;
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    errno = saved;
}

ssize_t descriptor_read_text(int dir, const char *path, char *text, size_t size)
{
    OWNED_FD int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    size_t length = 0;
    while (length < size - 1) {
        ssize_t got = read(fd, text + length, size - 1 - length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        length += (size_t)got;
    }
    text[length] = 0;
    return (ssize_t)length;
}

bool descriptor_write_text(int dir, const char *path, const char *text)
{
    OWNED_FD int fd = openat(dir, path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    size_t length = strlen(text);
    return write(fd, text, length) == (ssize_t)length;
}

bool descriptor_write_all(int fd, const void *bytes, size_t length)
{
    const char *next = bytes;
    while (length) {
        ssize_t put = write(fd, next, length);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return false;
        next += put;
        length -= (size_t)put;
    }
    return true;
}

bool descriptor_packet_pair(int pair[2])
{
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0;
}

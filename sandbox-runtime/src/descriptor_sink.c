#include "stream.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Standard output belongs to whoever started the launcher, and so do its flags: O_NONBLOCK set here would be seen by every
 * other process that has the file open. Sockets take a flag with each call. A pipe or terminal that polls writable takes
 * PIPE_BUF bytes without blocking.
 */
static ssize_t write_some(struct descriptor_sink *sink, const void *bytes, size_t length)
{
    if (S_ISSOCK(sink->type))
        return send(sink->watch.fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (S_ISFIFO(sink->type) || S_ISCHR(sink->type)) {
        struct pollfd state = {.fd = sink->watch.fd, .events = POLLOUT};
        if (poll(&state, 1, 0) == 0) {
            errno = EAGAIN;
            return -1;
        }
        length = length < PIPE_BUF ? length : PIPE_BUF;
    }
    return write(sink->watch.fd, bytes, length);
}

static ssize_t put(struct sink *base, const void *bytes, size_t length)
{
    struct descriptor_sink *sink = (struct descriptor_sink *)base;
    ssize_t taken;
    do
        taken = write_some(sink, bytes, length);
    while (taken < 0 && errno == EINTR);
    if (taken >= 0)
        return taken;
    if (errno != EAGAIN)
        return -1;
    loop_watch(sink->loop, &sink->watch, EPOLLOUT);
    return 0;
}

static void writable(struct watch *watch, uint32_t events)
{
    (void)events;
    struct descriptor_sink *sink = watch->owner;
    loop_watch(sink->loop, watch, 0);
    output_resume(sink->output);
}

void descriptor_sink_init(struct descriptor_sink *sink, struct loop *loop, int fd, struct output *output)
{
    struct stat status;
    *sink = (struct descriptor_sink){.sink.put = put, .loop = loop, .output = output};
    sink->type = fstat(fd, &status) == 0 ? status.st_mode & S_IFMT : S_IFREG;
    watch_init(&sink->watch, fd, writable, sink);
}

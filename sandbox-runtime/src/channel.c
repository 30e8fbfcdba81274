#include "channel.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    RECEIVE_SIZE = FRAME_HEADER_SIZE + FRAME_START_MAX, /* the largest frame of a client */
    RECEIVE_PER_TURN = 256 * 1024,
    FRAME_SIZE = FRAME_HEADER_SIZE + FRAME_BYTES_MAX,
    SENT_PER_TURN = 16, /* frames; then others have their turn, however quickly the client takes them */
};

/* What passes here belongs to many jobs: no child that is forked for one of them gets it. */
static void *map_private(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    madvise(memory, size, MADV_DONTFORK);
    return memory;
}

static bool end_open(struct channel_end *end, int fd, void (*ready)(struct watch *, uint32_t), void *owner)
{
    struct stat status;
    watch_init(&end->watch, fd, ready, owner);
    if (fstat(fd, &status) < 0)
        return false;
    end->is_socket = S_ISSOCK(status.st_mode);
    int flags = fcntl(fd, F_GETFL);
    return end->is_socket || (flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0);
}

static void end_channel(struct channel *channel, const struct fault *fault)
{
    if (channel->ended)
        return;
    channel->ended = !fault; /* a client that broke the rules is still told which */
    channel_stop_reading(channel);
    if (channel->ended)
        loop_watch(channel->loop, &channel->out.watch, 0);
    channel->end(channel->owner, fault);
}

/* Hands over what has come in whole. False when the channel has ended. */
static bool take_frames(struct channel *channel)
{
    size_t at = 0;
    struct fault fault = {.step = ""};
    bool well = true;
    while (well && !channel->ended && channel->received_length - at >= FRAME_HEADER_SIZE) {
        struct frame_header header;
        well = frame_read_header((unsigned char *)channel->received + at, &header, &fault);
        if (!well || channel->received_length - at - FRAME_HEADER_SIZE < header.length)
            break;
        well = channel->take(channel->owner, &header, channel->received + at + FRAME_HEADER_SIZE, &fault);
        at += FRAME_HEADER_SIZE + header.length;
    }
    channel->received_length -= at;
    memmove(channel->received, channel->received + at, channel->received_length);
    if (!well)
        end_channel(channel, &fault);
    return well;
}

static void readable(struct watch *watch, uint32_t events)
{
    (void)events;
    struct channel *channel = watch->owner;
    size_t room = RECEIVE_SIZE - channel->received_length; /* never 0: a frame that fills all of it is whole */
    size_t size = room < RECEIVE_PER_TURN ? room : RECEIVE_PER_TURN;
    char *to = channel->received + channel->received_length;
    ssize_t got = channel->in.is_socket ? recv(watch->fd, to, size, MSG_DONTWAIT) : read(watch->fd, to, size);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        end_channel(channel, NULL);
        return;
    }
    bool large = channel->received_length >= RECEIVE_PER_TURN;
    channel->received_length += (size_t)got;
    if (take_frames(channel) && large && !channel->received_length)
        madvise(channel->received, RECEIVE_SIZE, MADV_DONTNEED);
}

/* Writes some of the bytes. 0: the client takes none now; -1: it is gone. */
static ssize_t write_some(const struct channel_end *end, const void *bytes, size_t length)
{
    ssize_t put;
    do
        put = end->is_socket ? send(end->watch.fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL)
                             : write(end->watch.fd, bytes, length);
    while (put < 0 && errno == EINTR);
    return put < 0 && errno == EAGAIN ? 0 : put;
}

bool channel_is_free(const struct channel *channel)
{
    return !channel->ended && channel->frame_start == channel->frame_end && !channel->large.length;
}

/* Writes on until the frame is gone or the client takes no more. */
static void write_frame(struct channel *channel)
{
    while (!channel_is_free(channel) && !channel->ended) {
        bool small = channel->frame_start < channel->frame_end;
        const void *next =
            small ? (char *)channel->frame + channel->frame_start : channel->large.bytes + channel->large_start;
        size_t left = small ? channel->frame_end - channel->frame_start : channel->large.length - channel->large_start;
        ssize_t put = write_some(&channel->out, next, left);
        if (put < 0)
            end_channel(channel, NULL);
        if (put <= 0)
            return;
        if (small)
            channel->frame_start += (size_t)put;
        else
            channel->large_start += (size_t)put;
        if (channel->large.length && channel->large_start == channel->large.length)
            json_free(&channel->large);
    }
}

static void begin_frame(struct channel *channel, enum frame_type type, uint64_t job, size_t length)
{
    struct frame_header header = {.type = (uint8_t)type, .job = job, .length = (uint32_t)length};
    frame_write_header(channel->frame, &header);
    channel->frame_start = 0;
    channel->frame_end = FRAME_HEADER_SIZE;
    channel->more = true;
}

void channel_send(struct channel *channel, enum frame_type type, uint64_t job, const void *bytes, size_t length)
{
    begin_frame(channel, type, job, length);
    memcpy(channel->frame + FRAME_HEADER_SIZE, bytes, length);
    channel->frame_end += length;
    write_frame(channel);
}

void channel_send_large(struct channel *channel, enum frame_type type, uint64_t job, struct json_writer *text)
{
    begin_frame(channel, type, job, text->length);
    channel->large = *text;
    channel->large_start = 0;
    json_init(text, text->limit);
    write_frame(channel);
}

void channel_pump(struct channel *channel)
{
    if (channel->ended)
        return;
    write_frame(channel);
    for (int sent = 0; sent < SENT_PER_TURN && channel_is_free(channel); sent++) {
        channel->more = channel->give(channel->owner);
        if (!channel->more)
            break;
    }
    if (!channel->ended)
        loop_watch(channel->loop, &channel->out.watch, channel->more ? EPOLLOUT : LOOP_ONLY_ERRORS);
}

/* Nothing to do here: channel_pump follows in the same turn. A client that closed its end is seen by writing, or here. */
static void writable(struct watch *watch, uint32_t events)
{
    if (events & (EPOLLERR | EPOLLHUP))
        end_channel(watch->owner, NULL);
}

void channel_stop_reading(struct channel *channel)
{
    loop_watch(channel->loop, &channel->in.watch, 0);
}

bool channel_open(struct channel *channel, struct loop *loop, int in_fd, int out_fd)
{
    channel->loop = loop;
    channel->received = map_private(RECEIVE_SIZE);
    channel->frame = map_private(FRAME_SIZE);
    if (in_fd == out_fd)
        out_fd = fcntl(in_fd, F_DUPFD_CLOEXEC, 0); /* epoll knows a descriptor once */
    return channel->received && channel->frame && end_open(&channel->in, in_fd, readable, channel) &&
           end_open(&channel->out, out_fd, writable, channel) && loop_watch(loop, &channel->in.watch, EPOLLIN) &&
           loop_watch(loop, &channel->out.watch, LOOP_ONLY_ERRORS);
}

void channel_close(struct channel *channel)
{
    loop_watch(channel->loop, &channel->in.watch, 0);
    loop_watch(channel->loop, &channel->out.watch, 0);
    json_free(&channel->large);
    if (channel->received)
        munmap(channel->received, RECEIVE_SIZE);
    if (channel->frame)
        munmap(channel->frame, FRAME_SIZE);
}

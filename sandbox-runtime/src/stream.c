#include "stream.h"

#include "kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Bytes of a job are kept out of the children that are forked for other jobs. */
static char *map_buffer(void)
{
    char *buffer = mmap(NULL, STREAM_BUFFER_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (buffer == MAP_FAILED)
        return NULL;
    madvise(buffer, STREAM_BUFFER_SIZE, MADV_DONTFORK);
    return buffer;
}

static void unmap_buffer(char **buffer, size_t size)
{
    if (*buffer)
        munmap(*buffer, size);
    *buffer = NULL;
}

static bool make_nonblocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

/* Counts and hashes what was read into the buffer, behind what waits there, and cuts it at the limit. */
static void account(struct output *output, size_t got)
{
    uint64_t room = output->limit_bytes - output->kept_bytes;
    size_t kept = got < room ? got : (size_t)room;
    sha256_update(&output->hash, output->buffer + output->end, got);
    output->bytes += got;
    output->end += kept;
    output->kept_bytes += kept;
    if (got > room && !output->truncated) {
        output->truncated = true;
        output->exceeded(output->owner);
    }
}

/* Hands the buffer to the sink. False while some of it is left. */
static bool flush(struct output *output)
{
    while (output->start < output->end) {
        ssize_t put = output->sink->put(output->sink, output->buffer + output->start, output->end - output->start);
        if (put < 0) { /* nobody listens: the job shall see that, as it would without a launcher in between */
            output->start = output->end;
            loop_forget(output->loop, &output->pipe);
            return true;
        }
        if (put == 0)
            return false;
        output->start += (size_t)put;
    }
    return true;
}

/* Makes room for a whole read. Only what is left in the pipe at the end makes the buffer grow. False without memory. */
static bool make_room(struct output *output)
{
    if (output->start == output->end)
        output->start = output->end = 0;
    if (output->capacity - output->end >= STREAM_BUFFER_SIZE)
        return true;
    size_t capacity = output->capacity + STREAM_BUFFER_SIZE;
    char *buffer = mremap(output->buffer, output->capacity, capacity, MREMAP_MAYMOVE);
    if (buffer == MAP_FAILED)
        return false;
    output->buffer = buffer;
    output->capacity = capacity;
    return true;
}

/* Reads once. */
static void pull(struct output *output)
{
    ssize_t got = output->pipe.fd < 0 ? 0 : read(output->pipe.fd, output->buffer + output->end, STREAM_BUFFER_SIZE);
    if (got > 0) {
        account(output, (size_t)got);
        return;
    }
    bool later = got < 0 && (errno == EAGAIN || errno == EINTR);
    if (!later || (output->writers_gone && errno == EAGAIN)) {
        loop_forget(output->loop, &output->pipe);
        output->ended = true;
    }
}

/* Reads what the job's processes left in the pipe, so that counts and digest are final whether or not somebody takes the
 * bytes. It is no more than a pipe holds: whoever still writes is not of the job. */
static void drain(struct output *output)
{
    while (!output->ended) {
        flush(output);
        if (!make_room(output))
            return; /* goes on when the sink has taken some */
        uint64_t before = output->bytes;
        pull(output);
        uint64_t got = output->bytes - before;
        output->left_bytes -= got < output->left_bytes ? got : output->left_bytes;
        if (output->left_bytes == 0) {
            loop_forget(output->loop, &output->pipe);
            output->ended = true;
        }
    }
    flush(output);
}

static void step_output(struct output *output)
{
    if (output->ended || output->writers_gone) {
        drain(output);
        return;
    }
    if (flush(output) && make_room(output))
        pull(output);
    if (!output->ended)
        loop_watch(output->loop, &output->pipe, flush(output) ? EPOLLIN : 0);
    else
        flush(output);
}

static void pipe_ready(struct watch *watch, uint32_t events)
{
    (void)events;
    step_output(watch->owner);
}

bool output_open(struct output *output, struct loop *loop, int pipe_fd, struct sink *sink, uint64_t limit_bytes,
                 void (*exceeded)(void *owner), void *owner)
{
    *output = (struct output){.loop = loop,
                              .sink = sink,
                              .limit_bytes = limit_bytes,
                              .buffer = map_buffer(),
                              .capacity = STREAM_BUFFER_SIZE,
                              .exceeded = exceeded,
                              .owner = owner};
    sha256_init(&output->hash);
    watch_init(&output->pipe, pipe_fd, pipe_ready, output);
    return output->buffer && make_nonblocking(pipe_fd) && loop_watch(loop, &output->pipe, EPOLLIN);
}

void output_resume(struct output *output)
{
    if (output->buffer)
        step_output(output);
}

void output_finish(struct output *output)
{
    int held = output->pipe.fd < 0 ? -1 : fcntl(output->pipe.fd, F_GETPIPE_SZ);
    output->writers_gone = true;
    output->left_bytes = held > 0 ? (uint64_t)held : STREAM_BUFFER_SIZE;
    loop_watch(output->loop, &output->pipe, 0);
    step_output(output);
}

bool output_is_delivered(const struct output *output)
{
    return output->ended && output->start == output->end;
}

void output_close(struct output *output)
{
    if (output->loop)
        loop_forget(output->loop, &output->pipe);
    unmap_buffer(&output->buffer, output->capacity);
    output->start = output->end = 0;
    output->ended = true;
}

/* Writes what is buffered into the job's pipe; closes it at the end, or when the job has closed its own end. */
static void push(struct input *input)
{
    while (input->start < input->end) {
        ssize_t put = write(input->pipe.fd, input->buffer + input->start, input->end - input->start);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0 && errno == EAGAIN) {
            loop_watch(input->loop, &input->source, 0);
            loop_watch(input->loop, &input->pipe, EPOLLOUT);
            return;
        }
        if (put < 0) {
            input_close(input);
            return;
        }
        input->start += (size_t)put;
        input->bytes += (uint64_t)put;
        if (input->taken)
            input->taken(input->owner, (size_t)put);
    }
    if (input->source_ended) {
        input_close(input);
        return;
    }
    loop_watch(input->loop, &input->pipe, LOOP_ONLY_ERRORS);
    loop_watch(input->loop, &input->source, EPOLLIN);
}

static void source_ready(struct watch *watch, uint32_t events)
{
    (void)events;
    struct input *input = watch->owner;
    /* Another reader of the same pipe may have been quicker; this must not wait for the next bytes. */
    ssize_t got = watch->always_ready ? read(watch->fd, input->buffer, STREAM_BUFFER_SIZE)
                                      : kernel_read_now(watch->fd, input->buffer, STREAM_BUFFER_SIZE);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    input->start = 0;
    input->end = got > 0 ? (size_t)got : 0;
    input->source_ended = got <= 0;
    push(input);
}

static void job_pipe_ready(struct watch *watch, uint32_t events)
{
    struct input *input = watch->owner;
    if (events & EPOLLERR)
        input_close(input);
    else
        push(input);
}

bool input_open(struct input *input, struct loop *loop, int source_fd, int pipe_fd)
{
    bool fed = source_fd == INPUT_IS_FED;
    *input = (struct input){.loop = loop, .buffer = map_buffer(), .source_ended = source_fd < 0 && !fed};
    watch_init(&input->source, fed ? -1 : source_fd, source_ready, input);
    watch_init(&input->pipe, pipe_fd, job_pipe_ready, input);
    if (!input->buffer || !make_nonblocking(pipe_fd))
        return false;
    push(input);
    return true;
}

bool input_feed(struct input *input, const void *bytes, size_t length)
{
    if (input->pipe.fd < 0 || input->source_ended)
        return true; /* the job has closed its end, or is gone: nobody wants them */
    if (length > STREAM_BUFFER_SIZE - (input->end - input->start))
        return false;
    if (length > STREAM_BUFFER_SIZE - input->end) {
        memmove(input->buffer, input->buffer + input->start, input->end - input->start);
        input->end -= input->start;
        input->start = 0;
    }
    memcpy(input->buffer + input->end, bytes, length);
    input->end += length;
    input->source_ended = length == 0;
    push(input);
    return true;
}

/* The source stays open: it is the launcher's own standard input. */
void input_close(struct input *input)
{
    if (!input->loop)
        return;
    loop_watch(input->loop, &input->source, 0);
    input->source.fd = -1;
    loop_forget(input->loop, &input->pipe);
    unmap_buffer(&input->buffer, STREAM_BUFFER_SIZE);
}

#include "stream.h"

#include "kernel.h"

#include <errno.h>
#include <fcntl.h>
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

static void unmap_buffer(char **buffer)
{
    if (*buffer)
        munmap(*buffer, STREAM_BUFFER_SIZE);
    *buffer = NULL;
}

static bool make_nonblocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

/* Counts and hashes what was read into the buffer, and cuts it at the limit. */
static void account(struct output *output, size_t got)
{
    uint64_t room = output->limit_bytes - output->kept_bytes;
    sha256_update(&output->hash, output->buffer, got);
    output->bytes += got;
    output->start = 0;
    output->end = got < room ? got : (size_t)room;
    output->kept_bytes += output->end;
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

/* Reads at most one buffer. False when the pipe has nothing (more) now. */
static bool pull(struct output *output)
{
    ssize_t got = output->pipe.fd < 0 ? 0 : read(output->pipe.fd, output->buffer, STREAM_BUFFER_SIZE);
    if (got > 0) {
        account(output, (size_t)got);
        return true;
    }
    bool later = got < 0 && (errno == EAGAIN || errno == EINTR);
    if (!later || (output->writers_gone && errno == EAGAIN)) {
        loop_forget(output->loop, &output->pipe);
        output->ended = true;
    }
    return false;
}

static void step_output(struct output *output)
{
    if (output->ended)
        return;
    do {
        if (!flush(output)) {
            loop_watch(output->loop, &output->pipe, 0);
            return;
        }
    } while (pull(output) && output->writers_gone);
    if (!output->ended && output->start < output->end && !flush(output))
        loop_watch(output->loop, &output->pipe, 0);
    else if (!output->ended)
        loop_watch(output->loop, &output->pipe, EPOLLIN);
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
                              .exceeded = exceeded,
                              .owner = owner};
    sha256_init(&output->hash);
    watch_init(&output->pipe, pipe_fd, pipe_ready, output);
    return output->buffer && make_nonblocking(pipe_fd) && loop_watch(loop, &output->pipe, EPOLLIN);
}

void output_resume(struct output *output)
{
    step_output(output);
}

void output_finish(struct output *output)
{
    output->writers_gone = true;
    step_output(output);
}

void output_close(struct output *output)
{
    if (output->loop)
        loop_forget(output->loop, &output->pipe);
    unmap_buffer(&output->buffer);
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
    *input = (struct input){.loop = loop, .buffer = map_buffer(), .source_ended = source_fd < 0};
    watch_init(&input->source, source_fd, source_ready, input);
    watch_init(&input->pipe, pipe_fd, job_pipe_ready, input);
    if (!input->buffer || !make_nonblocking(pipe_fd))
        return false;
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
    unmap_buffer(&input->buffer);
}

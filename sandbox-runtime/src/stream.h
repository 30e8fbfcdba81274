/*
 * The job's standard streams. An output takes bytes from the job's pipe, counts and hashes all of them, keeps the first
 * `limit` and hands those to a sink; while the sink takes nothing, nothing more is read, so the job waits. The input goes the
 * other way. The job's end of a pipe is never waited for: when the job's processes are gone, what is left in the pipe is read
 * and that is the end, whoever else may hold the other end.
 */
#ifndef SANDBUS_STREAM_H
#define SANDBUS_STREAM_H

#include "loop.h"
#include "sha256.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { STREAM_BUFFER_SIZE = 64 * 1024 };

/* Where an output goes: a descriptor, or frames. */
struct sink {
    /* Takes some of the bytes. Returns how many; fewer than `length`: call output_resume when there is room again.
     * -1: nobody takes them any more. */
    ssize_t (*put)(struct sink *sink, const void *bytes, size_t length);
};

struct output {
    struct loop *loop;
    struct watch pipe;
    struct sink *sink;
    uint64_t limit_bytes;
    uint64_t bytes;      /* all that the job wrote */
    uint64_t kept_bytes; /* that went to the sink */
    struct sha256 hash;  /* of all */
    char *buffer;
    size_t capacity;
    size_t start, end;   /* kept bytes that the sink has not taken yet */
    uint64_t left_bytes; /* that the pipe may still hold, once the writers are gone */
    bool truncated;
    bool writers_gone;
    bool ended;                    /* all is read, counted and hashed; the sink may not have taken it yet */
    void (*exceeded)(void *owner); /* called once */
    void *owner;
};

bool output_open(struct output *output, struct loop *loop, int pipe_fd, struct sink *sink, uint64_t limit_bytes,
                 void (*exceeded)(void *owner), void *owner);
/* The sink has room again. */
void output_resume(struct output *output);
/* The job's processes are gone: reads what is left, and keeps for the sink what it does not take now. */
void output_finish(struct output *output);
/* Whether the sink has taken everything. */
bool output_is_delivered(const struct output *output);
/* Gives up what the sink has not taken. */
void output_close(struct output *output);

enum { INPUT_IS_FED = -2 };

struct input {
    struct loop *loop;
    struct watch source; /* -1: none, or the bytes come by input_feed */
    struct watch pipe;
    uint64_t bytes; /* that went into the job's pipe */
    char *buffer;
    size_t start, end;
    bool source_ended;
    void (*taken)(void *owner, size_t bytes); /* may be NULL: told of what went into the job's pipe */
    void *owner;
};

/* `source_fd` may be -1: no input; INPUT_IS_FED: input_feed brings it. */
bool input_open(struct input *input, struct loop *loop, int source_fd, int pipe_fd);
/* Takes bytes for the job; none are the end of its input. False where they are more than STREAM_BUFFER_SIZE together with those
 * that wait already. */
bool input_feed(struct input *input, const void *bytes, size_t length);
void input_close(struct input *input);

/* A sink that writes to a descriptor of the launcher's own and never blocks on it. */
struct descriptor_sink {
    struct sink sink;
    struct loop *loop;
    struct watch watch;
    struct output *output; /* to resume */
    mode_t type;
};

void descriptor_sink_init(struct descriptor_sink *sink, struct loop *loop, int fd, struct output *output);

#endif

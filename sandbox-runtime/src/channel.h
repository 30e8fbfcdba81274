/*
 * The two descriptors that frames move over. It reads at most one buffer per turn of the loop and hands over whole frames. It
 * writes one frame at a time: only when that is gone does it ask for the next, so nothing queues here, and whoever answers
 * decides what is most urgent now.
 */
#ifndef SANDBUS_CHANNEL_H
#define SANDBUS_CHANNEL_H

#include "fault.h"
#include "frames.h"
#include "json.h"
#include "loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A descriptor of the client's, written and read without waiting. Sockets are asked so in each call, which leaves the flags of
 * a file alone that other processes may share; all else is set to O_NONBLOCK. */
struct channel_end {
    struct watch watch;
    bool is_socket;
};

struct channel {
    struct loop *loop;
    struct channel_end in, out;
    char *received; /* not yet handed over */
    size_t received_length;
    unsigned char *frame; /* the one on its way: header and a small payload */
    size_t frame_start, frame_end;
    struct json_writer large; /* the rest of its payload, where that is a result */
    size_t large_start;
    bool more;  /* frames may wait to be sent */
    bool ended; /* nothing can be read or written any more */

    /* A whole frame has come; its payload may be written to. False with a fault: the client does not keep to the rules. */
    bool (*take)(void *owner, const struct frame_header *header, char *payload, struct fault *fault);
    /* Sends the most urgent frame by channel_send or channel_send_large. False: there is none. */
    bool (*give)(void *owner);
    /* Called once: with NULL where the client is gone, else with what it did wrong. */
    void (*end)(void *owner, const struct fault *fault);
    void *owner;
};

/* Set take, give, end and owner first. Descriptors 0 and 1 stay open afterwards, as all others do that are not ours. */
bool channel_open(struct channel *channel, struct loop *loop, int in_fd, int out_fd);
void channel_close(struct channel *channel);
/* Whether a frame can be sent now. */
bool channel_is_free(const struct channel *channel);
/* Sends a frame of at most FRAME_BYTES_MAX bytes, which are copied. Only when the channel is free. */
void channel_send(struct channel *channel, enum frame_type type, uint64_t job, const void *bytes, size_t length);
/* Sends a frame whose payload is this text, and takes the text. */
void channel_send_large(struct channel *channel, enum frame_type type, uint64_t job, struct json_writer *text);
/* There are frames to send, or may be: asks for them as long as the client takes them. Call it once after each turn. */
void channel_pump(struct channel *channel);
/* Reads no more frames from now on. */
void channel_stop_reading(struct channel *channel);

#endif

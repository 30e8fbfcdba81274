/*
 * One job of `launcher serve`, from its START frame until its result and its output have been sent. Its parts of the
 * conversation wait here, never in the channel: the result as text, output in the job's own buffers, and what the client may
 * be told that it can send more.
 */
#ifndef SANDBUS_SERVED_JOB_H
#define SANDBUS_SERVED_JOB_H

#include "channel.h"
#include "job.h"

/* Output goes to the client as far as it has given credit, when the channel is free. */
struct frame_sink {
    struct sink sink;
    struct served_job *owner;
    enum frame_type type;
    uint64_t credit_bytes;
    bool waiting; /* for the channel */
    bool discarding;
};

struct served_job {
    struct served_job *next;
    struct channel *channel;
    uint64_t number;
    struct job_spec spec;
    bool started; /* job is valid; else its options were wrong */
    struct job job;
    struct frame_sink sinks[2];
    uint32_t input_taken_bytes; /* that the client has not been told of */
    struct json_writer result;  /* waits to be sent */
    bool result_made, result_sent;
};

/* Starts what the words of a START say. A mistake in them becomes a result like any other. NULL without memory. */
struct served_job *served_job_start(struct supervisor *supervisor, struct channel *channel, uint64_t number, int count,
                                    char **words);
void served_job_free(struct served_job *served);

bool served_job_input(struct served_job *served, const void *bytes, size_t length, struct fault *fault);
bool served_job_credit(struct served_job *served, const struct frame_credit *credit, struct fault *fault);
void served_job_cancel(struct served_job *served);
void served_job_discard(struct served_job *served);

/* Writes the result down as soon as it is final. */
void served_job_settle(struct served_job *served);
/* Nothing is left to send, and nothing runs. */
bool served_job_is_over(const struct served_job *served);

/* Each sends one frame, if there is one of the kind. */
bool served_job_send_result(struct served_job *served);
bool served_job_send_input_credit(struct served_job *served);
bool served_job_send_output(struct served_job *served);

#endif

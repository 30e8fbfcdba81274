#include "served_job.h"

#include "options.h"

#include <stdlib.h>

static ssize_t put_frame(struct sink *base, const void *bytes, size_t length)
{
    struct frame_sink *sink = (struct frame_sink *)base;
    struct served_job *served = sink->owner;
    if (sink->discarding)
        return (ssize_t)length;
    sink->waiting = sink->credit_bytes && !channel_is_free(served->channel);
    if (!sink->credit_bytes || sink->waiting)
        return 0;
    size_t most = sink->credit_bytes < FRAME_BYTES_MAX ? (size_t)sink->credit_bytes : FRAME_BYTES_MAX;
    size_t size = length < most ? length : most;
    sink->credit_bytes -= size;
    channel_send(served->channel, sink->type, served->number, bytes, size);
    return (ssize_t)size;
}

static void input_taken(void *owner, size_t bytes)
{
    struct served_job *served = owner;
    served->input_taken_bytes += (uint32_t)bytes;
}

static bool parse(struct job_spec *spec, int count, char **words, struct fault *fault)
{
    if (options_init(spec, fault) && options_parse(spec, count, words, fault)) {
        if (!spec->result)
            return true;
        fault_set(fault, 0, "leave it out",
                  "--result is for `launcher run`: a job of serve answers with a RESULT frame");
    }
    fault_name_step(fault, "options");
    return false;
}

struct served_job *served_job_start(struct supervisor *supervisor, struct channel *channel, uint64_t number, int count,
                                    char **words)
{
    struct served_job *served = calloc(1, sizeof *served);
    struct fault fault = {.step = ""};
    if (!served)
        return NULL;
    served->channel = channel;
    served->number = number;
    json_init(&served->result, FRAME_RESULT_MAX);
    for (int i = 0; i < 2; i++)
        served->sinks[i] =
            (struct frame_sink){.sink.put = put_frame, .owner = served, .type = i ? FRAME_STDERR : FRAME_STDOUT};
    if (!parse(&served->spec, count, words, &fault)) {
        result_write_fault(&fault, &served->result);
        served->result_made = true;
        return served;
    }
    struct sink *sinks[2] = {&served->sinks[0].sink, &served->sinks[1].sink};
    served->started = true;
    job_start(&served->job, supervisor, &served->spec, INPUT_IS_FED, sinks);
    served->job.input.taken = input_taken;
    served->job.input.owner = served;
    return served;
}

void served_job_free(struct served_job *served)
{
    if (served->started)
        job_free(&served->job);
    job_spec_free(&served->spec);
    json_free(&served->result);
    free(served);
}

bool served_job_input(struct served_job *served, const void *bytes, size_t length, struct fault *fault)
{
    if (!served->started || served->job.stdin_file >= 0 || input_feed(&served->job.input, bytes, length))
        return true;
    return fault_set(fault, 0, "send no more INPUT than there is credit for",
                     "INPUT for job %llu goes beyond its credit", (unsigned long long)served->number);
}

bool served_job_credit(struct served_job *served, const struct frame_credit *credit, struct fault *fault)
{
    struct frame_sink *sink = &served->sinks[credit->stream - 1];
    if (sink->credit_bytes + credit->bytes > UINT32_MAX)
        return fault_set(fault, 0, "give credit for what was received", "CREDIT for job %llu adds up to 2^32 and more",
                         (unsigned long long)served->number);
    sink->credit_bytes += credit->bytes;
    if (served->started && !sink->waiting)
        output_resume(&served->job.outputs[credit->stream - 1]);
    return true;
}

void served_job_cancel(struct served_job *served)
{
    if (served->started)
        job_end(&served->job, OUTCOME_CANCELLED);
}

void served_job_discard(struct served_job *served)
{
    for (int i = 0; i < 2; i++) {
        served->sinks[i].discarding = true;
        if (served->started)
            output_resume(&served->job.outputs[i]);
    }
}

void served_job_settle(struct served_job *served)
{
    if (served->result_made || served->job.state != JOB_DONE)
        return;
    served->result_made = true;
    result_write(&served->job, &served->result);
    if (!served->result.overflow)
        return;
    struct fault fault = {.step = "result"};
    fault_set(&fault, 0, "let the job leave fewer files in /job/out", "the result has more than %d bytes",
              FRAME_RESULT_MAX);
    json_free(&served->result);
    result_write_fault(&fault, &served->result);
}

bool served_job_is_over(const struct served_job *served)
{
    return served->result_sent && (!served->started || job_is_delivered(&served->job));
}

bool served_job_send_result(struct served_job *served)
{
    if (!served->result_made || served->result_sent)
        return false;
    served->result_sent = true;
    channel_send_large(served->channel, FRAME_RESULT, served->number, &served->result);
    return true;
}

bool served_job_send_input_credit(struct served_job *served)
{
    unsigned char bytes[4];
    if (!served->input_taken_bytes)
        return false;
    frame_write_u32(bytes, served->input_taken_bytes);
    served->input_taken_bytes = 0;
    channel_send(served->channel, FRAME_INPUT_CREDIT, served->number, bytes, sizeof bytes);
    return true;
}

bool served_job_send_output(struct served_job *served)
{
    for (int i = 0; i < 2; i++) {
        struct frame_sink *sink = &served->sinks[i];
        if (!sink->waiting)
            continue;
        uint64_t before = sink->credit_bytes;
        sink->waiting = false;
        output_resume(&served->job.outputs[i]);
        if (sink->credit_bytes != before)
            return true;
    }
    return false;
}

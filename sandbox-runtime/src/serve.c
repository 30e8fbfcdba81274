/*
 * `launcher serve`: many jobs on the supervisor's loop, told by frames over one pair of descriptors. What a job is and how it
 * runs is the same code as in `launcher run`; here is only who is told what, and when.
 *
 * The channel asks for one frame at a time. First come results, then input credit, then output, one job after the other; so a
 * result never stands behind output, and a client that takes little of one job's output holds up no other job. Whatever waits,
 * waits in buffers of fixed size that belong to the job.
 *
 * The client's end is the life of everything here: when it closes, or breaks the rules, all jobs are killed and the launcher
 * leaves.
 */
#include "channel.h"
#include "clock.h"
#include "commands.h"
#include "descriptor.h"
#include "job.h"
#include "options.h"
#include "own_process.h"
#include "served_job.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

enum {
    IDLE_US = 200 * 1000,     /* without a job for so long, system calls of the host are no longer looked at */
    LEAVE_US = 15 * 1000000,  /* killed jobs and last frames have as long */
    ERROR_LEAVE_US = 1000000, /* a client that broke the rules need not read why */
};

struct server {
    struct supervisor supervisor;
    struct channel channel;
    struct watch signals;
    struct served_job *jobs;
    unsigned job_count;
    uint64_t last_number;
    char **words;
    uint64_t idle_us; /* when it will have been idle long enough */
    bool leaving;     /* no job is started any more */
    uint64_t leave_us;
    bool failed; /* the client broke the rules */
    struct json_writer error;
};

static struct served_job *find_job(const struct server *server, uint64_t number)
{
    for (struct served_job *job = server->jobs; job; job = job->next)
        if (job->number == number)
            return job;
    return NULL;
}

/* At the end of the list, so that who came first is asked first. */
static void append_job(struct server *server, struct served_job *job)
{
    struct served_job **at = &server->jobs;
    while (*at)
        at = &(*at)->next;
    job->next = NULL;
    *at = job;
}

static bool start_job(struct server *server, const struct frame_header *header, char *payload, struct fault *fault)
{
    int count;
    if (header->job <= server->last_number)
        return fault_set(fault, 0, "give each job a number above all before it",
                         "START of job %llu comes after that of %llu", (unsigned long long)header->job,
                         (unsigned long long)server->last_number);
    if (server->job_count >= server->supervisor.most_jobs)
        return fault_set(fault, 0, "wait for a RESULT and the rest of its output, or start with a larger --jobs",
                         "START of job %llu, and %u jobs are open", (unsigned long long)header->job, server->job_count);
    if (!frame_read_words(payload, header->length, server->words, &count, fault))
        return false;
    server->last_number = header->job;
    struct served_job *job = served_job_start(&server->supervisor, &server->channel, header->job, count, server->words);
    if (!job)
        return fault_set(fault, ENOMEM, "free some memory", "cannot start job %llu", (unsigned long long)header->job);
    append_job(server, job);
    server->job_count++;
    return true;
}

/* One frame of the client. What is about a job that is over already crossed its result on the way. */
static bool take_frame(void *owner, const struct frame_header *header, char *payload, struct fault *fault)
{
    struct server *server = owner;
    struct frame_credit credit;
    if (header->type == FRAME_START)
        return start_job(server, header, payload, fault);
    if (header->job > server->last_number)
        return fault_set(fault, 0, "send START first", "a frame of type %u is about job %llu, which was never started",
                         header->type, (unsigned long long)header->job);
    if (header->type == FRAME_CREDIT && !frame_read_credit((unsigned char *)payload, &credit, fault))
        return false;
    struct served_job *job = find_job(server, header->job);
    if (!job)
        return true;
    switch (header->type) {
    case FRAME_INPUT:
        return served_job_input(job, payload, header->length, fault);
    case FRAME_CREDIT:
        return served_job_credit(job, &credit, fault);
    case FRAME_CANCEL:
        served_job_cancel(job);
        return true;
    default:
        served_job_discard(job);
        return true;
    }
}

static bool give_output(struct server *server)
{
    for (struct served_job **at = &server->jobs; *at; at = &(*at)->next) {
        struct served_job *job = *at;
        if (!served_job_send_output(job))
            continue;
        *at = job->next; /* the others come before its next one */
        append_job(server, job);
        return true;
    }
    return false;
}

static bool give_frame(void *owner)
{
    struct server *server = owner;
    if (server->failed) {
        bool waits = server->error.length > 0;
        if (waits)
            channel_send_large(&server->channel, FRAME_ERROR, 0, &server->error);
        return waits;
    }
    for (struct served_job *job = server->jobs; job; job = job->next)
        if (served_job_send_result(job))
            return true;
    for (struct served_job *job = server->jobs; job; job = job->next)
        if (served_job_send_input_credit(job))
            return true;
    return give_output(server);
}

static void leave(struct server *server)
{
    if (!server->leaving)
        server->leave_us = clock_now_us() + LEAVE_US;
    server->leaving = true;
    server->supervisor.prepares = false;
    for (struct served_job *job = server->jobs; job; job = job->next) {
        served_job_cancel(job);
        served_job_discard(job);
    }
}

static void client_ended(void *owner, const struct fault *fault)
{
    struct server *server = owner;
    if (fault && !server->failed) {
        struct fault named = *fault;
        fault_name_step(&named, "protocol");
        server->failed = true;
        result_write_fault(&named, &server->error);
        fprintf(stderr, "launcher: %s: %s (%s)\n", named.step, named.message, named.mend);
    }
    leave(server);
}

/* The same as a client that goes, but results are still sent. */
static void signal_ready(struct watch *watch, uint32_t events)
{
    (void)events;
    struct server *server = watch->owner;
    while (own_process_take_signal(watch)) {
        channel_stop_reading(&server->channel);
        leave(server);
    }
}

/* Makes results that have become final, and lets go of jobs that have nothing more to say. */
static void settle_jobs(struct server *server)
{
    for (struct served_job **at = &server->jobs; *at;) {
        struct served_job *job = *at;
        served_job_settle(job);
        bool nobody_listens = server->channel.ended || server->failed;
        bool over = nobody_listens ? job->result_made : served_job_is_over(job);
        if (!over) {
            at = &job->next;
            continue;
        }
        *at = job->next;
        served_job_free(job);
        server->job_count--;
        server->idle_us = clock_now_us() + IDLE_US;
    }
}

static bool is_over(const struct server *server)
{
    if (!server->leaving)
        return false;
    uint64_t now_us = clock_now_us();
    if (now_us >= server->leave_us)
        return true;
    bool said = server->channel.ended || (channel_is_free(&server->channel) && !server->error.length) ||
                (server->failed && now_us >= server->leave_us - LEAVE_US + ERROR_LEAVE_US);
    return !server->job_count && said;
}

static uint64_t next_turn_us(struct server *server)
{
    if (server->leaving)
        return server->job_count ? server->leave_us : clock_now_us() + ERROR_LEAVE_US / 10;
    return server->job_count ? LOOP_FOREVER : server->idle_us;
}

static void run_server(struct server *server)
{
    unsigned char hello[8];
    server->supervisor.prepares = !server->supervisor.rootless.active;
    if (server->supervisor.prepares)
        job_prepare(&server->supervisor); /* the first job finds one too */
    frame_write_u32(hello, FRAMES_VERSION);
    frame_write_u32(hello + 4, server->supervisor.most_jobs);
    channel_send(&server->channel, FRAME_HELLO, 0, hello, sizeof hello);
    server->idle_us = LOOP_FOREVER;
    while (!is_over(server)) {
        supervisor_turn(&server->supervisor, next_turn_us(server));
        settle_jobs(server);
        channel_pump(&server->channel);
        settle_jobs(server); /* a client that has read a result may start the next job at once */
        if (!server->job_count && clock_now_us() >= server->idle_us) {
            counts_rest(server->supervisor.counts);
            server->idle_us = LOOP_FOREVER;
        }
    }
}

/* Programs of BPF are loaded here, once, so that no job waits for it. */
static bool open_server(struct server *server, const struct serve_settings *settings, struct fault *fault)
{
    if (!supervisor_open(&server->supervisor, (unsigned)settings->most_jobs, fault))
        return false;
    if (!accounts_open(&server->supervisor, server->supervisor.most_jobs, fault)) {
        fault_name_step(fault, "device-controller");
        return false;
    }
    server->words = malloc((FRAME_WORDS_MAX + 1) * sizeof *server->words);
    server->channel.take = take_frame;
    server->channel.give = give_frame;
    server->channel.end = client_ended;
    server->channel.owner = server;
    json_init(&server->error, FRAME_BYTES_MAX);
    if (server->words && own_process_watch_signals(&server->signals, &server->supervisor.loop, signal_ready, server) &&
        channel_open(&server->channel, &server->supervisor.loop, settings->control[0], settings->control[1]))
        return true;
    fault_name_step(fault, "control");
    return fault_set(fault, errno, "raise the limits of open files and memory", "cannot watch the control descriptors");
}

static int help(void)
{
    printf("usage: launcher serve [--fd N,M] [--jobs N]\n\n");
    serve_settings_print_help(stdout);
    printf("\nFrames, -> from the client, <- to it, with the bytes of their payload; README.md has every byte:\n\n");
    frames_print_help(stdout);
    printf("\nExits with 0 when its input ends or at SIGTERM, 125 after an ERROR. All its jobs end with it.\n");
    return 0;
}

/* Told on standard error, and to a client that reads already. */
static int refuse(const struct fault *fault, int out_fd)
{
    struct json_writer json;
    unsigned char header[FRAME_HEADER_SIZE];
    json_init(&json, FRAME_BYTES_MAX);
    result_write_fault(fault, &json);
    fprintf(stderr, "launcher: %s: %s (%s)\n", fault->step, fault->message, fault->mend);
    frame_write_header(header, &(struct frame_header){.type = FRAME_ERROR, .length = (uint32_t)json.length});
    if (out_fd >= 0 && descriptor_write_all(out_fd, header, sizeof header))
        descriptor_write_all(out_fd, json.bytes, json.length);
    json_free(&json);
    return EXIT_SETUP_FAILED;
}

int command_serve(int count, char **words)
{
    static struct server server;
    struct serve_settings settings;
    struct fault fault = {.step = ""};
    if (count == 1 && strcmp(words[0], "--help") == 0)
        return help();
    own_process_settle_descriptors();
    bool parsed = serve_settings_parse(&settings, count, words, &fault);
    for (int i = 0; parsed && i < 2; i++)
        if (fcntl(settings.control[i], F_GETFD) < 0)
            parsed = fault_set(&fault, EBADF, "pass the descriptor on to the launcher",
                               "--fd names %d, which is not open", settings.control[i]);
    if (!parsed) {
        fault_name_step(&fault, "options");
        return refuse(&fault, -1);
    }
    if (!open_server(&server, &settings, &fault))
        return refuse(&fault, settings.control[1]);
    run_server(&server);
    channel_close(&server.channel);
    supervisor_close(&server.supervisor);
    return server.failed ? EXIT_SETUP_FAILED : 0;
}

/* `launcher run`: one job on the supervisor's loop, with the launcher's own standard streams. */
#include "commands.h"
#include "descriptor.h"
#include "job.h"
#include "options.h"
#include "own_process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct run {
    struct supervisor supervisor;
    struct job_spec spec;
    struct job job;
    struct descriptor_sink sinks[2];
    struct watch signals;
    struct watch result; /* a pipe or socket for the result: whoever should read it may die */
    int result_fd;       /* -1: the last line of standard error */
};

/* Opens what --result names. False with the fault set. */
static bool open_result(struct run *run, struct fault *fault)
{
    const char *where = run->spec.result;
    run->result_fd = -1;
    if (!where)
        return true;
    if (strncmp(where, "fd:", 3) == 0) {
        char *end;
        long number = strtol(where + 3, &end, 10);
        if (!where[3] || *end || number < 0 || number > 1 << 20 || fcntl((int)number, F_GETFD) < 0)
            return fault_set(fault, EBADF, "pass the descriptor on to the launcher, or name a file",
                             "--result %s names no open descriptor", where);
        run->result_fd = (int)number;
        return true;
    }
    run->result_fd = open(where, O_WRONLY | O_CREAT | O_TRUNC | O_NOCTTY | O_CLOEXEC, 0644);
    return run->result_fd >= 0 ||
           fault_set(fault, errno, "choose a file that can be written", "cannot open --result %s", where);
}

/* Writes the object as one line. */
static bool put_result(int fd, struct json_writer *json)
{
    json_raw_piece(json, "\n", 1);
    return !json->overflow && descriptor_write_all(fd < 0 ? STDERR_FILENO : fd, json->bytes, json->length);
}

static int report_fault(const struct fault *fault, int result_fd)
{
    struct json_writer json;
    json_init(&json, 1 << 16);
    result_write_fault(fault, &json);
    if (result_fd >= 0)
        fprintf(stderr, "launcher: %s: %s (%s)\n", fault->step, fault->message, fault->mend);
    put_result(result_fd, &json);
    json_free(&json);
    return EXIT_SETUP_FAILED;
}

static void signal_ready(struct watch *watch, uint32_t events)
{
    (void)events;
    struct run *run = watch->owner;
    while (own_process_take_signal(watch))
        job_cancel(&run->job);
}

/* Nobody is left to read the result, so nobody wants the job. */
static void result_reader_gone(struct watch *watch, uint32_t events)
{
    (void)events;
    struct run *run = watch->owner;
    loop_watch(&run->supervisor.loop, watch, 0);
    job_cancel(&run->job);
}

static void watch_result_reader(struct run *run)
{
    struct stat status;
    watch_init(&run->result, run->result_fd, result_reader_gone, run);
    if (run->result_fd >= 0 && fstat(run->result_fd, &status) == 0 &&
        (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode)))
        loop_watch(&run->supervisor.loop, &run->result, LOOP_ONLY_ERRORS);
}

static int run_job(struct run *run)
{
    struct job *job = &run->job;
    struct sink *sinks[2] = {&run->sinks[0].sink, &run->sinks[1].sink};
    for (int i = 0; i < 2; i++)
        descriptor_sink_init(&run->sinks[i], &run->supervisor.loop, STDOUT_FILENO + i, &job->outputs[i]);
    job_start(job, &run->supervisor, &run->spec, STDIN_FILENO, sinks);
    while (job->state != JOB_DONE || !job_is_delivered(job))
        supervisor_turn(&run->supervisor, LOOP_FOREVER);
    struct json_writer json;
    json_init(&json, 32 << 20);
    result_write(job, &json);
    bool written = put_result(run->result_fd, &json);
    if (run->result_fd >= 0 && job->outcome == OUTCOME_SETUP_FAILED)
        fprintf(stderr, "launcher: %s: %s (%s)\n", job->fault.step, job->fault.message, job->fault.mend);
    json_free(&json);
    int code = written ? result_exit_code(job) : EXIT_SETUP_FAILED;
    job_free(job);
    return code;
}

int command_run(int count, char **words)
{
    static struct run run;
    struct fault fault = {.step = ""}, result_fault = {.step = ""};
    if (count == 1 && strcmp(words[0], "--help") == 0) {
        printf("usage: launcher run [options] -- PROGRAM ARGS\n\n");
        options_print_help(stdout);
        printf("\nExits with the program's code, 128 + signal, 125 where the sandbox could not be set up, 137 where a "
               "limit ended the job.\n"
               "Example: launcher run --wall 5 --memory 64M -- /bin/echo hello\n");
        return 0;
    }
    own_process_settle_descriptors();
    bool parsed = options_init(&run.spec, &fault) && options_parse(&run.spec, count, words, &fault);
    if (!parsed)
        fault_name_step(&fault, "options");
    own_process_hide_words(count, words); /* what is needed of them was copied */
    if (!open_result(&run, &result_fault) && parsed) {
        fault_name_step(&result_fault, "options");
        return report_fault(&result_fault, -1);
    }
    if (!parsed || !supervisor_open(&run.supervisor, 1, &fault))
        return report_fault(&fault, run.result_fd);
    if (!own_process_watch_signals(&run.signals, &run.supervisor.loop, signal_ready, &run)) {
        fault_name_step(&fault, "event-loop");
        fault_set(&fault, errno, "raise the limit of open files (ulimit -n)", "cannot watch signals");
        return report_fault(&fault, run.result_fd);
    }
    watch_result_reader(&run);
    int code = run_job(&run);
    supervisor_close(&run.supervisor);
    job_spec_free(&run.spec);
    return code;
}

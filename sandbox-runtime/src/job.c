#include "job.h"

#include "clock.h"
#include "descriptor.h"
#include "kernel.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SETUP_LIMIT_US = 30 * 1000000, /* copying a large plugin from a slow disk takes a while; hanging is a failure */
    CLEAR_RETRY_US = 500,
    CPU_CHECK_LEAST_US = 1000,
    NOTIFY_BUDGET = 64, /* refused calls answered per turn, so that a flood holds up nobody else */
};

static struct loop *loop_of(struct job *job)
{
    return &job->supervisor->loop;
}

static void output_exceeded(void *owner)
{
    job_end(owner, OUTCOME_OUTPUT_EXCEEDED);
}

void job_start(struct job *job, struct supervisor *supervisor, struct job_spec *spec, int stdin_fd, struct sink *sinks[2])
{
    *job = (struct job){.supervisor = supervisor, .spec = spec, .collect_dir = -1, .job_dir = -1, .pipe_in = -1, .pipe_out = {-1, -1}, .init = -1};
    job->inside = (struct inside){
        .spec = spec, .cgroup = &job->cgroup, .report = -1, .stdio = {-1, -1, -1}, .plugin = -1, .job_dir = -1, .listener = -1};
    job->process.fd = job->report.fd = job->listener.fd = job->oom.fd = job->collector.fd = -1;
    job->input.source.fd = job->input.pipe.fd = job->outputs[0].pipe.fd = job->outputs[1].pipe.fd = -1;
    cgroup_job_init(&job->cgroup, &supervisor->cgroups);
    json_init(&job->collected, 16 << 20);
    json_init(&job->accounts, 1 << 20);
    job->counts = (struct counts_job){.slot = -1, .reason = "the job never ran"};
    job->created_us = clock_now_us();
    job->wall_deadline_us = job->created_us + SETUP_LIMIT_US;
    job->cpu_check_us = job->clear_retry_us = LOOP_FOREVER;
    bool started = job_setup(job);
    for (int i = 0; started && i < 2; i++) {
        int fd = job->pipe_out[i];
        job->pipe_out[i] = -1;
        started = output_open(&job->outputs[i], loop_of(job), fd, sinks[i], spec->output_limit_bytes, output_exceeded, job);
    }
    if (started) {
        int fd = job->pipe_in;
        job->pipe_in = -1;
        started = input_open(&job->input, loop_of(job), stdin_fd, fd);
    }
    if (!started && !job->fault.message[0]) {
        fault_name_step(&job->fault, "streams");
        fault_set(&job->fault, errno, "raise the limits of open files and memory", "cannot watch the job's streams");
    }
    if (!started)
        job_end(job, OUTCOME_SETUP_FAILED);
}

void job_end(struct job *job, enum outcome outcome)
{
    if (job->state >= JOB_ENDING)
        return;
    job->outcome = outcome;
    job->state = JOB_ENDING;
    if (!job->ended_us)
        job->ended_us = clock_now_us();
    job->wall_deadline_us = job->cpu_check_us = LOOP_FOREVER;
    if (job->init > 0) {
        cgroup_job_kill(&job->cgroup);
        kernel_pidfd_kill(job->process.fd, SIGKILL);
        return;
    }
    job->state = JOB_CLEARING; /* there never was a process */
    job->reaped_us = job->ended_us;
    accounts_take(job);
    job->clear_retry_us = clock_now_us();
}

void job_cancel(struct job *job)
{
    if (job->state < JOB_ENDING) {
        job_end(job, OUTCOME_CANCELLED);
        return;
    }
    for (int i = 0; i < 2 && job->state >= JOB_FINISHING; i++)
        output_close(&job->outputs[i]);
}

static void listener_ready(struct watch *watch, uint32_t events)
{
    (void)events;
    struct job *job = watch->owner;
    switch (notify_serve(job->notify, watch->fd, NOTIFY_BUDGET)) {
    case NOTIFY_OK:
        break;
    case NOTIFY_KILL_DENIAL:
    case NOTIFY_KILL_ABI:
        job_end(job, OUTCOME_SYSCALL_DENIED);
        loop_watch(loop_of(job), watch, 0); /* what was not answered stays readable until its caller is dead */
        break;
    case NOTIFY_CLOSED:
        loop_forget(loop_of(job), watch);
        break;
    }
}

/* The sandbox stands: from the go on the job's time runs. */
static void take_ready(struct job *job, const struct report *report, const int descriptors[REPORT_DESCRIPTORS_MAX])
{
    memcpy(job->inside_us, report->step_us, sizeof job->inside_us);
    /* From its first instruction on the child's own times run; what this side did meanwhile took no time of the job's. */
    job->setup_us[job->clone_step] = (uint32_t)(report->begun_us - job->cloned_us);
    for (unsigned i = job->clone_step + 1; i < setup_step_count; i++)
        job->setup_us[i] = 0;
    job->job_dir = descriptors[1];
    watch_init(&job->listener, descriptors[0], listener_ready, job);
    if (descriptors[0] < 0 || !loop_watch(loop_of(job), &job->listener, EPOLLIN)) {
        fault_name_step(&job->fault, "filter");
        fault_set(&job->fault, errno, "raise the limit of open files (ulimit -n)", "the filter's listener did not arrive");
        job_end(job, OUTCOME_SETUP_FAILED);
        return;
    }
    cgroup_job_cpu_usage(&job->cgroup, &job->before);
    job->state = JOB_RUNNING;
    job->started_us = clock_now_us();
    job->wall_deadline_us = job->started_us + job->spec->wall_us;
    if (job->spec->cpu_time_us)
        job->cpu_check_us = job->started_us;
    report_send_go(job->report.fd);
}

static void take_exited(struct job *job, int wait_status)
{
    job->wait_status = wait_status;
    job->plugin_ended = true;
    job->ended_us = clock_now_us();
    job_end(job, job->fault.message[0] ? OUTCOME_SETUP_FAILED : WIFSIGNALED(wait_status) ? OUTCOME_SIGNALED : OUTCOME_EXITED);
}

void job_report_ready(struct watch *watch, uint32_t events)
{
    (void)events;
    struct job *job = watch->owner;
    struct report report;
    int descriptors[REPORT_DESCRIPTORS_MAX];
    int got;
    while ((got = report_receive(watch->fd, &report, descriptors)) > 0) {
        if (report.kind == REPORT_READY && job->state == JOB_SETTING_UP) {
            take_ready(job, &report, descriptors);
            continue;
        }
        if (report.kind == REPORT_EXITED)
            take_exited(job, report.status);
        if (report.kind == REPORT_FAULT && job->state <= JOB_RUNNING) {
            job->fault = report.fault;
            job_end(job, OUTCOME_SETUP_FAILED);
        }
        for (int i = 0; i < REPORT_DESCRIPTORS_MAX; i++)
            descriptor_close(&descriptors[i]);
    }
    if (got == 0 || errno != EAGAIN)
        loop_forget(loop_of(job), watch);
}

void job_oom_ready(struct watch *watch, uint32_t events)
{
    (void)events;
    struct job *job = watch->owner;
    uint64_t count;
    if (read(watch->fd, &count, sizeof count) == (ssize_t)sizeof count &&
        cgroup_job_at_memory_limit(&job->cgroup, job->spec->memory_bytes))
        job_end(job, job->state == JOB_SETTING_UP ? OUTCOME_SETUP_FAILED : OUTCOME_MEMORY_EXCEEDED);
}

/* The job's own failure and a failed set-up never share an outcome, and what the counters say outranks how a process died. */
static void settle_outcome(struct job *job)
{
    bool oom = job->usage.oom_kills != CGROUP_UNKNOWN && job->usage.oom_kills > 0;
    bool ended_by_itself = job->outcome == OUTCOME_EXITED || job->outcome == OUTCOME_SIGNALED;
    if (job->outcome == OUTCOME_SETUP_FAILED && !job->fault.message[0]) {
        fault_name_step(&job->fault, "memory-limit");
        fault_set(&job->fault, 0, "raise --memory: plugin and inputs count as the job's memory", "the set-up itself did not fit into the memory limit of %llu bytes (%s)",
                  (unsigned long long)job->spec->memory_bytes, oom ? "the kernel's OOM killer ended it" : "its process was killed");
    }
    if (ended_by_itself && oom)
        job->outcome = OUTCOME_MEMORY_EXCEEDED;
}

/* Init is gone, and with it every process of its PID namespace. */
void job_process_ready(struct watch *watch, uint32_t events)
{
    (void)events;
    struct job *job = watch->owner;
    int init_status = 0;
    if (waitpid(job->init, &init_status, WNOHANG) != job->init)
        return;
    if (job->report.fd >= 0)
        job_report_ready(&job->report, EPOLLIN);
    if (job->state < JOB_ENDING) { /* it died without a word: killed from outside, or by the OOM killer */
        job->wait_status = init_status;
        job_end(job, job->state == JOB_SETTING_UP ? OUTCOME_SETUP_FAILED : OUTCOME_SIGNALED);
    }
    job->reaped_us = clock_now_us();
    if (!job->ended_us)
        job->ended_us = job->reaped_us;
    job->init = -1;
    loop_forget(loop_of(job), &job->process);
    loop_forget(loop_of(job), &job->report);
    cgroup_job_usage(&job->cgroup, &job->usage);
    accounts_take(job);
    settle_outcome(job);
    input_close(&job->input);
    job->state = JOB_CLEARING;
    job->clear_retry_us = clock_now_us();
    job_tick(job, job->clear_retry_us);
}

static void close_job_files(struct job *job)
{
    struct loop *loop = loop_of(job);
    loop_forget(loop, &job->process);
    loop_forget(loop, &job->report);
    loop_forget(loop, &job->listener);
    loop_forget(loop, &job->oom);
    input_close(&job->input);
    descriptor_close(&job->pipe_in);
    for (int i = 0; i < 3; i++)
        descriptor_close(&job->inside.stdio[i]);
    descriptor_close(&job->inside.report);
}

/* The groups are removed as soon as the kernel calls them empty: that is the check that nothing was left alive. */
static void clear(struct job *job, uint64_t now_us)
{
    loop_forget(loop_of(job), &job->oom);
    if (!cgroup_job_remove(&job->cgroup)) {
        cgroup_job_kill(&job->cgroup);
        job->clear_retry_us = now_us + CLEAR_RETRY_US;
        return;
    }
    job->clear_retry_us = LOOP_FOREVER;
    close_job_files(job);
    job->state = JOB_FINISHING;
    job->cleared_us = clock_now_us();
    for (int i = 0; i < 2; i++) {
        descriptor_close(&job->pipe_out[i]);
        if (job->outputs[i].buffer)
            output_finish(&job->outputs[i]);
        else
            job->outputs[i].ended = true;
    }
    if (job->job_dir >= 0 && !outputs_start(job)) {
        fault_name_step(&job->fault, "outputs");
        fault_set(&job->fault, errno, "check that --collect names a directory that can be written", "cannot collect the outputs in %s", job->spec->collect_dir);
        job->outcome = OUTCOME_SETUP_FAILED;
    }
    descriptor_close(&job->job_dir);
}

static void check_cpu_time(struct job *job, uint64_t now_us)
{
    uint64_t used_us = cgroup_job_cpu_us(&job->cgroup);
    uint64_t limit_us = job->spec->cpu_time_us + job->before.user_us + job->before.system_us;
    if (used_us != CGROUP_UNKNOWN && used_us >= limit_us) {
        job_end(job, OUTCOME_CPU_TIME_EXCEEDED);
        return;
    }
    /* However busy the job is, its quota does not let it reach the limit sooner than this. */
    uint64_t left_us = used_us == CGROUP_UNKNOWN ? 0 : (limit_us - used_us) * 1000 / job->spec->cpu_thousandths;
    job->cpu_check_us = now_us + (left_us > CPU_CHECK_LEAST_US ? left_us : CPU_CHECK_LEAST_US);
}

uint64_t job_next_deadline_us(const struct job *job)
{
    uint64_t next = job->wall_deadline_us < job->cpu_check_us ? job->wall_deadline_us : job->cpu_check_us;
    return next < job->clear_retry_us ? next : job->clear_retry_us;
}

void job_tick(struct job *job, uint64_t now_us)
{
    if (now_us >= job->wall_deadline_us && job->state == JOB_SETTING_UP) {
        fault_name_step(&job->fault, "setup-time");
        fault_set(&job->fault, ETIMEDOUT, "look at the disks that hold plugin and inputs", "the set-up took more than 30 seconds");
        job_end(job, OUTCOME_SETUP_FAILED);
    } else if (now_us >= job->wall_deadline_us) {
        job_end(job, OUTCOME_WALL_TIME_EXCEEDED);
    }
    if (now_us >= job->cpu_check_us)
        check_cpu_time(job, now_us);
    if (now_us >= job->clear_retry_us)
        clear(job, now_us);
    if (job->state == JOB_FINISHING && job->outputs[0].ended && job->outputs[1].ended && job->collector.fd < 0) {
        bool cut = job->outputs[0].truncated || job->outputs[1].truncated;
        if (cut && (job->outcome == OUTCOME_EXITED || job->outcome == OUTCOME_SIGNALED))
            job->outcome = OUTCOME_OUTPUT_EXCEEDED;
        job->state = JOB_DONE;
        job->done_us = clock_now_us();
    }
}

void job_free(struct job *job)
{
    close_job_files(job);
    outputs_kill(job);
    for (int i = 0; i < 2; i++) {
        output_close(&job->outputs[i]);
        descriptor_close(&job->pipe_out[i]);
    }
    descriptor_close(&job->job_dir);
    descriptor_close(&job->collect_dir);
    notify_free(job->notify);
    job->notify = NULL;
    json_free(&job->collected);
    json_free(&job->accounts);
}

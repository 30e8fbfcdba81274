/*
 * How a job ends, whatever the reason: one kill for the whole tree; init is reaped, and with it its PID namespace is empty;
 * the kernel is asked whether the job's groups are empty too; then the last bytes and the outputs. That is the result; the groups
 * are removed when there is time (job_remove.c).
 */
#include "job.h"

#include "clock.h"
#include "descriptor.h"
#include "kernel.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

enum {
    END_LIMIT_US = 10 * 1000000, /* a killed process that hangs in the kernel is waited for as long */
    CLEAR_RETRY_US = 500,
};

void job_end(struct job *job, enum outcome outcome)
{
    if (job->state >= JOB_ENDING)
        return;
    job->outcome = outcome;
    job->state = JOB_ENDING;
    if (!job->ended_us)
        job->ended_us = clock_now_us();
    job->wall_deadline_us = job->cpu_check_us = LOOP_FOREVER;
    job->end_deadline_us = clock_now_us() + END_LIMIT_US;
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

bool job_is_delivered(const struct job *job)
{
    return output_is_delivered(&job->outputs[0]) && output_is_delivered(&job->outputs[1]);
}

/* The job's own failure and a failed set-up never share an outcome, and what the counters say outranks how a process died. */
static void settle_outcome(struct job *job)
{
    bool oom = job->usage.oom_kills != CGROUP_UNKNOWN && job->usage.oom_kills > 0;
    bool ended_by_itself = job->outcome == OUTCOME_EXITED || job->outcome == OUTCOME_SIGNALED;
    if (job->outcome == OUTCOME_SETUP_FAILED && !job->fault.message[0]) {
        fault_name_step(&job->fault, "memory-limit");
        fault_set(&job->fault, 0, "raise --memory: plugin and inputs count as the job's memory",
                  "the set-up itself did not fit into the memory limit of %llu bytes (%s)",
                  (unsigned long long)job->spec->memory_bytes,
                  oom ? "the kernel's OOM killer ended it" : "its process was killed");
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
    loop_forget(&job->supervisor->loop, &job->process);
    loop_forget(&job->supervisor->loop, &job->report);
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
    struct loop *loop = &job->supervisor->loop;
    loop_forget(loop, &job->process);
    loop_forget(loop, &job->report);
    loop_forget(loop, &job->listener);
    loop_forget(loop, &job->oom);
    input_close(&job->input);
    descriptor_close(&job->pipe_in);
    for (int i = 0; i < 3; i++)
        descriptor_close(&job->inside.stdio[i]);
    descriptor_close(&job->inside.plugin);
    descriptor_close(&job->inside.report);
}

/* What is left once the tree is dead: the last bytes of the streams, and the outputs. */
static void finish(struct job *job)
{
    job->clear_retry_us = job->end_deadline_us = LOOP_FOREVER;
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
        fault_set(&job->fault, errno, "check that --collect names a directory that can be written",
                  "cannot collect the outputs in %s", job->spec->collect_dir);
        job->outcome = OUTCOME_SETUP_FAILED;
    }
    descriptor_close(&job->job_dir);
}

/* A process that SIGKILL does not end sits in the kernel: a broken disk or driver. The job is over for everybody else. */
static void give_up_clearing(struct job *job)
{
    job->outcome = OUTCOME_SETUP_FAILED;
    fault_set(&job->fault, ETIMEDOUT, "look for processes in state D, and for the disk or driver that holds them",
              "a process of the job cannot be killed; its group %s stays", job->cgroup.name);
    snprintf(job->fault.step, sizeof job->fault.step, "end-clear");
    descriptor_close(&job->job_dir);
    if (!job->reaped_us)
        job->reaped_us = clock_now_us();
    accounts_take(job);
    finish(job);
}

/* Nothing was left alive: the kernel says so. */
static void clear(struct job *job, uint64_t now_us)
{
    loop_forget(&job->supervisor->loop, &job->oom);
    if (!cgroup_job_is_empty(&job->cgroup)) {
        cgroup_job_kill(&job->cgroup);
        job->clear_retry_us = now_us + CLEAR_RETRY_US;
        return;
    }
    finish(job);
}

/* The last word on the outcome: a job that ended by itself, but whose last bytes went over the limit, did not succeed. */
static void end_finishing(struct job *job)
{
    bool cut = job->outputs[0].truncated || job->outputs[1].truncated;
    if (cut && (job->outcome == OUTCOME_EXITED || job->outcome == OUTCOME_SIGNALED))
        job->outcome = OUTCOME_OUTPUT_EXCEEDED;
    job->state = JOB_DONE;
    job->done_us = job->supervisor->last_done_us = clock_now_us();
}

void job_end_tick(struct job *job, uint64_t now_us)
{
    if (now_us >= job->clear_retry_us)
        clear(job, now_us);
    if (now_us >= job->end_deadline_us)
        give_up_clearing(job);
    if (job->state == JOB_FINISHING && job->outputs[0].ended && job->outputs[1].ended && job->collector.fd < 0)
        end_finishing(job);
}

static void unlink_job(struct job *job)
{
    for (struct job **at = &job->supervisor->jobs; *at; at = &(*at)->next)
        if (*at == job) {
            *at = job->next;
            return;
        }
}

void job_free(struct job *job)
{
    unlink_job(job);
    close_job_files(job);
    job_leave_remains(job);
    outputs_kill(job);
    for (int i = 0; i < 2; i++) {
        output_close(&job->outputs[i]);
        descriptor_close(&job->pipe_out[i]);
    }
    descriptor_close(&job->stdin_file);
    descriptor_close(&job->job_dir);
    descriptor_close(&job->user_namespace);
    descriptor_close(&job->network);
    descriptor_close(&job->collect_dir);
    notify_free(job->notify);
    job->notify = NULL;
    json_free(&job->collected);
    json_free(&job->accounts);
    arena_free(&job->shared);
}

/* What all jobs of one launcher process share: it opens what they need, and turns the loop for them. */
#include "job.h"

#include "clock.h"

#include <errno.h>
#include <sys/prctl.h>

enum {
    SPARE_WAIT_US = 20 * 1000, /* after so long, what nobody waits for is done even if there is other work */
    SHORT_US = 1000,           /* no job runs out of memory sooner */
};

/* A filter that is there already may answer calls before ours sees them: denials would go unrecorded. */
bool supervisor_check_outer_filter(struct fault *fault)
{
    if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 0)
        return true;
    fault_name_step(fault, "outer-seccomp");
    return fault_set(fault, 0,
                     "start it without one: docker run --security-opt seccomp=unconfined, or SystemCallFilter= left "
                     "out of the unit",
                     "the launcher runs under a seccomp filter, which would hide denied calls");
}

bool supervisor_open(struct supervisor *supervisor, unsigned most_jobs, struct fault *fault)
{
    *supervisor = (struct supervisor){.loop = {.epoll = -1}, .most_jobs = most_jobs};
    rootless_open(&supervisor->rootless);
    if (!supervisor_check_outer_filter(fault))
        return false;
    if (!cgroup_host_open(&supervisor->cgroups, fault)) {
        fault_name_step(fault, "cgroup-host");
        return false;
    }
    if (!loop_open(&supervisor->loop)) {
        fault_name_step(fault, "event-loop");
        return fault_set(fault, errno, "raise the limit of open files (ulimit -n)", "cannot make an epoll descriptor");
    }
    return true;
}

void supervisor_close(struct supervisor *supervisor)
{
    job_unprepare(supervisor);
    supervisor_sweep(supervisor);
    removals_finish(supervisor);
    accounts_close(supervisor);
    loop_close(&supervisor->loop);
    cgroup_host_close(&supervisor->cgroups);
}

static uint64_t earlier(uint64_t one_us, uint64_t other_us)
{
    return one_us < other_us ? one_us : other_us;
}

/* What is done once waits until the first job runs, or there is none. */
static uint64_t first_work_due_us(const struct supervisor *supervisor)
{
    const struct job *job = supervisor->jobs;
    if (supervisor->swept && supervisor->victims_sought)
        return LOOP_FOREVER;
    if (!job)
        return 0;
    if (job->state != JOB_RUNNING)
        return LOOP_FOREVER;
    return supervisor->swept ? job->started_us + SHORT_US : 0;
}

static uint64_t spare_work_due_us(const struct supervisor *supervisor)
{
    return earlier(first_work_due_us(supervisor),
                   earlier(removals_due_us(supervisor), job_prepare_due_us(supervisor)));
}

/* One piece of what nobody waits for. */
static void do_spare_work(struct supervisor *supervisor, uint64_t now_us)
{
    if (first_work_due_us(supervisor) <= now_us && !supervisor->swept) {
        counts_settle(supervisor->counts);
        supervisor_sweep(supervisor);
    } else if (first_work_due_us(supervisor) <= now_us) {
        accounts_seek_victims(supervisor);
    } else if (job_prepare_due_us(supervisor) <= now_us) {
        job_prepare(supervisor);
    } else if (removals_due_us(supervisor) <= now_us) {
        removals_try(supervisor, now_us);
    }
}

void supervisor_turn(struct supervisor *supervisor, uint64_t until_us)
{
    uint64_t spare_us = spare_work_due_us(supervisor);
    until_us = earlier(until_us, spare_us);
    for (const struct job *job = supervisor->jobs; job; job = job->next)
        until_us = earlier(until_us, job_next_deadline_us(job));
    bool idle = !loop_turn(&supervisor->loop, until_us);
    uint64_t now_us = clock_now_us();
    for (struct job *job = supervisor->jobs; job; job = job->next)
        job_tick(job, now_us);
    if (spare_us <= now_us && (idle || now_us - spare_us > SPARE_WAIT_US))
        do_spare_work(supervisor, now_us);
}

#include "job.h"

#include "clock.h"
#include "descriptor.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SETUP_LIMIT_US = 30 * 1000000, /* copying a large plugin from a slow disk takes a while; hanging is a failure */
    CPU_CHECK_LEAST_US = 1000,
    PAUSE_US = 3000, /* time enough to make a child */
    NOTIFY_BUDGET = 64, /* refused calls answered per turn, so that a flood holds up nobody else */
};

static void output_exceeded(void *owner)
{
    job_end(owner, OUTCOME_OUTPUT_EXCEEDED);
}

/* The supervisor of a single job makes its network namespace beside the child, which has as much to do without it. /sys shows the
 * network that it was mounted in, so with devices the child has to be in it before. */
static enum inside_network plan_network(const struct supervisor *supervisor, const struct job_spec *spec)
{
    if (spec->network_host)
        return NETWORK_HOST;
    bool alone = !supervisor->prepares && !supervisor->rootless.active;
    return alone && !spec->devices.count ? NETWORK_GIVEN : NETWORK_OWN;
}

void job_init(struct job *job, struct supervisor *supervisor, struct job_spec *spec)
{
    *job = (struct job){.supervisor = supervisor,
                        .spec = spec,
                        .collect_dir = -1,
                        .user_namespace = -1,
                        .job_dir = -1,
                        .mounts = -1,
                        .network = -1,
                        .stdin_file = -1,
                        .pipe_in = -1,
                        .pipe_out = {-1, -1},
                        .init = -1};
    job->inside = (struct inside){.spec = spec,
                                  .network = plan_network(supervisor, spec),
                                  .tmp_size_bytes = spec->tmp_size_bytes,
                                  .rootless = &supervisor->rootless,
                                  .report = -1,
                                  .stdio = {-1, -1, -1},
                                  .origin = -1,
                                  .plugin = -1,
                                  .landlock = -1,
                                  .mounts = -1,
                                  .job_dir = -1,
                                  .listener = -1};
    job->process.fd = job->report.fd = job->listener.fd = job->oom.fd = job->collector.fd = -1;
    job->input.source.fd = job->input.pipe.fd = job->outputs[0].pipe.fd = job->outputs[1].pipe.fd = -1;
    cgroup_job_init(&job->cgroup, &supervisor->cgroups);
    json_init(&job->collected, 16 << 20);
    json_init(&job->accounts, 1 << 20);
    job->counts = (struct counts_job){.slot = -1, .reason = "the job never ran"};
}

void job_start(struct job *job, struct supervisor *supervisor, struct job_spec *spec, int stdin_fd,
               struct sink *sinks[2])
{
    job_init(job, supervisor, spec);
    job->created_us = clock_now_us();
    job->wall_deadline_us = job->created_us + SETUP_LIMIT_US;
    job->cpu_check_us = job->clear_retry_us = job->end_deadline_us = LOOP_FOREVER;
    supervisor->hurried = supervisor->jobs || job->created_us - supervisor->last_done_us < PAUSE_US;
    job->next = supervisor->jobs;
    supervisor->jobs = job;
    bool started = job_setup(job);
    for (int i = 0; started && i < 2; i++) {
        int fd = job->pipe_out[i];
        job->pipe_out[i] = -1;
        started = output_open(&job->outputs[i], &job->supervisor->loop, fd, sinks[i], spec->output_limit_bytes,
                              output_exceeded, job);
    }
    if (started) {
        int fd = job->pipe_in;
        job->pipe_in = -1;
        started =
            input_open(&job->input, &job->supervisor->loop, job->stdin_file >= 0 ? job->stdin_file : stdin_fd, fd);
    }
    if (!started && !job->fault.message[0]) {
        fault_name_step(&job->fault, "streams");
        fault_set(&job->fault, errno, "raise the limits of open files and memory", "cannot watch the job's streams");
    }
    if (!started)
        job_end(job, OUTCOME_SETUP_FAILED);
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
        loop_watch(&job->supervisor->loop, watch,
                   0); /* what was not answered stays readable until its caller is dead */
        break;
    case NOTIFY_CLOSED:
        loop_forget(&job->supervisor->loop, watch);
        break;
    }
}

/* The sandbox stands, and the plugin starts without waiting for this: what it may call is answered from now on. */
static void take_ready(struct job *job, const struct report *report, const int descriptors[REPORT_DESCRIPTORS_MAX])
{
    memcpy(job->inside_us, report->step_us, sizeof job->inside_us);
    /* From its first instruction on the child's own times run; what this side did meanwhile took no time of the job's. */
    job->setup_us[job->child_step] = (uint32_t)(report->begun_us - job->child_at_us);
    for (unsigned i = job->child_step + 1; i < setup_step_count; i++)
        job->setup_us[i] = 0;
    job->mounts = descriptors[1];
    job->job_dir = descriptors[2];
    job->before = (struct cgroup_usage){.user_us = report->user_us, .system_us = report->system_us};
    watch_init(&job->listener, descriptors[0], listener_ready, job);
    notify_tune(descriptors[0]);
    if (descriptors[0] < 0 || !loop_watch(&job->supervisor->loop, &job->listener, EPOLLIN)) {
        fault_name_step(&job->fault, "end-listener"); /* the plugin may have begun */
        fault_set(&job->fault, errno, "raise the limit of open files (ulimit -n)",
                  "the filter's listener did not arrive");
        job_end(job, OUTCOME_SETUP_FAILED);
        return;
    }
    job->state = JOB_RUNNING;
    job->started_us = report->ready_us > job->go_us ? report->ready_us : job->go_us;
    job->wall_deadline_us = job->started_us + job->spec->wall_us;
    if (job->spec->cpu_time_us)
        job->cpu_check_us = job->started_us;
}

static void take_exited(struct job *job, int wait_status)
{
    job->wait_status = wait_status;
    job->plugin_ended = true;
    job->ended_us = clock_now_us();
    job_end(job, job->fault.message[0]      ? OUTCOME_SETUP_FAILED
                 : WIFSIGNALED(wait_status) ? OUTCOME_SIGNALED
                                            : OUTCOME_EXITED);
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
        loop_forget(&job->supervisor->loop, watch);
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

static uint64_t earlier(uint64_t one_us, uint64_t other_us)
{
    return one_us < other_us ? one_us : other_us;
}

uint64_t job_next_deadline_us(const struct job *job)
{
    return earlier(earlier(job->wall_deadline_us, job->cpu_check_us),
                   earlier(job->clear_retry_us, job->end_deadline_us));
}

void job_tick(struct job *job, uint64_t now_us)
{
    if (now_us >= job->wall_deadline_us && job->state == JOB_SETTING_UP) {
        fault_name_step(&job->fault, "setup-time");
        fault_set(&job->fault, ETIMEDOUT, "look at the disks that hold plugin and inputs",
                  "the set-up took more than 30 seconds");
        job_end(job, OUTCOME_SETUP_FAILED);
    } else if (now_us >= job->wall_deadline_us) {
        job_end(job, OUTCOME_WALL_TIME_EXCEEDED);
    }
    if (now_us >= job->cpu_check_us)
        check_cpu_time(job, now_us);
    job_end_tick(job, now_us);
}

/*
 * A child that has everything of a sandbox that does not depend on the job: groups, pipes, namespaces, and the first part of its
 * own list of steps. It waits at the step "job". One job takes it over; nothing of any job has run in it, and it is used once.
 * A job that is no ordinary one makes a child of its own, by the same steps.
 */
#include "job.h"

#include "clock.h"
#include "descriptor.h"
#include "kernel.h"
#include "options.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SHARED_SIZE = 4 * 1024 * 1024, /* room for the largest specification; only what is used takes memory */
    OLD_US = 60 * 1000000,         /* it shows the host's files as they were mounted when it was made */
    RETRY_US = 1000000,
    QUIET_US = 1000, /* a job that was started has the processors for itself for so long: most of the short ones end in it */
};

static const struct setup_step prepare_steps[] = {
    {"cgroup-create", job_make_group},
    {"user", job_choose_user},
    {"stdio-pipes", job_make_pipes},
    {"clone", job_clone_child},
    {"cgroups", job_make_groups},
    {"memory-limit", job_limit_memory},
    {"cpu-limit", job_limit_cpu},
    {"process-limit", job_limit_processes},
    {"cgroup-admit", job_admit_child},
};

enum { PREPARE_STEPS = sizeof prepare_steps / sizeof prepare_steps[0] };

/* Kills what there is of it. */
static void discard(struct job *job)
{
    if (job->init > 0) {
        cgroup_job_kill(&job->cgroup);
        kernel_pidfd_kill(job->process.fd, SIGKILL);
        waitpid(job->init, NULL, 0);
    }
    descriptor_close(&job->process.fd);
    descriptor_close(&job->report.fd);
    for (int i = 0; i < 2; i++)
        descriptor_close(&job->pipe_out[i]);
    struct job_spec *spec = job->spec;
    job_free(job);
    job_spec_free(spec);
    free(spec);
    free(job);
}

/* As much as the last job asked for; at first, what a job gets that does not say. */
static bool guess_extent(struct job_spec *spec, const struct job_extent *last)
{
    struct fault fault;
    struct arena arena = {NULL};
    if (!arena_open_shared(&arena, SHARED_SIZE) || !options_init_in(spec, arena, &fault))
        return false;
    if (!last->tmp_size_bytes)
        return true;
    spec->memory_bytes = last->limits.memory_bytes;
    spec->cpu_thousandths = last->limits.cpu_thousandths;
    spec->processes = last->limits.processes;
    spec->tmp_size_bytes = last->tmp_size_bytes;
    return true;
}

static struct job *make(struct supervisor *supervisor)
{
    struct fault fault = {.step = ""};
    struct job *job = malloc(sizeof *job);
    struct job_spec *spec = calloc(1, sizeof *spec);
    if (!job || !spec || !guess_extent(spec, &supervisor->extent)) {
        free(job);
        free(spec);
        return NULL;
    }
    job_init(job, supervisor, spec);
    job->inside.spec = NULL;
    for (int i = 0; i < PREPARE_STEPS; i++)
        if (!prepare_steps[i].run(job, &fault)) {
            discard(job);
            return NULL;
        }
    for (int i = 0; i < 3; i++)
        descriptor_close(&job->inside.stdio[i]);
    descriptor_close(&job->inside.report);
    return job;
}

void job_unprepare(struct supervisor *supervisor)
{
    if (supervisor->prepared)
        discard(supervisor->prepared);
    supervisor->prepared = NULL;
}

/* A job that is being set up or has ended is not held up by this; one that runs does not mind. Whoever pauses between jobs has it made
 * in the pause, so that short jobs are alone; who does not, has it made while a job runs. */
uint64_t job_prepare_due_us(const struct supervisor *supervisor)
{
    if (!supervisor->prepares)
        return LOOP_FOREVER;
    if (supervisor->prepared)
        return supervisor->prepared_us + OLD_US;
    uint64_t due_us = supervisor->prepare_failed ? supervisor->prepared_us + RETRY_US : supervisor->prepared_us;
    for (const struct job *job = supervisor->jobs; job; job = job->next) {
        if (job->state != JOB_RUNNING && job->state != JOB_DONE)
            return LOOP_FOREVER;
        uint64_t quiet_us = job->started_us + (supervisor->hurried ? 0 : QUIET_US);
        due_us = quiet_us > due_us ? quiet_us : due_us;
    }
    return due_us;
}

void job_prepare(struct supervisor *supervisor)
{
    job_unprepare(supervisor);
    supervisor->prepared_us = clock_now_us();
    supervisor->prepared = make(supervisor);
    supervisor->prepare_failed = !supervisor->prepared;
}

/* The child that waits has ended: something on the host killed it, or one of its steps failed. The job's own child will say why. */
static bool is_dead(const struct job *prepared)
{
    struct pollfd state = {.fd = prepared->process.fd, .events = POLLIN};
    return poll(&state, 1, 0) != 0;
}

bool job_take_prepared(struct job *job, struct fault *fault)
{
    struct supervisor *supervisor = job->supervisor;
    struct job *prepared = supervisor->prepared;
    const struct job_spec *spec = job->spec;
    (void)fault;
    if (!prepared || spec->network_host || spec->devices.count || spec->uid ||
        spec->binds.count + spec->inputs.count + 1 > REPORT_SOURCES_MAX)
        return true;
    if (is_dead(prepared) || clock_now_us() >= supervisor->prepared_us + OLD_US) {
        job_unprepare(supervisor);
        return true;
    }
    struct job_spec *shared = arena_allocate(&prepared->spec->arena, sizeof *shared);
    if (!shared || !options_init_in(shared, prepared->spec->arena, fault) ||
        !options_parse(shared, spec->word_count, spec->words, fault) || !arena_is_shared(&shared->arena)) {
        if (shared)
            prepared->spec->arena = shared->arena;
        job_unprepare(supervisor);
        *fault = (struct fault){.step = ""};
        return true;
    }
    supervisor->prepared = NULL;
    job->was_prepared = true;
    job->shared_spec = shared;
    job->shared = prepared->spec->arena;
    job->cgroup = prepared->cgroup;
    job->extent = prepared->extent;
    job->inside.uid = prepared->inside.uid;
    job->inside.gid = prepared->inside.gid;
    job->init = prepared->init;
    job->pipe_in = prepared->pipe_in;
    for (int i = 0; i < 2; i++)
        job->pipe_out[i] = prepared->pipe_out[i];
    watch_init(&job->process, prepared->process.fd, job_process_ready, job);
    watch_init(&job->report, prepared->report.fd, job_report_ready, job);
    free(prepared->spec);
    free(prepared);
    /* Watched at once: whichever step fails next, its end must be seen. */
    return loop_watch(&supervisor->loop, &job->process, EPOLLIN) ||
           fault_set(fault, errno, "raise fs.epoll.max_user_watches", "cannot watch the job's child");
}

/* Opens what the job shows and copies of the host, in the order in which the child takes it. */
static bool open_sources(const struct job_spec *spec, int *sources, unsigned *count, struct fault *fault)
{
    for (size_t i = 0; i < spec->binds.count; i++) {
        sources[*count] = inside_open_tree(spec->binds.items[i].name, fault);
        if (sources[*count] < 0) {
            fault_name_step(fault, "ro-binds");
            return false;
        }
        ++*count;
    }
    for (size_t i = 0; i < spec->inputs.count; i++) {
        sources[*count] = inside_open_regular(AT_FDCWD, spec->inputs.items[i].value, fault);
        if (sources[*count] < 0) {
            fault_name_step(fault, "inputs");
            return false;
        }
        ++*count;
    }
    return true;
}

/* A child that was made for the job has its plugin already. */
bool job_order(struct job *job, struct fault *fault)
{
    int sources[REPORT_SOURCES_MAX];
    if (!job->was_prepared) {
        descriptor_close(&job->inside.plugin);
        return true;
    }
    unsigned first = job->inside.plugin >= 0, count = first;
    sources[0] = job->inside.plugin;
    bool opened = open_sources(job->spec, sources, &count, fault);
    job->child_at_us = clock_now_us();
    bool sent = opened && report_send_order(job->report.fd, job->shared_spec, sources, count);
    if (opened && !sent)
        fault_set(fault, errno, "submit the job again", "the prepared child does not answer");
    while (count > first)
        descriptor_close(&sources[--count]);
    descriptor_close(&job->inside.plugin);
    return sent;
}

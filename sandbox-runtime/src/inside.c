/*
 * Theory of operation. The supervisor clones a child straight into a new PID namespace and into the job's cgroup2 group. The
 * child runs the steps below, still as root (of its own user namespace, where the launcher is not root) and in a copy of the
 * supervisor's memory; nothing of the plugin runs yet. Meanwhile the supervisor makes the other groups, sets limits and loads
 * BPF programs; the step "cgroup-join" waits for the groups. Then the child reports READY, hands over the filter's listener and the open /job, and waits. The
 * supervisor says go; the child forks the plugin and stays as PID 1. It never execs, so no file of the job is ever mapped
 * into it, and it is under the same filter, user id and limits as the plugin itself.
 *
 * `serve` has one child prepared: it has run the list up to the step "job" and waits there for the specification, which the
 * supervisor writes into memory that the two share. It is used for one job and no other.
 *
 * A supervisor that dies before its go leaves a closed socket and the child leaves; one that dies after it triggers the
 * death signal, which was set before READY. There is no moment in between.
 *
 * The order matters where the comment at a step says so; elsewhere it is that of growing restriction.
 */
#include "inside.h"

#include "clock.h"
#include "descriptor.h"
#include "kernel.h"
#include "report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

const struct inside_step inside_steps[] = {
    {"user-namespace", inside_user_namespace}, /* first: it gives the rights to do the rest */
    {"namespaces", inside_namespaces},
    {"origin", inside_open_origin}, /* before the working directory becomes the new root */
    {"close-descriptors", inside_close_descriptors},
    {"signals", inside_signals},
    {"private-mounts", inside_private_mounts},
    {"root", inside_root},
    {"system-binds", inside_system_binds},
    {"etc", inside_etc},
    {"protect-binds", inside_protect_binds},
    {"dev", inside_dev},
    {"proc", inside_proc},
    {"sys", inside_sys},
    {"masks", inside_masks},
    {"job-tmpfs", inside_job_tmpfs},
    {"landlock-rules", inside_landlock_rules}, /* of places that are all there now */
    {"prepared-root", inside_prepared_pivot}, /* the host's files are out of a prepared child's reach from here on */
    {"hostname", inside_hostname},
    {"keyring", inside_keyring},
    {"resource-limits", inside_resource_limits},
    {"bounding-set", inside_bounding_set}, /* needs a capability that the identity step takes away */
    {"stdio", inside_stdio},
    {"cgroup-join", inside_join_cgroups},
    {"loopback", inside_loopback}, /* of the network namespace that may have come with the groups */
    {"cgroup-namespace", inside_new_cgroup_namespace}, /* after joining: its root is the group at this moment */
    {"job", inside_await_job}, /* nothing before depends on the job; a prepared child waits here */
    {"job-directory", inside_job_directory},
    {"ro-binds", inside_ro_binds}, /* after the tmpfs, so that a destination may lie below /tmp or /job */
    {"plugin-copy", inside_plugin},
    {"inputs", inside_inputs},
    {"read-only", inside_read_only},
    {"pivot-root", inside_pivot}, /* and of everybody's from here on */
    {"identity", inside_identity},
    {"capabilities", inside_capabilities},
    {"death-signal", inside_death_signal}, /* after the last change of credentials, which would clear it */
    {"no-new-privileges", inside_no_new_privileges},
    {"landlock", inside_landlock}, /* the filter forbids it */
    {"filter", inside_filter},
};

const unsigned inside_step_count = sizeof inside_steps / sizeof inside_steps[0];

_Static_assert(sizeof inside_steps / sizeof inside_steps[0] <= REPORT_STEPS_MAX, "a report has room for every step");

/* In a copy of a supervisor that knew the job there is nothing to wait for. */
bool inside_await_job(struct inside *inside, struct fault *fault)
{
    (void)fault;
    if (inside->spec)
        return true;
    static int sources[REPORT_SOURCES_MAX];
    inside->sources = sources;
    if (!report_await_order(inside->report, &inside->spec, sources, REPORT_SOURCES_MAX))
        _exit(0); /* the supervisor is gone, or wants another one */
    if (inside->spec->plugin_path)
        inside->plugin = *inside->sources++;
    inside->ordered_us = clock_now_us();
    return true;
}

static char *title_start;
static size_t title_size;

void inside_remember_title(int count, char **words)
{
    title_start = words[0];
    title_size = count ? (size_t)(words[count - 1] + strlen(words[count - 1]) - words[0]) : 0;
}

static void hide_title(void)
{
    memset(title_start, 0, title_size);
    strncpy(title_start, "init", title_size);
    prctl(PR_SET_NAME, "init");
}

_Noreturn static void fail(struct inside *inside, const char *step, struct fault *fault)
{
    struct report report = {.kind = REPORT_FAULT};
    fault_name_step(fault, step);
    report.fault = *fault;
    report_send(inside->report, &report, NULL, 0);
    _exit(125);
}

/* What a prepared child has done before took no time of the job's. */
static void begin_job(const struct inside *inside, struct report *ready)
{
    memset(ready->step_us, 0, sizeof ready->step_us);
    ready->begun_us = inside->ordered_us;
}

/* Runs the list; each step's time goes into the report. */
static void run_steps(struct inside *inside, struct report *ready)
{
    uint64_t before_us = ready->begun_us;
    for (unsigned i = 0; i < inside_step_count; i++) {
        struct fault fault = {.step = ""};
        if (!inside_steps[i].run(inside, &fault))
            fail(inside, inside_steps[i].name, &fault);
        uint64_t now_us = clock_now_us();
        if (inside_steps[i].run == inside_await_job && inside->ordered_us) {
            begin_job(inside, ready);
            before_us = inside->ordered_us;
        }
        ready->step_us[i] = (uint32_t)(now_us - before_us);
        before_us = now_us;
    }
}

static uint64_t elapsed_us(struct timeval now, struct timeval before)
{
    return (uint64_t)((now.tv_sec - before.tv_sec) * 1000000 + now.tv_usec - before.tv_usec);
}

/* What the set-up used is not the plugin's doing. */
static void measure(const struct inside *inside, struct report *ready)
{
    struct rusage now;
    getrusage(RUSAGE_SELF, &now);
    ready->user_us = elapsed_us(now.ru_utime, inside->before_joining.ru_utime);
    ready->system_us = elapsed_us(now.ru_stime, inside->before_joining.ru_stime);
    ready->ready_us = clock_now_us();
}

_Noreturn void inside_main(struct inside *inside)
{
    struct report ready = {.kind = REPORT_READY, .begun_us = clock_now_us()};
    hide_title();
    umask(0);
    run_steps(inside, &ready);
    int descriptors[REPORT_DESCRIPTORS_MAX] = {inside->listener, inside->mounts, inside->job_dir};
    unsigned count = inside->job_dir >= 0 ? 3 : 2;
    measure(inside, &ready);
    if (!report_send(inside->report, &ready, descriptors, count))
        _exit(125);
    descriptor_close(&inside->listener);
    descriptor_close(&inside->mounts);
    descriptor_close(&inside->job_dir);
    if (!report_await_go(inside->report))
        _exit(125);
    init_main(inside);
}

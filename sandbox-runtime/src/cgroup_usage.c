#include "cgroup.h"

#include "descriptor.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* Pages are charged in batches per processor, so the count may stand this far below the limit when a charge fails. */
enum { CHARGE_SLACK_BYTES = 8 * 1024 * 1024 };

/* A file of a group. The kernel adds up what it says when it is read, so one that says several things is read once. */
struct file_text {
    char text[4096];
};

static void read_file(struct file_text *file, int dir, const char *name)
{
    if (dir < 0 || descriptor_read_text(dir, name, file->text, sizeof file->text) < 0)
        file->text[0] = 0;
}

/* The number after `key` (at the start of a line) in a file of "key number" lines; key "" is a lone number. */
static uint64_t number_in(const struct file_text *file, const char *key)
{
    const char *text = file->text;
    if (!text[0])
        return CGROUP_UNKNOWN;
    size_t length = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, length) == 0 && (!length || line[length] == ' '))
            return strtoull(line + length, NULL, 10);
    }
    return CGROUP_UNKNOWN;
}

static uint64_t read_number(int dir, const char *name, const char *key)
{
    struct file_text file;
    read_file(&file, dir, name);
    return number_in(&file, key);
}

static uint64_t scale_down(uint64_t value, uint64_t by)
{
    return value == CGROUP_UNKNOWN ? value : value / by;
}

/* The job's directory for a controller, and whether its files are version 2's. */
static int controller_dir(const struct cgroup_job *job, enum cgroup_controller controller, bool *unified)
{
    int index = job->host->controller[controller];
    *unified = index >= 0 && job->host->hierarchies[index].unified;
    return index < 0 ? -1 : job->groups[index].dir;
}

void cgroup_job_cpu_usage(const struct cgroup_job *job, struct cgroup_usage *usage)
{
    bool unified;
    int dir = cgroup_job_unified(job);
    if (dir >= 0) {
        struct file_text file;
        read_file(&file, dir, "cpu.stat");
        usage->user_us = number_in(&file, "user_usec");
        usage->system_us = number_in(&file, "system_usec");
        return;
    }
    dir = controller_dir(job, CGROUP_CPUACCT, &unified);
    usage->user_us = scale_down(read_number(dir, "cpuacct.usage_user", ""), 1000);
    usage->system_us = scale_down(read_number(dir, "cpuacct.usage_sys", ""), 1000);
}

void cgroup_job_usage(const struct cgroup_job *job, struct cgroup_usage *usage)
{
    bool unified;
    cgroup_job_cpu_usage(job, usage);
    int dir = controller_dir(job, CGROUP_CPU, &unified);
    usage->throttled_us = unified ? read_number(dir, "cpu.stat", "throttled_usec")
                                  : scale_down(read_number(dir, "cpu.stat", "throttled_time"), 1000);
    dir = controller_dir(job, CGROUP_MEMORY, &unified);
    usage->peak_memory_bytes = read_number(dir, unified ? "memory.peak" : "memory.max_usage_in_bytes", "");
    usage->oom_kills = read_number(dir, unified ? "memory.events" : "memory.oom_control", "oom_kill");
    dir = controller_dir(job, CGROUP_PIDS, &unified);
    usage->peak_processes = read_number(dir, "pids.peak", "");
    if (usage->peak_processes != CGROUP_UNKNOWN && usage->peak_processes > 0)
        usage->peak_processes--;
}

uint64_t cgroup_job_cpu_us(const struct cgroup_job *job)
{
    bool unified;
    int dir = cgroup_job_unified(job);
    if (dir >= 0)
        return read_number(dir, "cpu.stat", "usage_usec");
    return scale_down(read_number(controller_dir(job, CGROUP_CPUACCT, &unified), "cpuacct.usage", ""), 1000);
}

bool cgroup_job_at_memory_limit(const struct cgroup_job *job, uint64_t limit_bytes)
{
    bool unified;
    int dir = controller_dir(job, CGROUP_MEMORY, &unified);
    uint64_t used = read_number(dir, unified ? "memory.current" : "memory.usage_in_bytes", "");
    uint64_t kills = read_number(dir, unified ? "memory.events" : "memory.oom_control", "oom_kill");
    return used == CGROUP_UNKNOWN || used + CHARGE_SLACK_BYTES >= limit_bytes || (kills != CGROUP_UNKNOWN && kills > 0);
}

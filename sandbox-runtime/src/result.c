#include "job.h"

#include "errno_name.h"
#include "policy.h"

#include <string.h>
#include <sys/wait.h>

#define OUTCOME_NAME(constant, name) [constant] = name,
static const char *const outcome_names[] = {OUTCOME_LIST(OUTCOME_NAME)};

const char *outcome_name(enum outcome outcome)
{
    return outcome_names[outcome];
}

static void key_string(struct json_writer *json, const char *key, const char *value)
{
    json_key(json, key);
    json_string(json, value);
}

static void key_u64(struct json_writer *json, const char *key, uint64_t value)
{
    json_key(json, key);
    if (value == CGROUP_UNKNOWN)
        json_null(json);
    else
        json_u64(json, value);
}

/* Microseconds as milliseconds. */
static void key_ms(struct json_writer *json, const char *key, uint64_t us)
{
    json_key(json, key);
    if (us == CGROUP_UNKNOWN)
        json_null(json);
    else
        json_thousandths(json, us);
}

static void write_fault(const struct fault *fault, struct json_writer *json)
{
    json_key(json, "error");
    if (!fault) {
        json_null(json);
        return;
    }
    json_begin_object(json);
    key_string(json, "step", fault->step);
    key_string(json, "errno", errno_name(fault->error));
    key_string(json, "message", fault->message);
    key_string(json, "mend", fault->mend);
    json_end_object(json);
}

/* How the plugin's process ended; where the launcher ended it, by SIGKILL. Both null: it never ran. */
static void write_exit(const struct job *job, struct json_writer *json)
{
    bool ran = job->started_us && job->outcome != OUTCOME_SETUP_FAILED;
    bool exited = ran && job->plugin_ended && WIFEXITED(job->wait_status);
    bool signaled = ran && !exited;
    json_key(json, "exitCode");
    if (exited)
        json_i64(json, WEXITSTATUS(job->wait_status));
    else
        json_null(json);
    json_key(json, "signal");
    if (signaled)
        json_i64(json, job->plugin_ended ? WTERMSIG(job->wait_status) : 9);
    else
        json_null(json);
}

/* A counter's growth since the plugin started: the set-up is not its doing. */
static uint64_t since(uint64_t now, uint64_t before)
{
    if (now == CGROUP_UNKNOWN || before == CGROUP_UNKNOWN)
        return CGROUP_UNKNOWN;
    return now > before ? now - before : 0;
}

static void write_usage(const struct job *job, struct json_writer *json)
{
    json_key(json, "usage");
    json_begin_object(json);
    key_ms(json, "wallMs", job->started_us ? job->ended_us - job->started_us : 0);
    key_ms(json, "userMs", since(job->usage.user_us, job->before.user_us));
    key_ms(json, "systemMs", since(job->usage.system_us, job->before.system_us));
    key_u64(json, "peakMemoryBytes", job->usage.peak_memory_bytes);
    key_u64(json, "peakProcesses", job->usage.peak_processes);
    key_ms(json, "throttledMs", job->usage.throttled_us);
    json_end_object(json);
}

static void write_output(const struct output *output, const char *key, struct json_writer *json)
{
    struct sha256 hash = output->hash;
    char hex[SHA256_HEX_SIZE];
    if (!output->loop)
        sha256_init(&hash);
    sha256_final_hex(&hash, hex);
    json_key(json, key);
    json_begin_object(json);
    key_u64(json, "bytes", output->bytes);
    key_u64(json, "kept", output->kept_bytes);
    key_string(json, "sha256", hex);
    json_key(json, "truncated");
    json_bool(json, output->truncated);
    json_end_object(json);
}

static void write_refused(const struct job *job, struct json_writer *json)
{
    if (job->notify) {
        notify_write_json(job->notify, json);
        return;
    }
    for (int i = 0; i < 2; i++) {
        json_key(json, i ? "probes" : "denials");
        json_begin_array(json);
        json_end_array(json);
    }
}

void result_write_namespaces(bool user, bool network_host, struct json_writer *json)
{
    static const char *const namespaces[] = {"user", "mount", "pid", "ipc", "uts", "cgroup", "network"};
    size_t count = sizeof namespaces / sizeof namespaces[0] - (network_host ? 1 : 0);
    json_begin_array(json);
    for (size_t i = user ? 0 : 1; i < count; i++)
        json_string(json, namespaces[i]);
    json_end_array(json);
}

static void write_sandbox(const struct job *job, struct json_writer *json)
{
    json_key(json, "sandbox");
    json_begin_object(json);
    json_key(json, "namespaces");
    result_write_namespaces(job->inside.rootless->active, job->spec->network_host, json);
    key_string(json, "cgroup", cgroup_host_version(&job->supervisor->cgroups));
    key_u64(json, "landlockAbi", (uint64_t)inside_landlock_abi());
    key_u64(json, "uid", job->inside.uid);
    key_string(json, "network", job->spec->network_host ? "host" : "none");
    json_end_object(json);
}

static void write_outputs(const struct job *job, struct json_writer *json)
{
    static const char nothing[] = "\"files\":[],\"skipped\":[]";
    bool collected = job->collected.length && !job->collected.overflow;
    json_key(json, "outputs");
    json_begin_object(json);
    json_raw(json, collected ? job->collected.bytes : nothing, collected ? job->collected.length : sizeof nothing - 1);
    json_end_object(json);
}

/* In the order in which they happen. All before "hand-over" (included) is set-up and adds up to its whole time; what begins
 * with "end-" comes after the plugin. */
static void write_timings(const struct job *job, struct json_writer *json)
{
    uint64_t sum_us = 0;
    json_key(json, "timings");
    json_begin_object(json);
    for (unsigned i = 0; i < setup_step_count; i++) {
        key_u64(json, setup_steps[i].name, job->setup_us[i]);
        sum_us += job->setup_us[i];
    }
    for (unsigned i = 0; i < inside_step_count; i++) {
        key_u64(json, inside_steps[i].name, job->inside_us[i]);
        sum_us += job->inside_us[i];
    }
    uint64_t setup_us = job->started_us ? job->started_us - job->created_us : 0;
    key_u64(json, "hand-over", setup_us > sum_us ? setup_us - sum_us : 0);
    key_u64(json, "end-kill", job->reaped_us - job->ended_us);
    key_u64(json, "end-clear", job->cleared_us - job->reaped_us);
    key_u64(json, "end-outputs", job->done_us - job->cleared_us);
    json_end_object(json);
}

void result_write(const struct job *job, struct json_writer *json)
{
    json_begin_object(json);
    key_u64(json, "version", 1);
    key_string(json, "outcome", outcome_name(job->outcome));
    write_exit(job, json);
    write_fault(job->outcome == OUTCOME_SETUP_FAILED ? &job->fault : NULL, json);
    write_usage(job, json);
    json_key(json, "stdin");
    json_begin_object(json);
    key_u64(json, "bytes", job->input.bytes);
    json_end_object(json);
    write_output(&job->outputs[0], "stdout", json);
    write_output(&job->outputs[1], "stderr", json);
    key_u64(json, "oomKills", job->usage.oom_kills);
    write_refused(job, json);
    json_raw(json, job->accounts.bytes, job->accounts.length);
    write_sandbox(job, json);
    write_outputs(job, json);
    key_string(json, "filterDigest", policy_digest_hex);
    write_timings(job, json);
    json_end_object(json);
}

void result_write_fault(const struct fault *fault, struct json_writer *json)
{
    json_begin_object(json);
    key_u64(json, "version", 1);
    key_string(json, "outcome", outcome_name(OUTCOME_SETUP_FAILED));
    json_key(json, "exitCode");
    json_null(json);
    json_key(json, "signal");
    json_null(json);
    write_fault(fault, json);
    key_string(json, "filterDigest", policy_digest_hex);
    json_end_object(json);
}

int result_exit_code(const struct job *job)
{
    switch (job->outcome) {
    case OUTCOME_EXITED:
        return WEXITSTATUS(job->wait_status);
    case OUTCOME_SIGNALED:
        return 128 + WTERMSIG(job->wait_status);
    case OUTCOME_SETUP_FAILED:
        return 125;
    default:
        return 128 + 9;
    }
}

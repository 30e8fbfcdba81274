/*
 * `launcher check-host`: says, control by control, whether this host can enforce it, and how to mend what is missing. Each
 * check does the real thing on a small scale; the last one runs the launcher itself as a job. Nothing is left behind.
 */
#include "commands.h"
#include "descriptor.h"
#include "host_controls.h"
#include "policy.h"

#include <stdio.h>
#include <string.h>

static void write_row(struct json_writer *json, const struct host_control *control, const struct host_finding *finding)
{
    json_begin_object(json);
    json_key(json, "name");
    json_string(json, control->name);
    json_key(json, "ok");
    json_bool(json, finding->ok);
    json_key(json, "required");
    json_bool(json, control->required);
    json_key(json, "detail");
    json_string(json, finding->ok ? finding->detail : finding->fault.message);
    json_key(json, "mend");
    json_string(json, finding->ok ? NULL : finding->fault.mend);
    json_end_object(json);
}

static void print_json(const struct host *host, const struct host_finding *findings, bool ok)
{
    struct json_writer json;
    json_init(&json, 1 << 20);
    json_begin_object(&json);
    json_key(&json, "version");
    json_u64(&json, 1);
    json_key(&json, "ok");
    json_bool(&json, ok);
    json_key(&json, "filterDigest");
    json_string(&json, policy_digest_hex);
    json_key(&json, "cgroup");
    json_string(&json, host->supervisor.cgroups.count ? cgroup_host_version(&host->supervisor.cgroups) : NULL);
    json_key(&json, "namespaces");
    result_write_namespaces(host->supervisor.rootless.active, false, &json);
    json_key(&json, "landlockAbi");
    json_u64(&json, (uint64_t)inside_landlock_abi());
    json_key(&json, "controls");
    json_begin_array(&json);
    for (size_t i = 0; i < host_control_count; i++)
        write_row(&json, &host_controls[i], &findings[i]);
    json_end_array(&json);
    json_end_object(&json);
    json_raw_piece(&json, "\n", 1);
    descriptor_write_all(1, json.bytes, json.length);
    json_free(&json);
}

static void print_table(const struct host_finding *findings, bool ok)
{
    for (size_t i = 0; i < host_control_count; i++) {
        const struct host_finding *finding = &findings[i];
        const char *mark = finding->ok ? "ok" : host_controls[i].required ? "MISSING" : "absent";
        printf("%-8s %-18s %s\n", mark, host_controls[i].name, finding->ok ? finding->detail : finding->fault.message);
        if (!finding->ok)
            printf("%-8s %-18s mend: %s\n", "", "", finding->fault.mend);
    }
    printf("\n%s\n", ok ? "This host can enforce every control that jobs need."
                        : "No job runs here until what is MISSING is mended.");
}

int command_check_host(int count, char **words)
{
    bool as_json = count == 1 && strcmp(words[0], "--json") == 0;
    if (count && !as_json) {
        fprintf(count == 1 && strcmp(words[0], "--help") == 0 ? stdout : stderr, "usage: launcher check-host "
                                                                                 "[--json]\nSays what this host can "
                                                                                 "enforce and how to mend what is "
                                                                                 "missing. Exits with 0 or 1.\n");
        return count == 1 && strcmp(words[0], "--help") == 0 ? 0 : EXIT_SETUP_FAILED;
    }
    static struct host host;
    static struct host_finding findings[HOST_CONTROLS_MAX];
    bool ok = true;
    host_open(&host);
    for (size_t i = 0; i < host_control_count; i++) {
        findings[i].ok = host_controls[i].check(&host, &findings[i]);
        ok = ok && (findings[i].ok || !host_controls[i].required);
    }
    if (as_json)
        print_json(&host, findings, ok);
    else
        print_table(findings, ok);
    host_close(&host);
    return ok ? 0 : 1;
}

int command_syscalls(int count, char **words)
{
    bool as_json = count == 1 && strcmp(words[0], "--json") == 0;
    if (count && !as_json) {
        fprintf(stderr, "usage: launcher syscalls [--json]\n");
        return EXIT_SETUP_FAILED;
    }
    if (!as_json) {
        for (size_t i = 0; i < policy_allowed_count(); i++)
            puts(policy_allowed_name(i));
        return printf("# digest %s\n", policy_digest_hex) < 0;
    }
    struct json_writer json;
    json_init(&json, 1 << 16);
    json_begin_object(&json);
    json_key(&json, "digest");
    json_string(&json, policy_digest_hex);
    json_key(&json, "names");
    json_begin_array(&json);
    for (size_t i = 0; i < policy_allowed_count(); i++)
        json_string(&json, policy_allowed_name(i));
    json_end_array(&json);
    json_end_object(&json);
    json_raw_piece(&json, "\n", 1);
    bool written = descriptor_write_all(1, json.bytes, json.length);
    json_free(&json);
    return written ? 0 : 1;
}

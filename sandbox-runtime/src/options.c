#include "options.h"

#include "option_values.h"

#include <stddef.h>
#include <string.h>

/* How a value is read: it goes to the field at `target`, or a fault says what is wrong with it. */
typedef bool option_reader(struct job_spec *spec, void *target, const char *value, struct fault *fault);

struct option_row {
    const char *name;
    const char *argument; /* as --help shows it */
    const char *initial;  /* default, read like a given value; NULL: none */
    option_reader *read;
    size_t field;
    const char *help;
};

#define FIELD(name) offsetof(struct job_spec, name)

static const struct option_row option_rows[] = {
    {"memory", "SIZE", "256M", option_read_size, FIELD(memory_bytes), "memory of the whole job, without swap"},
    {"cpus", "N", "1", option_read_thousandths, FIELD(cpu_thousandths),
     "processor time per second of time; 0.5 is half a core"},
    {"pids", "N", "128", option_read_count, FIELD(processes), "processes and threads at one time"},
    {"wall", "SECONDS", "10", option_read_seconds, FIELD(wall_us), "time from start to end; there is always a limit"},
    {"cpu-time", "SECONDS", NULL, option_read_seconds, FIELD(cpu_time_us), "processor time of all processes together"},
    {"output-limit", "SIZE", "1M", option_read_size, FIELD(output_limit_bytes),
     "bytes kept of standard output, and as many of standard error; more ends the job"},
    {"tmp-size", "SIZE", "64M", option_read_size, FIELD(tmp_size_bytes),
     "space of /tmp, /job and /dev/shm together; it counts as memory"},
    {"plugin", "FILE", NULL, option_read_text, FIELD(plugin_path), "file to copy to /plugin/NAME, read-only"},
    {"plugin-name", "NAME", NULL, option_read_file_name, FIELD(plugin_name), "its name there; without it, FILE's own"},
    {"plugin-sha256", "HEX", NULL, option_read_sha256, FIELD(plugin_sha256), "digest that the copy must have"},
    {"input", "NAME=FILE", NULL, option_read_input, FIELD(inputs), "copy FILE to /job/NAME (repeatable)"},
    {"collect", "DIR", NULL, option_read_text, FIELD(collect_dir),
     "copy the regular files of /job/out to DIR when the job has ended"},
    {"ro-bind", "SRC[:DST]", NULL, option_read_bind, FIELD(binds),
     "show a file or directory of the host, read-only (repeatable)"},
    {"device", "PATH[:rwm]", NULL, option_read_device, FIELD(devices),
     "give a device node; rw unless said (repeatable)"},
    {"env", "K=V", NULL, option_read_environment, FIELD(environment),
     "set a variable; nothing else of the environment is passed on (repeatable)"},
    {"workdir", "DIR", "/job", option_read_absolute, FIELD(working_dir), "directory to start in"},
    {"network", "none|host", "none", option_read_network, FIELD(network_host),
     "a network of its own with only loopback, or the host's"},
    {"on-violation", "errno|kill", "errno", option_read_violation, FIELD(end_at_denial),
     "what a denied system call does: fail, or end the job"},
    {"result", "FILE|fd:N", NULL, option_read_text, FIELD(result),
     "where the result goes; without it, the last line of standard error"},
    {"uid", "N", NULL, option_read_uid, FIELD(uid), "user id of the job; without it, one that no other job has"},
};

enum { OPTION_COUNT = sizeof option_rows / sizeof option_rows[0] };

static bool read_value(struct job_spec *spec, const struct option_row *row, const char *value, struct fault *fault)
{
    struct fault why = {.step = ""};
    if (row->read(spec, (char *)spec + row->field, value, &why))
        return true;
    return fault_set(fault, why.error, why.mend, "--%s %s: %s", row->name, value, why.message);
}

bool options_init(struct job_spec *spec, struct fault *fault)
{
    *spec = (struct job_spec){.arena = {NULL}};
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (option_rows[i].initial && !read_value(spec, &option_rows[i], option_rows[i].initial, fault))
            return false;
    return true;
}

/* Finds the row for `--name` or `--name=value`. */
static const struct option_row *find_row(const char *word, size_t name_length)
{
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (strlen(option_rows[i].name) == name_length && memcmp(option_rows[i].name, word, name_length) == 0)
            return &option_rows[i];
    return NULL;
}

/* Reads the option at words[at]; returns how many words it took. */
static int parse_one(struct job_spec *spec, int count, char *const *words, int at, struct fault *fault)
{
    const char *name = words[at] + 2;
    const char *equals = strchr(name, '=');
    const struct option_row *row = find_row(name, equals ? (size_t)(equals - name) : strlen(name));
    if (!row) {
        fault_set(fault, 0, "see: launcher run --help", "there is no option %s", words[at]);
        return 1;
    }
    if (!equals && at + 1 >= count) {
        fault_set(fault, 0, "see: launcher run --help", "--%s needs a value: %s", row->name, row->argument);
        return 1;
    }
    read_value(spec, row, equals ? equals + 1 : words[at + 1], fault);
    return equals ? 1 : 2;
}

static bool take_program(struct job_spec *spec, int count, char *const *words, struct fault *fault)
{
    spec->program = arena_allocate(&spec->arena, ((size_t)count + 1) * sizeof *spec->program);
    for (int i = 0; spec->program && i < count; i++) {
        spec->program[i] = arena_copy(&spec->arena, words[i], strlen(words[i]));
        if (!spec->program[i])
            return fault_set(fault, 0, "free some memory", "out of memory");
    }
    spec->program_count = (size_t)count;
    return spec->program || fault_set(fault, 0, "free some memory", "out of memory");
}

/* What no single option can know. */
static bool check_together(struct job_spec *spec, struct fault *fault)
{
    if (!spec->plugin_path && (spec->plugin_name || spec->plugin_sha256))
        return fault_set(fault, 0, "give --plugin FILE",
                         "--plugin-name and --plugin-sha256 are about a --plugin, and there is none");
    if (spec->plugin_path && !spec->plugin_name) {
        const char *slash = strrchr(spec->plugin_path, '/');
        return option_read_file_name(spec, &spec->plugin_name, slash ? slash + 1 : spec->plugin_path, fault);
    }
    return true;
}

bool options_parse(struct job_spec *spec, int count, char *const *words, struct fault *fault)
{
    struct fault first = {.step = ""};
    int at = 0;
    while (at < count && strcmp(words[at], "--") != 0) {
        struct fault here = {.step = ""};
        if (strncmp(words[at], "--", 2) != 0) {
            fault_set(&here, 0, "put -- before PROGRAM", "%s is not an option", words[at]);
            at = count;
        } else {
            at += parse_one(spec, count, words, at, &here);
        }
        if (here.message[0] && !first.message[0])
            first = here;
    }
    if (!first.message[0] && at + 1 >= count)
        fault_set(&first, 0, "launcher run [options] -- PROGRAM ARGS", "no PROGRAM is given after --");
    if (!first.message[0] && check_together(spec, &first) && take_program(spec, count - at - 1, words + at + 1, &first))
        return true;
    *fault = first;
    return false;
}

void options_print_help(FILE *to)
{
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option_row *row = &option_rows[i];
        char left[48];
        snprintf(left, sizeof left, "--%s %s", row->name, row->argument);
        fprintf(to, "  %-26s %s%s%s%s\n", left, row->help, row->initial ? " [" : "", row->initial ? row->initial : "",
                row->initial ? "]" : "");
    }
}

void job_spec_free(struct job_spec *spec)
{
    arena_free(&spec->arena);
}

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

struct option_table {
    const struct option_row *rows;
    size_t count;
    const char *command;
};

#define FIELD(name) offsetof(struct job_spec, name)

static const struct option_row job_rows[] = {
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
    {"stdin", "FILE", NULL, option_read_text, FIELD(stdin_path),
     "standard input of the job; without it, the launcher's own (serve: frames)"},
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
     "where the result goes; without it, the last line of standard error (serve: always a frame)"},
    {"uid", "N", NULL, option_read_uid, FIELD(uid), "user id of the job; without it, one that no other job has"},
};

static const struct option_row serve_rows[] = {
    {"fd", "N,M", "0,1", option_read_descriptors, offsetof(struct serve_settings, control),
     "open descriptors: frames come from N and go to M, which may be the same"},
    {"jobs", "N", "64", option_read_jobs, offsetof(struct serve_settings, most_jobs), "jobs at one time, at most 1024"},
};

static const struct option_table job_table = {job_rows, sizeof job_rows / sizeof job_rows[0], "run"};
static const struct option_table serve_table = {serve_rows, sizeof serve_rows / sizeof serve_rows[0], "serve"};

/* `record` is what the table's fields belong to. `spec` owns copies of texts; the readers that serve_rows uses make none. */
static bool read_value(struct job_spec *spec, void *record, const struct option_row *row, const char *value,
                       struct fault *fault)
{
    struct fault why = {.step = ""};
    if (row->read(spec, (char *)record + row->field, value, &why))
        return true;
    return fault_set(fault, why.error, why.mend, "--%s %.200s: %s", row->name, value, why.message);
}

static bool set_initial(struct job_spec *spec, void *record, const struct option_table *table, struct fault *fault)
{
    for (size_t i = 0; i < table->count; i++)
        if (table->rows[i].initial && !read_value(spec, record, &table->rows[i], table->rows[i].initial, fault))
            return false;
    return true;
}

bool options_init_in(struct job_spec *spec, struct arena arena, struct fault *fault)
{
    *spec = (struct job_spec){.arena = arena};
    return set_initial(spec, spec, &job_table, fault);
}

bool options_init(struct job_spec *spec, struct fault *fault)
{
    return options_init_in(spec, (struct arena){NULL}, fault);
}

/* Finds the row for `--name` or `--name=value`. */
static const struct option_row *find_row(const struct option_table *table, const char *word, size_t name_length)
{
    for (size_t i = 0; i < table->count; i++)
        if (strlen(table->rows[i].name) == name_length && memcmp(table->rows[i].name, word, name_length) == 0)
            return &table->rows[i];
    return NULL;
}

/* Reads the option at words[at]; returns how many words it took. */
static int parse_one(struct job_spec *spec, void *record, const struct option_table *table, int count,
                     char *const *words, int at, struct fault *fault)
{
    const char *name = words[at] + 2;
    const char *equals = strchr(name, '=');
    const struct option_row *row = find_row(table, name, equals ? (size_t)(equals - name) : strlen(name));
    char mend[48];
    snprintf(mend, sizeof mend, "see: launcher %s --help", table->command);
    if (!row) {
        fault_set(fault, 0, mend, "there is no option %.200s", words[at]);
        return 1;
    }
    if (!equals && at + 1 >= count) {
        fault_set(fault, 0, mend, "--%s needs a value: %s", row->name, row->argument);
        return 1;
    }
    read_value(spec, record, row, equals ? equals + 1 : words[at + 1], fault);
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
    spec->word_count = count;
    spec->words = words;
    while (at < count && strcmp(words[at], "--") != 0) {
        struct fault here = {.step = ""};
        if (strncmp(words[at], "--", 2) != 0) {
            fault_set(&here, 0, "put -- before PROGRAM", "%.200s is not an option", words[at]);
            at = count;
        } else {
            at += parse_one(spec, spec, &job_table, count, words, at, &here);
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

bool serve_settings_parse(struct serve_settings *settings, int count, char *const *words, struct fault *fault)
{
    if (!set_initial(NULL, settings, &serve_table, fault))
        return false;
    for (int at = 0; at < count;) {
        struct fault here = {.step = ""};
        if (strncmp(words[at], "--", 2) != 0)
            return fault_set(fault, 0, "see: launcher serve --help", "%.200s is not an option", words[at]);
        at += parse_one(NULL, settings, &serve_table, count, words, at, &here);
        if (here.message[0]) {
            *fault = here;
            return false;
        }
    }
    return true;
}

static void print_table(const struct option_table *table, FILE *to)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct option_row *row = &table->rows[i];
        char left[48];
        snprintf(left, sizeof left, "--%s %s", row->name, row->argument);
        fprintf(to, "  %-26s %s%s%s%s\n", left, row->help, row->initial ? " [" : "", row->initial ? row->initial : "",
                row->initial ? "]" : "");
    }
}

void options_print_help(FILE *to)
{
    print_table(&job_table, to);
}

void serve_settings_print_help(FILE *to)
{
    print_table(&serve_table, to);
}

void job_spec_free(struct job_spec *spec)
{
    arena_free(&spec->arena);
}

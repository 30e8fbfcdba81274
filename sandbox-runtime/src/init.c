/*
 * PID 1 of a job. It starts the plugin, reaps whatever the job leaves behind, and reports how the plugin ended. It is under
 * the filter already, so it makes only calls that a plugin may make.
 */
#include "inside.h"

#include "descriptor.h"
#include "kernel.h"
#include "report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct spec_pair default_environment[] = {
    {"PATH", "/usr/local/bin:/usr/bin:/bin"}, {"HOME", "/job"}, {"LANG", "C.UTF-8"}};

enum { DEFAULT_COUNT = sizeof default_environment / sizeof default_environment[0] };

static char *join(const struct spec_pair *pair)
{
    size_t size = strlen(pair->name) + strlen(pair->value) + 2;
    char *text = malloc(size);
    if (text)
        snprintf(text, size, "%s=%s", pair->name, pair->value);
    return text;
}

static const struct spec_pair *find_variable(const struct spec_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].name, name) == 0)
            return &list->items[i];
    return NULL;
}

/* The job's variables, then the defaults that it did not set itself. */
static char **build_environment(const struct spec_list *given)
{
    char **environment = calloc(given->count + DEFAULT_COUNT + 1, sizeof *environment);
    size_t count = 0;
    for (size_t i = 0; environment && i < given->count; i++)
        environment[count++] = join(&given->items[i]);
    for (size_t i = 0; environment && i < DEFAULT_COUNT; i++)
        if (!find_variable(given, default_environment[i].name))
            environment[count++] = join(&default_environment[i]);
    return environment;
}

/* Tries a program without a slash in each directory of the job's PATH. Returns only on failure, with errno. */
static void exec_program(char *const *program, char **environment, const char *path)
{
    if (strchr(program[0], '/')) {
        execve(program[0], program, environment);
        return;
    }
    int error = ENOENT;
    for (const char *part = path; *part;) {
        char candidate[4096];
        size_t length = strcspn(part, ":");
        snprintf(candidate, sizeof candidate, "%.*s/%s", (int)length, part, program[0]);
        execve(candidate, program, environment);
        if (errno != ENOENT && errno != ENOTDIR)
            error = errno;
        part += length + (part[length] == ':');
    }
    errno = error;
}

_Noreturn static void start_failed(struct inside *inside, const char *step, int error, const char *what,
                                   const char *mend)
{
    struct report report = {.kind = REPORT_FAULT};
    fault_set(&report.fault, error, mend, "%s", what);
    fault_name_step(&report.fault, step);
    report_send(inside->report, &report, NULL, 0);
    _exit(125);
}

_Noreturn static void plugin_main(struct inside *inside)
{
    const struct job_spec *spec = inside->spec;
    char what[320];
    setsid();
    for (int i = 0; i < 3; i++) /* the supervisor keeps its own 0, 1 and 2 open, so none of these stands there */
        if (dup2(inside->stdio[i], i) < 0)
            start_failed(inside, "stdio", errno, "cannot place the standard streams", "see: launcher check-host");
    if (chdir(spec->working_dir) < 0) {
        snprintf(what, sizeof what, "cannot start in %.200s", spec->working_dir);
        start_failed(inside, "workdir", errno, what, "choose a directory that exists in the sandbox, such as /job");
    }
    char **environment = build_environment(&spec->environment);
    const struct spec_pair *path = find_variable(&spec->environment, "PATH");
    if (environment)
        exec_program(spec->program, environment, path ? path->value : default_environment[0].value);
    snprintf(what, sizeof what, "cannot execute %.200s", spec->program[0]);
    start_failed(inside, "exec", errno, what,
                 "check that the program, and the interpreter that it names, exist in the sandbox and are executable");
}

/* Reaps until nobody is left. The plugin's end is reported at once; whoever it left running is the supervisor's to end. */
_Noreturn void init_main(struct inside *inside)
{
    pid_t plugin = vfork(); /* init waits until the plugin's program is there, and nothing of its memory is copied */
    if (plugin == 0)
        plugin_main(inside);
    if (plugin < 0)
        start_failed(inside, "start", errno, "cannot start the plugin's process", "raise --pids or --memory");
    kernel_close_range(0, (unsigned)inside->report - 1, 0);
    kernel_close_range((unsigned)inside->report + 1, ~0U, 0);
    for (;;) {
        int status;
        pid_t gone = waitpid(-1, &status, 0);
        if (gone < 0 && errno == ECHILD)
            _exit(0);
        struct report report = {.kind = REPORT_EXITED, .status = status};
        if (gone == plugin && !report_send(inside->report, &report, NULL, 0))
            _exit(125);
    }
}

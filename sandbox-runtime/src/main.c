#include "commands.h"
#include "inside.h"

#include <stdio.h>
#include <string.h>

#ifndef LAUNCHER_VERSION
#define LAUNCHER_VERSION "0.1.0"
#endif

static const struct {
    const char *name;
    int (*command)(int count, char **words);
    const char *help;
} commands[] = {
    {"run", command_run, "run one program in the sandbox"},
    {"serve", command_serve, "run many programs, told by frames over one pair of descriptors"},
    {"check-host", command_check_host, "what this host can enforce, and how to mend it"},
    {"syscalls", command_syscalls, "the system calls that a job may make"},
};

enum { COMMAND_COUNT = sizeof commands / sizeof commands[0] };

static int usage(FILE *to, int code)
{
    fprintf(to, "usage: launcher COMMAND ...\n\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        fprintf(to, "  %-12s %s\n", commands[i].name, commands[i].help);
    fprintf(to, "\nlauncher COMMAND --help tells more.\n");
    return code;
}

int main(int count, char **words)
{
    if (count < 2)
        return usage(stderr, EXIT_SETUP_FAILED);
    if (strcmp(words[1], "--version") == 0)
        return printf("launcher %s\n", LAUNCHER_VERSION) < 0;
    if (strcmp(words[1], "--help") == 0)
        return usage(stdout, 0);
    inside_remember_title(count, words);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(words[1], commands[i].name) == 0)
            return commands[i].command(count - 2, words + 2);
    fprintf(stderr, "launcher: there is no command %s\n", words[1]);
    return usage(stderr, EXIT_SETUP_FAILED);
}

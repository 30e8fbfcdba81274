/*
 * The options of a job. One table (options.c) names each option, what it takes, its default and what it means; the command
 * line of `run`, the START frames of `serve`, --help and the manual all read that table. The few options of `serve` itself
 * stand in a table of the same kind.
 */
#ifndef SANDBUS_OPTIONS_H
#define SANDBUS_OPTIONS_H

#include "fault.h"
#include "spec.h"

#include <stdio.h>

/* Sets every default. */
bool options_init(struct job_spec *spec, struct fault *fault);
/* The same, with memory from this arena, which is then the spec's. */
bool options_init_in(struct job_spec *spec, struct arena arena, struct fault *fault);
/* Parses `[options] -- PROGRAM ARGS`. After a mistake it reads on, so that --result is known, and reports the first. */
bool options_parse(struct job_spec *spec, int count, char *const *words, struct fault *fault);
/* One line for each option. */
void options_print_help(FILE *to);

/* What `launcher serve` itself is told. */
struct serve_settings {
    int control[2]; /* descriptors: frames come from the first and go to the second */
    uint64_t most_jobs;
};

bool serve_settings_parse(struct serve_settings *settings, int count, char *const *words, struct fault *fault);
void serve_settings_print_help(FILE *to);

#endif

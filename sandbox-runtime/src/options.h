/*
 * The options of a job. One table (options.c) names each option, what it takes, its default and what it means; parsing,
 * --help and the manual all read that table.
 */
#ifndef SANDBUS_OPTIONS_H
#define SANDBUS_OPTIONS_H

#include "fault.h"
#include "spec.h"

#include <stdio.h>

/* Sets every default. */
bool options_init(struct job_spec *spec, struct fault *fault);
/* Parses `[options] -- PROGRAM ARGS`. After a mistake it reads on, so that --result is known, and reports the first. */
bool options_parse(struct job_spec *spec, int count, char *const *words, struct fault *fault);
/* One line for each option. */
void options_print_help(FILE *to);

#endif

/* Readers for the values of options: text in, typed field out. Each says in words what it would have taken. */
#ifndef SANDBUS_OPTION_VALUES_H
#define SANDBUS_OPTION_VALUES_H

#include "fault.h"
#include "spec.h"

bool option_read_size(struct job_spec *spec, void *target, const char *value, struct fault *fault);
bool option_read_count(struct job_spec *spec, void *target, const char *value, struct fault *fault);
bool option_read_seconds(struct job_spec *spec, void *target, const char *value, struct fault *fault);
bool option_read_thousandths(struct job_spec *spec, void *target, const char *value, struct fault *fault);
bool option_read_uid(struct job_spec *spec, void *target, const char *value, struct fault *fault);
bool option_read_text(struct job_spec *spec, void *target, const char *value, struct fault *fault);
bool option_read_absolute(struct job_spec *spec, void *target, const char *value, struct fault *fault);
bool option_read_file_name(struct job_spec *spec, void *target, const char *value, struct fault *fault);
bool option_read_sha256(struct job_spec *spec, void *target, const char *value, struct fault *fault);
bool option_read_input(struct job_spec *spec, void *target, const char *value, struct fault *fault);
bool option_read_bind(struct job_spec *spec, void *target, const char *value, struct fault *fault);
bool option_read_device(struct job_spec *spec, void *target, const char *value, struct fault *fault);
bool option_read_environment(struct job_spec *spec, void *target, const char *value, struct fault *fault);
bool option_read_network(struct job_spec *spec, void *target, const char *value, struct fault *fault);
bool option_read_violation(struct job_spec *spec, void *target, const char *value, struct fault *fault);
bool option_read_descriptors(struct job_spec *spec, void *target, const char *value, struct fault *fault);
bool option_read_jobs(struct job_spec *spec, void *target, const char *value, struct fault *fault);

#endif

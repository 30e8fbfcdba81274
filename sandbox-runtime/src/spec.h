/* What one job is to be: the parsed options of `launcher run`, or of one job of `launcher serve`. Filled by options.c, read
 * by everybody, changed by nobody. */
#ifndef SANDBUS_SPEC_H
#define SANDBUS_SPEC_H

#include "arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One repeatable option: NAME=FILE, K=V, SRC[:DST], PATH[:rwm]. */
struct spec_pair {
    const char *name;
    const char *value;
};

struct spec_list {
    struct spec_pair *items;
    size_t count;
    size_t capacity;
};

struct job_spec {
    struct arena arena; /* owns every string and list below */

    uint64_t memory_bytes;
    uint64_t cpu_thousandths; /* 1000 is one core */
    uint64_t processes;       /* that the job may have; its init comes on top */
    uint64_t wall_us;
    uint64_t cpu_time_us;        /* of the whole tree; 0 is no limit */
    uint64_t output_limit_bytes; /* of each stream */
    uint64_t tmp_size_bytes;

    const char *plugin_path;
    const char *plugin_name;
    const char *plugin_sha256; /* lower-case hex, or NULL: not checked */
    const char *stdin_path;    /* NULL: the launcher's own standard input, or frames */
    const char *collect_dir;
    const char *working_dir;
    const char *result;       /* FILE or fd:N; NULL is the last line on standard error */
    struct spec_list inputs;  /* name below /job, host file */
    struct spec_list binds;   /* host path, path inside */
    struct spec_list devices; /* host path, some of "rwm" */
    struct spec_list environment;
    bool network_host;
    bool end_at_denial;
    uint64_t uid; /* 0: chosen by the launcher */

    int word_count; /* what it was read from, as long as the caller keeps it: until job_start returns */
    char *const *words;

    char **program; /* PROGRAM and ARGS, ends with NULL */
    size_t program_count;
};

void job_spec_free(struct job_spec *spec);

#endif

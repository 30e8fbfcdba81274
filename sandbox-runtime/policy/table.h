/* Host program: the rows of allow.tsv and refuse.tsv as they stand in the files, and the rules in their test column.
 * Every fault ends the build with the file, the line and what is wrong with it. */
#ifndef SANDBUS_POLICY_TABLE_H
#define SANDBUS_POLICY_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TABLE_ALLOWED = 215, /* the policy's size; a build with any other count fails */
    TABLE_ROWS = 512,
    RULE_TERMS = 4,
    RULE_TESTS = 4,
    RULE_RANGES = 32,
};

struct rule_range {
    uint32_t low, high;
};

/* One comparison: the low 32 bits of an argument, masked, are in a set or are not. */
struct rule_test {
    unsigned argument;
    uint32_t mask;
    bool inside;
    size_t range_count;
    struct rule_range ranges[RULE_RANGES];
};

/* All tests of one term must hold; one term of the rule must. */
struct rule_term {
    size_t test_count;
    struct rule_test tests[RULE_TESTS];
};

struct rule {
    size_t term_count; /* 0: allowed whatever the arguments are */
    struct rule_term terms[RULE_TERMS];
};

struct table_row {
    const char *name;
    int line;
    const char *answer;    /* NULL for an allowed call without a rule */
    const char *rule_text; /* allowed calls with a rule: the rule in words */
    struct rule rule;
    bool has_number;
    int number; /* given in the file, for names that libseccomp may be too old to know */
};

struct table {
    const char *path;
    size_t count;
    struct table_row rows[TABLE_ROWS];
};

void table_read_allowed(struct table *table, const char *path);
void table_read_refused(struct table *table, const char *path);

/* Prints "path:line: message" and ends the build. */
_Noreturn void table_fail(const struct table *table, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif

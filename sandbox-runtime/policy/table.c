#include "table.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 7 };

_Noreturn void table_fail(const struct table *table, int line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s:%d: ", table->path, line);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

/* Splits a line at its tabs, in place. Missing columns become "". */
static void split_columns(const struct table *table, int line, char *text, char *columns[COLUMNS])
{
    size_t count = 0;
    for (char *next = text; next; count++) {
        if (count == COLUMNS)
            table_fail(table, line, "more than %d columns", COLUMNS);
        char *tab = strchr(next, '\t');
        if (tab)
            *tab++ = '\0';
        columns[count] = next;
        next = tab;
    }
    while (count < COLUMNS)
        columns[count++] = text + strlen(text);
}

/* Calls take_row for each line that is not a comment, and insists on sorted, unique names. */
static void read_rows(struct table *table, const char *path,
                      void (*take_row)(struct table *, struct table_row *, char *columns[COLUMNS]))
{
    *table = (struct table){.path = path};
    FILE *file = fopen(path, "r");
    if (!file)
        table_fail(table, 0, "%s", strerror(errno));
    char *text = NULL;
    size_t capacity = 0;
    for (int line = 1; getline(&text, &capacity, file) >= 0; line++) {
        text[strcspn(text, "\n")] = '\0';
        if (text[0] == '#')
            continue;
        if (table->count == TABLE_ROWS)
            table_fail(table, line, "more than %d rows", TABLE_ROWS);
        char *columns[COLUMNS], *kept = strdup(text); /* rows point into it until the build ends */
        if (!kept)
            table_fail(table, line, "no memory");
        split_columns(table, line, kept, columns);
        struct table_row *row = &table->rows[table->count];
        *row = (struct table_row){.name = columns[0], .line = line};
        if (table->count && strcmp(row[-1].name, row->name) >= 0)
            table_fail(table, line, "'%s' must come after '%s': rows are sorted and unique", row->name, row[-1].name);
        take_row(table, row, columns);
        table->count++;
    }
    free(text);
    fclose(file);
}

static void expect_columns(const struct table *table, const struct table_row *row, char *columns[COLUMNS], int from,
                           int to, bool filled)
{
    for (int column = from; column < to; column++)
        if ((columns[column][0] != '\0') != filled)
            table_fail(table, row->line, "'%s': column %d must %s", row->name, column + 1,
                       filled ? "say something" : "be empty");
}

/* Where the parser of a rule stands; `at` moves forward. */
struct cursor {
    const struct table *table;
    const struct table_row *row;
    const char *at;
};

static bool take_word(struct cursor *cursor, const char *word)
{
    size_t length = strlen(word);
    if (strncmp(cursor->at, word, length) != 0)
        return false;
    cursor->at += length;
    return true;
}

static uint32_t take_number(struct cursor *cursor)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(cursor->at, &end, 0);
    if (end == cursor->at || *cursor->at == '-' || errno || value > UINT32_MAX)
        table_fail(cursor->table, cursor->row->line, "'%s': expected a number of at most 32 bits at '%s'",
                   cursor->row->name, cursor->at);
    cursor->at = end;
    return (uint32_t)value;
}

/* arg0&0xf000 not-in 1,2,4-7 */
static void take_test(struct cursor *cursor, struct rule_test *test)
{
    *test = (struct rule_test){.mask = UINT32_MAX};
    if (!take_word(cursor, "arg"))
        table_fail(cursor->table, cursor->row->line, "'%s': expected argN at '%s'", cursor->row->name, cursor->at);
    test->argument = take_number(cursor);
    if (test->argument > 5)
        table_fail(cursor->table, cursor->row->line, "'%s': arguments are arg0 to arg5", cursor->row->name);
    if (take_word(cursor, "&"))
        test->mask = take_number(cursor);
    test->inside = take_word(cursor, " in ");
    if (!test->inside && !take_word(cursor, " not-in "))
        table_fail(cursor->table, cursor->row->line, "'%s': expected ' in ' or ' not-in ' at '%s'", cursor->row->name,
                   cursor->at);
    do {
        if (test->range_count == RULE_RANGES)
            table_fail(cursor->table, cursor->row->line, "'%s': more than %d values", cursor->row->name, RULE_RANGES);
        struct rule_range *range = &test->ranges[test->range_count++];
        range->low = take_number(cursor);
        range->high = take_word(cursor, "-") ? take_number(cursor) : range->low;
        if (range->high < range->low || (range->low & ~test->mask) || (range->high & ~test->mask))
            table_fail(cursor->table, cursor->row->line, "'%s': an empty range, or a value outside the mask",
                       cursor->row->name);
    } while (take_word(cursor, ","));
}

static void parse_rule(const struct table *table, struct table_row *row, const char *text)
{
    struct cursor cursor = {table, row, text};
    do {
        if (row->rule.term_count == RULE_TERMS)
            table_fail(table, row->line, "'%s': more than %d terms", row->name, RULE_TERMS);
        struct rule_term *term = &row->rule.terms[row->rule.term_count++];
        do {
            if (term->test_count == RULE_TESTS)
                table_fail(table, row->line, "'%s': more than %d tests in a term", row->name, RULE_TESTS);
            take_test(&cursor, &term->tests[term->test_count++]);
        } while (take_word(&cursor, " and "));
    } while (take_word(&cursor, " or "));
    if (*cursor.at)
        table_fail(table, row->line, "'%s': nothing expected after the rule, but '%s'", row->name, cursor.at);
}

/* name, group, why, bound [, test, answer, rule in words] */
static void take_allowed(struct table *table, struct table_row *row, char *columns[COLUMNS])
{
    expect_columns(table, row, columns, 0, 4, true);
    expect_columns(table, row, columns, 4, 7, columns[4][0] != '\0');
    if (!columns[4][0])
        return;
    parse_rule(table, row, columns[4]);
    row->answer = columns[5];
    row->rule_text = columns[6];
}

/* name, answer, why [, number] */
static void take_refused(struct table *table, struct table_row *row, char *columns[COLUMNS])
{
    expect_columns(table, row, columns, 0, 3, true);
    expect_columns(table, row, columns, 4, 7, false);
    row->answer = columns[1];
    if (!columns[3][0])
        return;
    struct cursor cursor = {table, row, columns[3]};
    row->has_number = true;
    row->number = (int)take_number(&cursor);
    if (*cursor.at || row->number > 4095)
        table_fail(table, row->line, "'%s': '%s' is not a system call number", row->name, columns[3]);
}

void table_read_allowed(struct table *table, const char *path)
{
    read_rows(table, path, take_allowed);
    if (table->count != TABLE_ALLOWED)
        table_fail(table, 0, "%zu names, but the policy has %d: when one comes in, another goes out", table->count,
                   TABLE_ALLOWED);
}

void table_read_refused(struct table *table, const char *path)
{
    read_rows(table, path, take_refused);
}

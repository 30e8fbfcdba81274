/* Host program: reads policy/allow.tsv and policy/refuse.tsv and writes build/filter.gen.h to standard output.
 *
 *   generate ALLOW REFUSE x86_64|aarch64
 *
 * libseccomp gives the numbers of names on either architecture. The program itself is ours (emit.c), because libseccomp
 * compares 64 bits, knows no "not equal" under a mask, and takes one comparison an argument.
 *
 * A name of the kernel that neither file decides is an error, so a newer libseccomp makes the policy speak about the calls
 * it brings. Names that the architecture does not have are listed on standard error and in the header. */
#include <errno.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../src/sha256.h"
#include "emit.h"
#include "table.h"

enum { NUMBERS = 1024 };

struct target {
    const char *name;
    uint32_t native, compat; /* compat: the 32-bit calls of the same kernel, for names in records */
};

static const struct target targets[] = {
    {"x86_64", SCMP_ARCH_X86_64, SCMP_ARCH_X86},
    {"aarch64", SCMP_ARCH_AARCH64, SCMP_ARCH_ARM},
};

struct answer {
    const char *name;
    int value;
    const char *kind;
};

static const struct answer answers[] = {
    {"EPERM", -EPERM, "POLICY_DENIAL"},
    {"EINVAL", -EINVAL, "POLICY_DENIAL"},
    {"EAFNOSUPPORT", -EAFNOSUPPORT, "POLICY_DENIAL"},
    {"ENOSYS", -ENOSYS, "POLICY_PROBE"},
    {"0", 0, "POLICY_PROBE"},
};

/* The one answer that the filter gives itself; nobody sees such a call. */
static const char static_enosys[] = "ENOSYS static";

static struct table allowed, refused;
static const struct target *target;

static int number_of(const struct table *table, const struct table_row *row)
{
    int number = seccomp_syscall_resolve_name_arch(target->native, row->name);
    if (number == __NR_SCMP_ERROR && row->has_number)
        return row->number;
    if (number == __NR_SCMP_ERROR)
        table_fail(table, row->line, "libseccomp knows no system call '%s', and the row gives no number", row->name);
    if (number >= 0 && row->has_number && number != row->number)
        table_fail(table, row->line, "'%s' is number %d, not %d", row->name, number, row->number);
    if (number >= NUMBERS)
        table_fail(table, row->line, "'%s': number %d is above %d", row->name, number, NUMBERS);
    return number < 0 ? -1 : number; /* libseccomp gives names of other architectures negative numbers */
}

static const struct answer *answer_of(const struct table *table, const struct table_row *row)
{
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
        if (!strcmp(answers[i].name, row->answer))
            return &answers[i];
    table_fail(table, row->line, "'%s': there is no answer '%s'", row->name, row->answer);
}

/* Which row decides each number: at most one may. */
static const struct table_row *decided_by[NUMBERS];

static void decide_numbers(const struct table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct table_row *row = &table->rows[i];
        int number = number_of(table, row);
        if (number < 0)
            continue;
        if (decided_by[number])
            table_fail(table, row->line, "'%s' (%d) is decided already, as '%s'", row->name, number,
                       decided_by[number]->name);
        decided_by[number] = row;
    }
}

static void require_all_decided(void)
{
    for (int number = 0; number < NUMBERS; number++) {
        char *name = seccomp_syscall_resolve_num_arch(target->native, number);
        if (name && !decided_by[number])
            table_fail(&refused, 0, "no row decides '%s' (%d): add it, with an answer and a reason", name, number);
        free(name);
    }
}

static void build_program(struct program *program)
{
    static uint32_t actions[NUMBERS];
    struct emit_ruled ruled[TABLE_ROWS];
    size_t ruled_count = 0;
    for (int number = 0; number < NUMBERS; number++)
        actions[number] = SECCOMP_RET_USER_NOTIF;
    for (size_t i = 0; i < allowed.count; i++) {
        int number = number_of(&allowed, &allowed.rows[i]);
        if (number >= 0 && allowed.rows[i].rule.term_count)
            ruled[ruled_count++] = (struct emit_ruled){(uint32_t)number, &allowed.rows[i].rule};
        else if (number >= 0)
            actions[number] = SECCOMP_RET_ALLOW;
    }
    for (size_t i = 0; i < refused.count; i++) {
        int number = number_of(&refused, &refused.rows[i]);
        if (number >= 0 && !strcmp(refused.rows[i].answer, static_enosys))
            actions[number] = SECCOMP_RET_ERRNO | ENOSYS;
    }
    const char *fault = emit_program(program, target->native, ruled, ruled_count, actions, NUMBERS);
    if (fault)
        table_fail(&allowed, 0, "the policy does not fit a seccomp program: %s", fault);
}

static void write_program(const struct program *program)
{
    char hex[SHA256_HEX_SIZE];
    struct sha256 hash;
    sha256_init(&hash);
    sha256_update(&hash, program->code, program->length * sizeof program->code[0]);
    sha256_final_hex(&hash, hex);
    printf("const char policy_digest_hex[65] = \"%s\";\n\n", hex);
    printf("const unsigned short policy_program_len = %zu;\nconst struct sock_filter policy_program[] = {\n",
           program->length);
    for (size_t i = 0; i < program->length; i++) {
        const struct sock_filter *at = &program->code[i];
        printf("    {0x%02x, %u, %u, 0x%08x},\n", at->code, at->jt, at->jf, at->k);
    }
    printf("};\n\n");
}

static void write_allowed_names(void)
{
    printf("static const char *const generated_allowed[] = {\n");
    for (size_t i = 0; i < allowed.count; i++)
        printf("    \"%s\",\n", allowed.rows[i].name);
    printf("};\n\n");
}

static void write_row(const struct table *table, const struct table_row *row)
{
    const struct answer *answer = answer_of(table, row);
    bool ruled = row->rule_text != NULL; /* a broken rule is a denial, whichever its answer is */
    printf("    {\"%s\", ", row->name);
    printf(ruled ? "\"%s\", " : "NULL, ", row->rule_text);
    printf("\"%s\", %d, %d, %s},\n", answer->name, answer->value, number_of(table, row),
           ruled ? "POLICY_DENIAL" : answer->kind);
}

/* Every call that can be notified has its row. Numbers that this architecture lacks need none. */
static void write_rows(void)
{
    printf("static const struct policy_row generated_rows[] = {\n");
    for (size_t i = 0; i < allowed.count; i++)
        if (allowed.rows[i].answer && number_of(&allowed, &allowed.rows[i]) >= 0)
            write_row(&allowed, &allowed.rows[i]);
    for (size_t i = 0; i < refused.count; i++)
        if (strcmp(refused.rows[i].answer, static_enosys) != 0 && number_of(&refused, &refused.rows[i]) >= 0)
            write_row(&refused, &refused.rows[i]);
    printf("};\n\n");
}

/* Indexed by number: the architecture's own names as the policy knows them, and those of its 32-bit calls. */
static void write_names(void)
{
    printf("static const char *const generated_names[] = {\n");
    for (int number = 0; number < NUMBERS; number++)
        if (decided_by[number])
            printf("    [%d] = \"%s\",\n", number, decided_by[number]->name);
    printf("};\n\nstatic const char *const generated_compat_names[] = {\n");
    for (int number = 0; number < NUMBERS; number++) {
        char *name = seccomp_syscall_resolve_num_arch(target->compat, number);
        if (name)
            printf("    [%d] = \"%s\",\n", number, name);
        free(name);
    }
    printf("};\n\n");
}

static void write_missing_names(void)
{
    size_t count = 0;
    printf("/* Allowed names without a number on %s:", target->name);
    for (size_t i = 0; i < allowed.count; i++) {
        if (number_of(&allowed, &allowed.rows[i]) >= 0)
            continue;
        fprintf(stderr, "%s%s", count++ ? " " : "policy: no number on this architecture: ", allowed.rows[i].name);
        printf(" %s", allowed.rows[i].name);
    }
    if (count)
        fprintf(stderr, " (%zu names)\n", count);
    printf("%s */\n#define GENERATED_MISSING_COUNT %zu\n", count ? "" : " none", count);
}

int main(int argument_count, char **arguments)
{
    for (size_t i = 0; argument_count == 4 && i < sizeof targets / sizeof *targets; i++)
        if (!strcmp(targets[i].name, arguments[3]))
            target = &targets[i];
    if (!target) {
        fprintf(stderr, "usage: generate ALLOW.tsv REFUSE.tsv x86_64|aarch64 > filter.gen.h\n");
        return 2;
    }
    table_read_allowed(&allowed, arguments[1]);
    table_read_refused(&refused, arguments[2]);
    decide_numbers(&allowed);
    decide_numbers(&refused);
    require_all_decided();

    static struct program program;
    build_program(&program);
    printf("/* Made by policy/generate from allow.tsv and refuse.tsv for %s. Do not edit. */\n", target->name);
    printf("const unsigned policy_arch = 0x%08xu;\n#define GENERATED_COMPAT_ARCH 0x%08xu\n", target->native,
           target->compat);
    write_missing_names();
    write_program(&program);
    write_allowed_names();
    write_rows();
    write_names();
    return fflush(stdout) || ferror(stdout);
}

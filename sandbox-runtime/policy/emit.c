/* The shape of the program:
 *
 *   another architecture?          notify
 *   a call with an argument rule?  test its arguments: allow or notify
 *   otherwise                      binary search over the runs of numbers with one action
 *
 * Calls without a rule come last although they are the many: the kernel works out once, when the filter is attached, which
 * numbers are allowed whatever their arguments, and does not run the program for those at all. The ones it does run for are
 * the ruled calls, so they come first.
 *
 * An argument is 64 bits wide; only its low half is loaded, since the kernel takes these arguments as int and ignores the
 * upper half too. A comparison of all 64 bits can be stepped around with a dirty upper half. */
#include "emit.h"

#include <linux/seccomp.h>
#include <stdbool.h>

enum { LABELS = 2048, ENDINGS = 8, UNPLACED = -1 };

/* Jumps name labels; place_label says where a label is; resolve fills the offsets in. */
struct emitter {
    struct program *program;
    bool too_long;
    size_t label_count;
    int labels[LABELS];
    uint16_t when_true[EMIT_CODE], when_false[EMIT_CODE];
};

static int new_label(struct emitter *emitter)
{
    if (emitter->label_count == LABELS) {
        emitter->too_long = true;
        return 0;
    }
    emitter->labels[emitter->label_count] = UNPLACED;
    return (int)emitter->label_count++;
}

static void place_label(struct emitter *emitter, int label)
{
    emitter->labels[label] = (int)emitter->program->length;
}

static void append(struct emitter *emitter, uint16_t code, uint32_t constant, int when_true, int when_false)
{
    struct program *program = emitter->program;
    if (program->length == EMIT_CODE) {
        emitter->too_long = true;
        return;
    }
    emitter->when_true[program->length] = (uint16_t)when_true;
    emitter->when_false[program->length] = (uint16_t)when_false;
    program->code[program->length++] = (struct sock_filter){.code = code, .k = constant};
}

static void load(struct emitter *emitter, size_t offset)
{
    append(emitter, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void jump(struct emitter *emitter, uint16_t operation, uint32_t constant, int when_true, int when_false)
{
    append(emitter, BPF_JMP | BPF_K | operation, constant, when_true, when_false);
}

static void finish(struct emitter *emitter, uint32_t action)
{
    append(emitter, BPF_RET | BPF_K, action, 0, 0);
}

static void emit_test(struct emitter *emitter, const struct rule_test *test, int fails)
{
    int holds = new_label(emitter);
    int found = test->inside ? holds : fails;
    /* The low half comes first: both architectures are little-endian. */
    load(emitter, offsetof(struct seccomp_data, args) + 8 * test->argument);
    if (test->mask != UINT32_MAX)
        append(emitter, BPF_ALU | BPF_AND | BPF_K, test->mask, 0, 0);
    for (size_t i = 0; i < test->range_count; i++) {
        const struct rule_range *range = &test->ranges[i];
        bool last = i + 1 == test->range_count;
        int next = new_label(emitter);
        int not_here = !last ? next : test->inside ? fails : holds;
        if (range->low == range->high) {
            jump(emitter, BPF_JEQ, range->low, found, not_here);
        } else {
            int reaches_low = new_label(emitter);
            jump(emitter, BPF_JGE, range->low, reaches_low, not_here);
            place_label(emitter, reaches_low);
            jump(emitter, BPF_JGT, range->high, not_here, found);
        }
        place_label(emitter, next);
    }
    place_label(emitter, holds);
}

static void emit_ruled(struct emitter *emitter, const struct emit_ruled *ruled)
{
    int applies = new_label(emitter), passes_by = new_label(emitter);
    jump(emitter, BPF_JEQ, ruled->number, applies, passes_by);
    place_label(emitter, applies);
    for (size_t i = 0; i < ruled->rule->term_count; i++) {
        const struct rule_term *term = &ruled->rule->terms[i];
        int fails = new_label(emitter);
        for (size_t j = 0; j < term->test_count; j++)
            emit_test(emitter, &term->tests[j], fails);
        finish(emitter, SECCOMP_RET_ALLOW);
        place_label(emitter, fails);
    }
    finish(emitter, SECCOMP_RET_USER_NOTIF);
    place_label(emitter, passes_by);
}

/* Numbers from `start` on have this action, up to the start of the next run. */
struct run {
    uint32_t start, action;
};

/* The last instructions, one for each action that a run has: the kernel takes time for every instruction when it loads a filter. */
struct ending {
    uint32_t action;
    int label;
};

struct endings {
    size_t count;
    struct ending endings[ENDINGS];
};

static int label_of(struct emitter *emitter, struct endings *endings, uint32_t action)
{
    for (size_t i = 0; i < endings->count; i++)
        if (endings->endings[i].action == action)
            return endings->endings[i].label;
    if (endings->count == ENDINGS) {
        emitter->too_long = true;
        return 0;
    }
    endings->endings[endings->count] = (struct ending){action, new_label(emitter)};
    return endings->endings[endings->count++].label;
}

static void emit_search(struct emitter *emitter, struct endings *endings, const struct run *runs, size_t count);

/* Where to go on for these runs: to what is emitted next, or to the end. */
static void emit_side(struct emitter *emitter, struct endings *endings, int label, const struct run *runs, size_t count)
{
    if (count == 1)
        return;
    place_label(emitter, label);
    emit_search(emitter, endings, runs, count);
}

/* For two runs or more. */
static void emit_search(struct emitter *emitter, struct endings *endings, const struct run *runs, size_t count)
{
    size_t left_count = count / 2, right_count = count - left_count;
    const struct run *rest = runs + left_count;
    int left = left_count == 1 ? label_of(emitter, endings, runs->action) : new_label(emitter);
    int right = right_count == 1 ? label_of(emitter, endings, rest->action) : new_label(emitter);
    jump(emitter, BPF_JGE, rest->start, right, left);
    emit_side(emitter, endings, left, runs, left_count);
    emit_side(emitter, endings, right, rest, right_count);
}

static void emit_endings(struct emitter *emitter, const struct endings *endings)
{
    for (size_t i = 0; i < endings->count; i++) {
        place_label(emitter, endings->endings[i].label);
        finish(emitter, endings->endings[i].action);
    }
}

static size_t collect_runs(struct run *runs, const uint32_t *actions, size_t action_count)
{
    size_t count = 0;
    for (size_t number = 0; number <= action_count; number++) {
        uint32_t action = number < action_count ? actions[number] : (uint32_t)SECCOMP_RET_USER_NOTIF;
        if (!count || runs[count - 1].action != action)
            runs[count++] = (struct run){(uint32_t)number, action};
    }
    return count;
}

/* Offsets of jumps count from the next instruction, and have 8 bits. */
static bool resolve(struct emitter *emitter)
{
    for (size_t at = 0; at < emitter->program->length; at++) {
        struct sock_filter *instruction = &emitter->program->code[at];
        if (BPF_CLASS(instruction->code) != BPF_JMP)
            continue;
        int when_true = emitter->labels[emitter->when_true[at]] - (int)at - 1;
        int when_false = emitter->labels[emitter->when_false[at]] - (int)at - 1;
        if (when_true < 0 || when_true > UINT8_MAX || when_false < 0 || when_false > UINT8_MAX)
            return false;
        instruction->jt = (uint8_t)when_true;
        instruction->jf = (uint8_t)when_false;
    }
    return true;
}

const char *emit_program(struct program *program, uint32_t arch, const struct emit_ruled *ruled, size_t ruled_count,
                         const uint32_t *actions, size_t action_count)
{
    static struct emitter emitter;
    static struct run runs[EMIT_CODE];
    struct endings endings = {.count = 0};
    if (action_count >= EMIT_CODE)
        return "system call numbers above 4094";
    emitter = (struct emitter){.program = program};
    program->length = 0;

    int native = new_label(&emitter), foreign = new_label(&emitter);
    load(&emitter, offsetof(struct seccomp_data, arch));
    jump(&emitter, BPF_JEQ, arch, native, foreign);
    place_label(&emitter, foreign);
    finish(&emitter, SECCOMP_RET_USER_NOTIF);
    place_label(&emitter, native);
    load(&emitter, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < ruled_count; i++)
        emit_ruled(&emitter, &ruled[i]);
    size_t run_count = collect_runs(runs, actions, action_count);
    if (run_count < 2)
        return "one action for all numbers";
    emit_search(&emitter, &endings, runs, run_count);
    emit_endings(&emitter, &endings);

    if (emitter.too_long)
        return "more than 4096 instructions or 2048 labels";
    return resolve(&emitter) ? NULL : "a jump over more than 255 instructions";
}

#include "frames.h"

#include <string.h>

struct frame_row {
    uint8_t type;
    const char *name;
    bool from_client;
    uint32_t least, most; /* bytes of payload */
    bool about_job;
    const char *help;
};

static const struct frame_row frame_table[] = {
    {FRAME_START, "START", true, 2, FRAME_START_MAX, true, "the words after `launcher run`, each ended by a zero byte"},
    {FRAME_INPUT, "INPUT", true, 0, FRAME_BYTES_MAX, true, "bytes of standard input; none are its end"},
    {FRAME_CREDIT, "CREDIT", true, 8, 8, true, "u32 stream (1 stdout, 2 stderr), u32 bytes that it may send more"},
    {FRAME_CANCEL, "CANCEL", true, 0, 0, true, "end the job; one that has ended already does not mind"},
    {FRAME_DISCARD, "DISCARD", true, 0, 0, true, "send no more output of it; it is counted and hashed all the same"},
    {FRAME_HELLO, "HELLO", false, 8, 8, false, "u32 version of these frames (1), u32 most jobs at one time"},
    {FRAME_STDOUT, "STDOUT", false, 1, FRAME_BYTES_MAX, true, "bytes of standard output"},
    {FRAME_STDERR, "STDERR", false, 1, FRAME_BYTES_MAX, true, "bytes of standard error"},
    {FRAME_INPUT_CREDIT, "INPUT_CREDIT", false, 4, 4, true, "u32 bytes of standard input that it takes more"},
    {FRAME_RESULT, "RESULT", false, 2, FRAME_RESULT_MAX, true, "the result, as `launcher run --result` writes it"},
    {FRAME_ERROR, "ERROR", false, 2, FRAME_BYTES_MAX, false, "a result that says why nothing goes on; the last frame"},
};

enum { FRAME_TYPES = sizeof frame_table / sizeof frame_table[0] };

#define FRAMES_MEND "see the frames of serve in the launcher's README.md"

static uint32_t read_u32(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

void frame_write_u32(unsigned char bytes[4], uint32_t number)
{
    for (int i = 0; i < 4; i++)
        bytes[i] = (unsigned char)(number >> 8 * i);
}

void frame_write_header(unsigned char bytes[FRAME_HEADER_SIZE], const struct frame_header *header)
{
    memset(bytes, 0, FRAME_HEADER_SIZE);
    frame_write_u32(bytes, header->length);
    bytes[4] = header->type;
    frame_write_u32(bytes + 8, (uint32_t)header->job);
    frame_write_u32(bytes + 12, (uint32_t)(header->job >> 32));
}

static const struct frame_row *find_row(uint8_t type)
{
    for (size_t i = 0; i < FRAME_TYPES; i++)
        if (frame_table[i].type == type && frame_table[i].from_client)
            return &frame_table[i];
    return NULL;
}

bool frame_read_header(const unsigned char bytes[FRAME_HEADER_SIZE], struct frame_header *header, struct fault *fault)
{
    *header = (struct frame_header){
        .length = read_u32(bytes),
        .type = bytes[4],
        .job = read_u32(bytes + 8) | (uint64_t)read_u32(bytes + 12) << 32,
    };
    const struct frame_row *row = find_row(header->type);
    if (!row)
        return fault_set(fault, 0, FRAMES_MEND, "a client sends no frame of type %u", header->type);
    if (bytes[5] || bytes[6] || bytes[7])
        return fault_set(fault, 0, FRAMES_MEND, "bytes 5 to 7 of the header of %s are not zero", row->name);
    if (header->length < row->least || header->length > row->most)
        return fault_set(fault, 0, FRAMES_MEND, "%s has %u bytes and takes %u to %u", row->name, header->length,
                         row->least, row->most);
    if (!header->job)
        return fault_set(fault, 0, "number jobs from 1", "%s is about no job", row->name);
    return true;
}

bool frame_read_credit(const unsigned char *payload, struct frame_credit *credit, struct fault *fault)
{
    credit->stream = read_u32(payload);
    credit->bytes = read_u32(payload + 4);
    if (credit->stream == 1 || credit->stream == 2)
        return true;
    return fault_set(fault, 0, FRAMES_MEND, "CREDIT is for stream %u; there are 1 and 2", credit->stream);
}

bool frame_read_words(char *payload, size_t length, char **words, int *count, struct fault *fault)
{
    *count = 0;
    if (!length || payload[length - 1])
        return fault_set(fault, 0, FRAMES_MEND, "the last word of START does not end with a zero byte");
    for (char *word = payload; word < payload + length; word += strlen(word) + 1) {
        if (*count == FRAME_WORDS_MAX)
            return fault_set(fault, 0, "pass data by standard input or an input file", "START has more than %d words",
                             FRAME_WORDS_MAX);
        words[(*count)++] = word;
    }
    words[*count] = NULL;
    return true;
}

void frames_print_help(FILE *to)
{
    for (size_t i = 0; i < FRAME_TYPES; i++) {
        const struct frame_row *row = &frame_table[i];
        fprintf(to, "  %2u %-13s %s %7u to %8u  %s\n", row->type, row->name, row->from_client ? "->" : "<-", row->least,
                row->most, row->help);
    }
}

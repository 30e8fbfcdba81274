/*
 * Instructions of eBPF, written in the source: there is no compiler for them at build time. Registers are the numbers 0 to 10:
 * 0 is the result, 1 to 5 are arguments and lost at a call, 6 to 9 are kept, 10 is the frame. Jumps name labels, small numbers
 * that BPF_CODE_LABEL places; bpf_program_load turns them into distances.
 */
#ifndef SANDBUS_BPF_CODE_H
#define SANDBUS_BPF_CODE_H

#include <linux/bpf.h>

#define BPF_CODE(op, dst, src, offset, immediate) \
    ((struct bpf_insn){.code = (op), .dst_reg = (dst), .src_reg = (src), .off = (offset), .imm = (immediate)})

/* 64-bit arithmetic: dst = dst op source; the operation is BPF_ADD, BPF_AND, BPF_MOV, ... */
#define BPF_CODE_ALU(op, dst, immediate) BPF_CODE(BPF_ALU64 | (op) | BPF_K, dst, 0, 0, immediate)
#define BPF_CODE_ALU_REG(op, dst, src)   BPF_CODE(BPF_ALU64 | (op) | BPF_X, dst, src, 0, 0)
#define BPF_CODE_MOV(dst, immediate)     BPF_CODE_ALU(BPF_MOV, dst, immediate)
#define BPF_CODE_MOV_REG(dst, src)       BPF_CODE_ALU_REG(BPF_MOV, dst, src)

/* Memory; the size is BPF_B, BPF_H, BPF_W or BPF_DW. */
#define BPF_CODE_LOAD(size, dst, base, offset)  BPF_CODE(BPF_LDX | BPF_MEM | (size), dst, base, offset, 0)
#define BPF_CODE_STORE(size, base, offset, src) BPF_CODE(BPF_STX | BPF_MEM | (size), base, src, offset, 0)
#define BPF_CODE_STORE_VALUE(size, base, offset, immediate) \
    BPF_CODE(BPF_ST | BPF_MEM | (size), base, 0, offset, immediate)
#define BPF_CODE_ATOMIC_ADD(size, base, offset, src) BPF_CODE(BPF_STX | BPF_ATOMIC | (size), base, src, offset, BPF_ADD)
/* As before, and src becomes the old value (Linux 5.12). */
#define BPF_CODE_FETCH_ADD(size, base, offset, src) \
    BPF_CODE(BPF_STX | BPF_ATOMIC | (size), base, src, offset, BPF_ADD | BPF_FETCH)

/* Jumps: if (dst op source) go to the label; the operation is BPF_JEQ, BPF_JNE, BPF_JGT, BPF_JGE, BPF_JLT, ... */
#define BPF_CODE_IF(op, dst, immediate, label) BPF_CODE(BPF_JMP | (op) | BPF_K, dst, 0, label, immediate)
#define BPF_CODE_IF_REG(op, dst, src, label)   BPF_CODE(BPF_JMP | (op) | BPF_X, dst, src, label, 0)
#define BPF_CODE_GOTO(label)                   BPF_CODE(BPF_JMP | BPF_JA, 0, 0, label, 0)
#define BPF_CODE_LABEL(label)                  BPF_CODE(BPF_CODE_LABEL_MARK, 0, 0, label, 0)
enum { BPF_CODE_LABEL_MARK = 0xff, BPF_CODE_LABELS = 16 }; /* the mark is no instruction of the kernel's */

#define BPF_CODE_CALL(helper) BPF_CODE(BPF_JMP | BPF_CALL, 0, 0, 0, helper)
#define BPF_CODE_EXIT         BPF_CODE(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)

/* dst = the map of this descriptor. */
#define BPF_CODE_MAP(dst, map_fd) \
    BPF_CODE(BPF_LD | BPF_DW | BPF_IMM, dst, BPF_PSEUDO_MAP_FD, 0, map_fd), BPF_CODE(0, 0, 0, 0, 0)

#endif

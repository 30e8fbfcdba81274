import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Runtime } from '../../schemas/generated/events.ts';
import { detectRuntime } from './detect-runtime.ts';

const elf = (machine: number, width = 2) => {
  const header = Buffer.alloc(64);
  header.write('\x7fELF', 'latin1');
  header[4] = width;
  header[5] = 1;
  header.writeUInt16LE(machine, 18);
  return header;
};
const text = (line: string) => Buffer.from(`${line}\nprint(1)\n`);

const cases: [file: string, head: Buffer, signed: Runtime, architecture: string | null, expected: string][] =
  [
    ['a.py', text('print(1)'), 'python', null, 'python by extension'],
    ['a.py', text('#!/usr/bin/env python3'), 'python', null, 'python by content'],
    ['a.py', text('#!/usr/bin/env -S python3.11 -u'), 'python', null, 'python by content'],
    ['a.js', text('console.log(1)'), 'node', null, 'node by extension'],
    ['a.mjs', text('#!/usr/bin/node'), 'node', null, 'node by content'],
    ['a.cjs', text(''), 'node', null, 'node by extension'],
    ['a.ts', text('const x: number = 1;'), 'node', null, 'node by extension'],
    ['a.rb', text('#!/usr/bin/ruby3.1'), 'ruby', null, 'ruby by content'],
    ['a.sh', text('#!/bin/sh'), 'bash', null, 'bash by content'],
    ['tool', elf(62), 'native', 'x86_64', 'native by content'],
    ['tool.bin', elf(62), 'native', 'x86_64', 'native by content'],
    ['a.py', text('#!/bin/bash'), 'python', null, 'RUNTIME_MISMATCH'],
    ['a.py', elf(62), 'python', null, 'RUNTIME_MISMATCH'],
    ['a.rb', text(''), 'python', null, 'RUNTIME_MISMATCH'],
    ['tool', text('echo'), 'native', 'x86_64', 'RUNTIME_MISMATCH'],
    ['tool', elf(183), 'native', 'x86_64', 'RUNTIME_MISMATCH'],
    ['tool', elf(183), 'native', 'aarch64', 'RUNTIME_UNSUPPORTED'],
    ['tool', elf(3, 1), 'native', 'x86_64', 'RUNTIME_MISMATCH'],
    ['a.py', text('#!/usr/bin/perl'), 'python', null, 'RUNTIME_UNSUPPORTED'],
    ['tool.exe', Buffer.from('MZ\x90\0'), 'native', 'x86_64', 'RUNTIME_UNSUPPORTED'],
    ['tool', Buffer.from('cffaedfe', 'hex'), 'native', 'x86_64', 'RUNTIME_UNSUPPORTED'],
    ['tool', Buffer.alloc(0), 'native', 'x86_64', 'RUNTIME_MISMATCH'],
    ['tool', Buffer.from('\x7fELF', 'latin1'), 'native', 'x86_64', 'RUNTIME_MISMATCH'],
  ];

for (const [fileName, head, signedRuntime, signedArchitecture, expected] of cases)
  test(`${fileName} ${JSON.stringify(head.toString('latin1').slice(0, 28))} signed ${signedRuntime}: ${expected}`, () => {
    const found = detectRuntime({ fileName, head, signedRuntime, signedArchitecture, machine: 'x86_64' });
    assert.equal(found.ok ? `${found.runtime} by ${found.decidedBy}` : found.reason, expected);
    if (!found.ok) assert.ok(found.detail.startsWith(`${fileName}: `));
  });

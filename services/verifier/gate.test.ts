import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RoomFacts } from './gate.ts';
import { roomFor } from './gate.ts';

const mebibyte = 1024 * 1024;
const idle: RoomFacts = {
  submissions: { messages: 0, bytes: 0 },
  pending: 0,
  jobs: { messages: 0, bytes: 0, maxBytes: 1024 * mebibyte },
  states: { bytes: 0, maxBytes: 512 * mebibyte },
};

const cases: [what: string, facts: RoomFacts, least: number, most: number][] = [
  ['an idle bus takes many', idle, 1500, 3000],
  [
    'what waits takes no place',
    { ...idle, submissions: { messages: 900, bytes: mebibyte }, pending: 900 },
    1500,
    3000,
  ],
  ['each open job has its place', { ...idle, submissions: { messages: 900, bytes: mebibyte } }, 600, 2100],
  [
    'a full JOBS takes none',
    { ...idle, jobs: { messages: 9, bytes: 930 * mebibyte, maxBytes: 1024 * mebibyte } },
    0,
    0,
  ],
  [
    'full states take none',
    {
      ...idle,
      jobs: { ...idle.jobs, messages: 1 },
      states: { bytes: 480 * mebibyte, maxBytes: 512 * mebibyte },
    },
    0,
    0,
  ],
  [
    'large submissions count twice',
    {
      ...idle,
      submissions: { messages: 500, bytes: 470 * mebibyte },
      pending: 500,
      jobs: { ...idle.jobs, messages: 1 },
    },
    0,
    0,
  ],
  ['a tiny bus takes one job at a time', { ...idle, jobs: { messages: 0, bytes: 0, maxBytes: 1000 } }, 1, 1],
];

for (const [what, facts, least, most] of cases)
  test(what, () => {
    const room = roomFor(facts);
    assert.ok(room >= least && room <= most, `room for ${room}`);
  });

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { UsageError } from '../platform/errors.ts';
import {
  formatBytes,
  formatMs,
  parseAfter,
  parseCount,
  parseCpus,
  parseDuration,
  parseEnd,
  parseInstant,
  parseMemory,
  parsePair,
  parsePast,
  parsePort,
  parseRecordNumber,
  parseSize,
} from './quantities.ts';

const nowMs = Date.parse('2026-06-01T12:00:00Z');
const instant = (text: string) => parseInstant(text, nowMs);
const end = (text: string) => parseEnd(text, nowMs);
const past = (text: string) => parsePast(text, nowMs);

const good: readonly (readonly [parse: (text: string) => unknown, text: string, value: unknown])[] = [
  [parseSize, '4096', 4096],
  [parseSize, '1K', 1024],
  [parseSize, '256M', 268_435_456],
  [parseSize, '256m', 268_435_456],
  [parseSize, '256MiB', 268_435_456],
  [parseSize, '1.5G', 1_610_612_736],
  [parseSize, '2T', 2_199_023_255_552],
  [parseSize, '8191T', 9_006_099_743_113_216],
  [parseMemory, '64K', 65_536],
  [parseMemory, '1G', 1_073_741_824],
  [parseDuration, '36500d', 3_153_600_000_000],
  [parseDuration, '500ms', 500],
  [parseDuration, '10s', 10_000],
  [parseDuration, '0.5s', 500],
  [parseDuration, '2m', 120_000],
  [parseDuration, '12h', 43_200_000],
  [parseDuration, '90d', 7_776_000_000],
  [parseDuration, '36500d', 3_153_600_000_000],
  [parseCpus, '1', 1000],
  [parseCpus, '0.5', 500],
  [parseCpus, '0.01', 10],
  [parseCpus, '2.25', 2250],
  [parseCount, '128', 128],
  [parsePort, '0', 0],
  [parsePort, '65535', 65_535],
  [parseAfter, '-1', -1],
  [parseAfter, '0', 0],
  [parseRecordNumber, '0', 0],
  [end, '1d', nowMs + 86_400_000],
  [past, '2h', nowMs - 7_200_000],
  [past, '2h ago', nowMs - 7_200_000],
  [past, '2026-05-31', Date.parse('2026-05-31T00:00:00Z')],
  [parseCount, '2147483647', 2_147_483_647],
  [instant, '1d', nowMs + 86_400_000],
  [instant, '2027-01-31', Date.parse('2027-01-31T00:00:00Z')],
  [instant, '2027-01-31T12:30Z', Date.parse('2027-01-31T12:30:00Z')],
  [instant, '2027-01-31T12:30:15Z', Date.parse('2027-01-31T12:30:15Z')],
  [parsePair, 'A=b', ['A', 'b']],
  [parsePair, 'A=', ['A', '']],
  [parsePair, 'A=b=c', ['A', 'b=c']],
];

const bad: readonly (readonly [parse: (text: string) => unknown, text: string, message: RegExp])[] = [
  [parseSize, '', /must be 256M/],
  [parseSize, '0', /size 0: must be .*; at least 1, at most 8191T$/],
  [parseSize, '8192T', /at most 8191T/],
  [parseSize, '-1M', /must be 256M/],
  [parseSize, '1X', /size 1X: must be 256M, 1\.5G or a number of bytes/],
  [parseSize, '1 M', /must be 256M/],
  [parseSize, '9999999T', /must be 256M/],
  [parseSize, 'NaN', /must be 256M/],
  [parseMemory, '1', /memory 1: must be at least 64K, and 512K for a shell/],
  [parseMemory, 'much', /size much: must be 256M/],
  [parseDuration, '36501d', /at most 36500d/],
  [parseDuration, '99999999d', /at most 36500d/],
  [instant, '99999999d', /at most 36500d/],
  [parseDuration, '10', /duration 10: must be 500ms, 10s, 2m, 12h or 90d/],
  [parseDuration, '10S', /must be 500ms/],
  [parseDuration, '0s', /duration 0s: must be .*; at least 1ms, at most 36500d$/],
  [parseDuration, '99999999999d', /at most 36500d/],
  [parseDuration, '-1s', /must be 500ms/],
  [parseDuration, '1e3s', /must be 500ms/],
  [parseCpus, '0', /must be 1, 2 or 0\.5/],
  [parseCpus, '0.001', /at least 0\.01/],
  [parseCpus, '99999999999', /at most 1000000/],
  [parseCpus, '0.0001', /must be 1, 2 or 0\.5/],
  [parseCpus, 'two', /must be 1, 2 or 0\.5/],
  [parseCount, '1.5', /whole number/],
  [parsePort, '', /port "": must be 0 to 65535/],
  [parsePort, '65536', /must be 0 to 65535/],
  [parsePort, '1e2', /must be 0 to 65535/],
  [parseAfter, '-2', /record number -2: must be a whole number, 0 or more/],
  [parseRecordNumber, '-1', /record number -1: must be a whole number, 0 or more/],
  [parseRecordNumber, '1e3', /0 or more/],
  [parseRecordNumber, '', /0 or more/],
  [end, '2026-06-01', /2026-06-01 is over: it was 2026-06-01 00:00:00 UTC/],
  [past, 'yesterday', /time yesterday: must be 2h or 2h ago, 2027-01-31 or/],
  [past, '2 ago', /duration 2: must be 500ms/],
  [past, '2026-05-31 ago', /must be 2h or 2h ago/],
  [parseCount, '0', /number 0: must be a whole number; at least 1, at most 2147483647$/],
  [parseCount, '2147483648', /at most 2147483647/],
  [instant, '99999999d', /at most 36500d/],
  [instant, '2027-02-30', /date of the calendar/],
  [instant, 'tomorrow', /must be 90d/],
  [instant, '2027-01-31T12:30:15', /must be 90d/],
  [parsePair, 'A', /NAME=VALUE/],
  [parsePair, '=b', /NAME=VALUE/],
];

describe('quantities', () => {
  for (const [parse, text, value] of good)
    it(`${parse.name} reads ${JSON.stringify(text)}`, () => assert.deepEqual(parse(text), value));
  for (const [parse, text, message] of bad)
    it(`${parse.name} refuses ${JSON.stringify(text)}`, () =>
      assert.throws(
        () => parse(text),
        (error) => error instanceof UsageError && message.test(error.message),
      ));
});

const shown: readonly (readonly [text: string, expected: string])[] = [
  [formatBytes(0), '0 B'],
  [formatBytes(1023), '1023 B'],
  [formatBytes(1024), '1.0 KiB'],
  [formatBytes(10 * 1024 * 1024), '10 MiB'],
  [formatBytes(3.5 * 1024 ** 3), '3.5 GiB'],
  [formatMs(0.4), '0.4 ms'],
  [formatMs(12.3), '12 ms'],
  [formatMs(1234), '1.2 s'],
  [formatMs(61_000), '1 min 1 s'],
];
for (const [text, expected] of shown) it(`shows ${expected}`, () => assert.equal(text, expected));

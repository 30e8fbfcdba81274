import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MemoryBudget } from './memory-budget.ts';

test('who comes first is served first, and nobody is served beyond the budget', async () => {
  const budget = new MemoryBudget(100);
  const order: string[] = [];
  const take = (name: string, bytes: number) =>
    budget.reserve(bytes).then((giveBack) => {
      order.push(name);
      return giveBack;
    });
  const a = take('a', 60);
  const big = take('big', 80);
  const small = take('small', 10);
  const giveBackA = await a;
  assert.deepEqual([order, budget.hasRoom], [['a'], false]);
  giveBackA();
  const giveBackBig = await big;
  const giveBackSmall = await small;
  assert.deepEqual([order, budget.hasRoom], [['a', 'big', 'small'], true]);
  giveBackBig();
  giveBackSmall();
});

test('what is more than the whole budget gets the whole budget', async () => {
  const budget = new MemoryBudget(100);
  const giveBack = await budget.reserve(1000);
  assert.equal(budget.hasRoom, false);
  giveBack();
  assert.equal(budget.hasRoom, true);
});

/** @file Data of programs: opened once for equal configs of one program, recorded by name, closed by whoever opened it. */
import { expect, test, vi } from 'vitest';
import { build } from '../../src/hparams/index.js';
import { ProgramInputs } from '../../src/programs/programInputs.js';
import { tinyOptions, tokens } from './tinyJob.js';

const data = (name = 'held_out', batchSize = 2) => tokens(name, { numBatches: 2, batchSize });

test('equal configs of one program are one dataset; others, and inputs, are their own', async () => {
  const options = tinyOptions();
  const inputs = new ProgramInputs(options, build(options.task));
  const first = inputs.of('mine', data());
  expect(inputs.of('mine', data())).toBe(first);
  const input = build(data());
  const others = [
    inputs.of('other', data()),
    inputs.of('mine', data('held_out', 3)),
    inputs.of('mine', data('else')),
    inputs.of('mine', input),
    inputs.of('mine', build(data())),
  ];
  expect(new Set([first, ...others]).size).toBe(6);
  expect(inputs.of('mine', input)).toBe(others[3]);
  expect([first.name, first.settings.evalLoopNumBatches, others[3]!.name]).toEqual([
    'held_out',
    null,
    'held_out',
  ]);
  const opened = first.open();
  expect(first.open()).toBe(opened);
  expect(others[3]!.open()).toBe(input);
  const [closesOpened, closesInput] = [opened, input].map((each) => vi.spyOn(each, 'close'));
  await inputs.close();
  expect([closesOpened!.mock.calls.length, closesInput!.mock.calls.length]).toEqual([1, 0]);
});

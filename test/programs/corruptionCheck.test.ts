/** @file Steps that are taken twice: the same bits as once, and what is told of a flipped bit. */
import { expect, test } from 'vitest';
import { tinyTraining } from './tinyTraining.js';

/** A program that checks every second step, with averages of the parameters. */
const training = (intervalSteps: number | null) =>
  tinyTraining('onnx', 1, {
    emaDecay: 0.9,
    isHeld: true,
    edit: ({ train }) => {
      train.corruptionCheckIntervalSteps = intervalSteps;
    },
  });

test('a checked run has the bits and reports of one that is not', async () => {
  const [plain, checked] = await Promise.all([training(null), training(2)]);
  for (let step = 1; step <= 5; step++)
    expect(await checked.program.run()).toEqual(await plain.program.run());
  for (const each of [plain, checked]) await each.state.memory?.toHost();
  expect(checked.state.params).toEqual(plain.state.params);
  expect(checked.state.slots).toEqual(plain.state.slots);
});

test('a flipped bit is named by its tensor, element and both values, and leaves no state to save', async () => {
  const { program, state } = await training(2);
  await program.run();
  const { name, offset } = state.slotLayouts.v!.entries[1]!;
  const { call } = program.step;
  const run = call.run.bind(call);
  let runs = 0;
  call.run = async (count) => {
    const outputs = await run(count);
    await state.memory?.toHost();
    if (++runs === 2) new Uint32Array(state.slots.v!.buffer)[offset + 3]! ^= 1 << 20;
    return outputs;
  };
  await expect(program.run()).rejects.toThrow(
    new RegExp(
      `^Step 2 has two results from the same state and batch: slots/v/${name}\\[3\\] is \\S+ and \\S+ ` +
        `\\(0x\\w{8}, 0x\\w{8}\\), the first such element, in 1 of \\d+ tensors\\. This machine computes wrongly, or its ` +
        `memory is damaged; go on from the newest checkpoint on another one\\. Or the engine \\(onnx\\) adds in no fixed ` +
        'order: see --engine=native\\.$',
    ),
  );
  expect([program.isWhole, state.step]).toEqual([false, 1]);
});

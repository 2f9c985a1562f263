/** @file Selecting fields by tag: what is found, read, set and replaced. */
import { expect, test } from 'vitest';
import {
  build,
  Configurable,
  defineTag,
  derive,
  getTags,
  history,
  instance,
  select,
  tagged,
} from '../../../src/hparams/index.js';
import { messageOf } from '../support.js';
import { Attention, Block, HeadWidth, Layer, Linear, sample, Width } from './layers.js';

test('fields by tag, with the tags that descend from it', () => {
  const { root, inner, shared } = sample();
  expect([...select(root, { tag: HeadWidth })]).toEqual([8, 2, 8]);
  expect(select(root, { tag: Width }).get()).toEqual([8, undefined, 2, undefined, 8, undefined]);
  expect(select(inner, { tag: HeadWidth }).set(3)).toBe(2);
  expect(select(root, { tag: HeadWidth }).get()).toEqual([8, 3, 3]);
  expect(history(shared, 'numHeads').at(-1)!.where).toMatch(
    /^test\/hparams\/editing\/selectTags\.test\.ts:\d+$/,
  );
  expect(select(root, { tag: HeadWidth }).replace((old: number) => old * 2)).toBe(3);
  expect(select(root, { tag: HeadWidth }).get()).toEqual([16, 6, 6]);
  expect(messageOf(() => select(root, { tag: HeadWidth }).set(0))).toMatch(
    /Attention\.numHeads: expected a positive integer, got 0/,
  );
  expect(getTags(shared, 'numHeads')).toEqual([HeadWidth]);
  const Absent = defineTag('select.Absent', 'Is nowhere.');
  expect(messageOf(() => select(root, { tag: Absent }).set(0))).toMatch(
    /^select\(\) found no field tagged #select\.Absent to set\. There are #select\.HeadWidth, #select\.Width\. If that is fine, select with \{ allowEmpty: true \}\. \(at /,
  );
  expect(select(root, { tag: Absent }).get()).toEqual([]);
  expect(select(root, { tag: Absent, allowEmpty: true }).set(0)).toBe(0);
});

test('a tagged field set to a config shares it, replaced by one it gets a copy', () => {
  const Mixer = defineTag('select.Mixer', 'What mixes.');
  class Pair extends Configurable.with({
    left: tagged(instance(Layer, null).nullable().default(null), Mixer),
    right: tagged(instance(Layer, null).nullable().default(null), Mixer),
  }) {}
  const pair = Pair.config();
  const linear = Linear.config({ dims: 1 });
  select(pair, { tag: Mixer }).set(linear);
  expect([pair.left === linear, pair.right === linear]).toEqual([true, true]);
  select(pair, { tag: Mixer }).replace(linear);
  expect([pair.left === linear, pair.right === linear, pair.left === pair.right]).toEqual([
    false,
    false,
    false,
  ]);
});

test('a tagged value that is replaced by a value with the same tag ends with that value', () => {
  const { root, shared } = sample();
  expect(select(root, { tag: HeadWidth }).replace(HeadWidth.new(6))).toBe(3);
  expect([shared.numHeads, select(root, { tag: HeadWidth }).get()]).toEqual([6, [6, 6, 6]]);
  expect(getTags(shared, 'numHeads')).toEqual([HeadWidth]);
});

test('values with tags inside of lists are found and set by their tag', () => {
  const config = Attention.config({ scales: [1, Width.new(2), 3] });
  expect(select(config, { tag: Width }).get()).toEqual([2, 8, undefined]);
  select(config, { tag: Width }).replace((old: number | undefined) => (old ?? 0) + 5);
  expect(select(config, { tag: Width }).get()).toEqual([7, 13, 5]);
  expect(build(config).hp.scales).toEqual([1, 7, 3]);
});

test('values with tags inside of lists are checked by the schema of the list, and written all or not at all', () => {
  const config = Attention.config({ dims: 2, scales: [1, Width.new(2), 3] });
  const refused =
    /^Attention\.scales\[1\]: expected a number, got 'wide' \(at test\/hparams\/editing\/selectTags\.test\.ts:\d+\)$/;
  const tags = { tag: Width };
  expect(messageOf(() => select(config, tags).replace((old: number) => (old === 2 ? 'wide' : 5)))).toMatch(
    refused,
  );
  expect(messageOf(() => select(Block.config({ second: config }), tags).set('wide'))).toContain(
    "Attention.scales[1]: expected a number, got 'wide'",
  );
  const draftMessage = messageOf(() => derive(config, (draft) => void select(draft, tags).replace('wide')));
  expect(draftMessage).toMatch(refused);
  expect([select(config, tags).get(), history(config).length]).toEqual([[2, 8, 2], 2]);
  const derived = derive(config, (draft) => void select(draft, tags).set(4));
  expect([select(derived, tags).get(), select(config, tags).get()]).toEqual([
    [4, 4, 4],
    [2, 8, 2],
  ]);
  expect(history(derived, 'scales').map((entry) => entry.kind)).toEqual(['set', 'set']);
});

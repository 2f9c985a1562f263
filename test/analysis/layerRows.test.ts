/** @file Equal blocks that follow each other are one row. */
import { expect, test } from 'vitest';
import { layerRows } from '../../src/analysis/layerRows.js';
import type { LayerSummary } from '../../src/analysis/layerTable.js';

const layer = (path: string, values: Partial<LayerSummary> = {}): LayerSummary => ({
  path,
  type: 'Layer',
  depth: path === '' ? 0 : path.split('/').length,
  ownParameters: 0,
  parameters: 0,
  flops: 0,
  activationBytes: 0,
  ...values,
});

/** Rows as `  x_0 … x_2 *3`, indented by depth. */
const shown = (layers: readonly LayerSummary[], options?: Parameters<typeof layerRows>[1]): string[] =>
  layerRows(layers, options).map(
    ({ layer: { depth }, name, last, count }) =>
      `${'  '.repeat(depth)}${name}${last === undefined ? '' : ` … ${last} *${count}`}`,
  );

const blocks = (count: number, ff: (i: number) => Partial<LayerSummary> = () => ({})): LayerSummary[] => [
  layer(''),
  ...Array.from({ length: count }, (_, i) => [
    layer(`x_${i}`),
    layer(`x_${i}/norm`, { ownParameters: 8 }),
    layer(`x_${i}/ff`, ff(i)),
  ]).flat(),
  layer('softmax'),
];

test('blocks that are alike are one row, with their layers once', () => {
  expect(shown(blocks(12))).toEqual(['', '  x_0 … x_11 *12', '    norm', '    ff', '  softmax']);
  expect(shown(blocks(1))).toEqual(['', '  x_0', '    norm', '    ff', '  softmax']);
});

test.each(['type', 'ownParameters', 'parameters', 'flops', 'activationBytes', 'outputShape'] as const)(
  'blocks of which one has another %s inside are apart',
  (figure) => {
    const other = (i: number) => (i === 1 ? { [figure]: figure === 'type' ? 'Other' : [7] } : {});
    expect(shown(blocks(3, other)).filter((row) => row.startsWith('  x_'))).toEqual([
      '  x_0',
      '  x_1',
      '  x_2',
    ]);
  },
);

test('all: every layer', () => {
  expect(shown(blocks(2), { all: true })).toEqual([
    '',
    ...['  x_0', '    norm', '    ff', '  x_1', '    norm', '    ff'],
    '  softmax',
  ]);
});

test.each<[string, Partial<LayerSummary>]>([
  ['parameters', { parameters: 1 }],
  ['FLOPs', { flops: 1 }],
  ['activations', { activationBytes: 1 }],
  ['output shape', { outputShape: [3] }],
  ['class', { type: 'Other' }],
])('a block that differs in the %s of a layer of its own stands alone', (_, values) => {
  expect(shown(blocks(5, (i) => (i === 2 ? values : {})))).toEqual([
    '',
    ...['  x_0 … x_1 *2', '    norm', '    ff'],
    ...['  x_2', '    norm', '    ff'],
    ...['  x_3 … x_4 *2', '    norm', '    ff'],
    '  softmax',
  ]);
});

test('only what is numbered in order is folded', () => {
  const layers = ['', 'key', 'query', 'a_0', 'a_2', 'a_3', 'b_4'].map((path) => layer(path));
  expect(shown(layers)).toEqual(['', '  key', '  query', '  a_0', '  a_2 … a_3 *2', '  b_4']);
});

test('blocks in blocks', () => {
  const layers = [
    layer(''),
    ...[0, 1].flatMap((i) => [layer(`a_${i}`), layer(`a_${i}/b_0`), layer(`a_${i}/b_1`)]),
  ];
  expect(shown(layers)).toEqual(['', '  a_0 … a_1 *2', '    b_0 … b_1 *2']);
});

test('depth: what is deeper is left out, and no longer keeps blocks apart that differ there in names alone', () => {
  expect(shown(blocks(3), { maxDepth: 1 })).toEqual(['', '  x_0 … x_2 *3', '  softmax']);
});

test('a layer that stands elsewhere than its parent has its whole path', () => {
  const layers = [
    layer(''),
    layer('lm'),
    layer('tied/cld', { depth: 2 }),
    layer('tied/cld/linear', { depth: 3 }),
  ];
  expect(shown(layers)).toEqual(['', '  lm', '    tied/cld', '      linear']);
});

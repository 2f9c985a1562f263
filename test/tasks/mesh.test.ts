/** @file What a device of a mesh holds of batches, variables and activations, and meshes that do not fit. */
import { expect, test } from 'vitest';
import { build } from '../../src/hparams/index.js';
import { Mesh } from '../../src/tasks/index.js';

const variable = (path: string, ...shape: number[]) => ({ path, shape, repeatPrefix: [] }) as never;
const shapes = (mesh: Mesh, ...variables: never[]) =>
  mesh.localVariables(variables).map(({ shape, isPadded }) => (isPadded ? [...shape, 'padded'] : shape));

function errorOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error('nothing was thrown');
}

const grid = { iciMeshShape: [1, 4, 2], dcnMeshShape: [2, 1, 1] };

test('devices along axes are those of a slice times the slices', () => {
  const mesh = build(Mesh.config(grid));
  expect(mesh.ways()).toBe(16);
  expect(mesh.ways(['replica', 'data'])).toBe(8);
  expect(build(Mesh.config()).ways()).toBe(1);
});

test('rows are split over replica and data', () => {
  const mesh = build(Mesh.config(grid));
  expect(mesh.localRows(24)).toBe(3);
  expect(() => mesh.localRows(12)).toThrow(
    "A batch of 12 rows can't be split evenly over 8 devices (replica 2, data 4): change the batch size or the mesh.",
  );
});

test('a variable is split as the pattern of its whole path says, others are whole', () => {
  const weightSplitDimsMapping = {
    'lm/(a|b)/w': ['data', 'mdl'],
    '.*/table': [['data', 'mdl'], null],
    'lm/c': [null, 'mdl'],
  };
  const mesh = build(Mesh.config({ ...grid, weightSplitDimsMapping }));
  const [a, b] = [variable('lm/a/w', 64, 32), variable('lm/b/w', 8, 2)];
  const [table, c, other] = [
    variable('lm/table', 10, 3),
    variable('lm/c', 3, 4),
    variable('lm/a/w2', 64, 32),
  ];
  // Ten rows on eight devices: two on each, six of all sixteen padded.
  expect(shapes(mesh, a, b, table, c, other)).toEqual([
    [16, 16],
    [2, 1],
    [2, 3, 'padded'],
    [3, 2],
    [64, 32],
  ]);
});

test('activations are split as far as the annotation of their layer says', () => {
  const rows = ['replica', 'data'];
  const activationSplitDimsMapping = { 'lm/ff(/.*)?': [rows, null, 'mdl'], 'lm/all': [null, 'mdl'] };
  const mesh = build(Mesh.config({ ...grid, activationSplitDimsMapping }));
  expect(mesh.parts('lm/ff')).toBe(2);
  expect(mesh.parts('lm/ff/linear')).toBe(2);
  // Rows are split, all else is whole.
  expect(mesh.parts('lm/norm')).toBe(1);
  // Rows are not split, so each device holds eight times its own, in two parts.
  expect(mesh.parts('lm/all')).toBe(2 / 8);
});

test.each([
  [
    { 'lm/w': ['data'] },
    "task.mesh.weightSplitDimsMapping does not fit the model: 'lm/w' has 1 dimensions, and lm/w is [2,6].",
  ],
  [
    { 'lm/w': ['data', null] },
    "task.mesh.weightSplitDimsMapping does not fit the model: dimension 0 of lm/w [2,6] can't be split over 4 devices (data 4).",
  ],
  [
    { 'lm/w': [null, null], 'lm/.*': [null, null] },
    "task.mesh.weightSplitDimsMapping does not fit the model: 'lm/w' and 'lm/.*' both match lm/w.",
  ],
  [
    { 'lm/v': [null, null] },
    "task.mesh.weightSplitDimsMapping does not fit the model: 'lm/v' matches no variable of the model.",
  ],
])('annotations that do not fit: %j', (weightSplitDimsMapping, message) => {
  const mesh = build(Mesh.config({ ...grid, weightSplitDimsMapping }));
  expect(() => mesh.localVariables([variable('lm/w', 2, 6)])).toThrow(message);
});

test('axes are those that the mesh has, and split one dimension', () => {
  const weightSplitDimsMapping = { w: ['model', null], v: ['data', ['mdl', 'data']] };
  const config = Mesh.config({ iciMeshShape: [1, 4], inputsSplitMapping: ['batch'], weightSplitDimsMapping });
  const lines = [
    'The config has 4 problems:',
    '  iciMeshShape (Mesh): expected a size for each of the axes replica, data, mdl; iciMeshShape is [1, 4] (at ',
    "  inputsSplitMapping (Mesh): expected axes of replica, data, mdl, got 'batch'; inputsSplitMapping is ['batch'] (at ",
    "  weightSplitDimsMapping (Mesh): 'w': expected axes of replica, data, mdl, got 'model'; weightSplitDimsMapping is {",
    "  weightSplitDimsMapping (Mesh): 'v': the axis 'data' can split one dimension only; weightSplitDimsMapping is {",
  ];
  const told = errorOf(() => build(config)).split('\n');
  expect(told.map((line, i) => line.slice(0, lines[i]?.length))).toEqual(lines);
});

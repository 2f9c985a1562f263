/** @file Planted changes beside what differs by itself: the time, draws, and counters of modules. */
import { config, experiment, lib, type Plant, part } from './plantedProject.js';

const mechanism = 'varying';
const timed = 'task.train.randomSeed = Date.now() % 1e9;';
const drawn = 'task.train.randomSeed = Math.floor(1e6 * Math.random());';
const comment = part('/** A slow descent. */', '/** A steep descent. */');
const decoder = 'Own.config({ seqlen: 12 })';
const chanceRows = {
  'lib/NAME/parts.ts': lib.replace(
    'super.fillRow(row,',
    'super.fillRow(row + Math.floor(1e6 * Math.random()),',
  ),
};
const chanceValues = { 'lib/NAME/parts.ts': lib.replace('0.1 * (i + 1)', '0.1 * (i + Math.random())') };
const faster = config('learningRate: 0.01', 'learningRate: 0.02');

export const plantedVarying: readonly Plant[] = [
  {
    name: 'seedOfTime',
    mechanism,
    has: timed,
    edits: comment,
    ...{ truth: 'varies', status: 'unchanged', says: 'seedOfTime.Planted' },
  },
  {
    name: 'fieldBesideTime',
    mechanism,
    has: timed,
    edits: faster,
    ...{ truth: 'varies', status: 'changed', says: 'learningRate : 0.01 → 0.02' },
  },
  {
    name: 'factorBesideTime',
    mechanism,
    has: timed,
    edits: part('0.01 * scale', '0.02 * scale'),
    ...{ truth: 'varies', status: 'changed', says: 'the training step computes different values' },
  },
  {
    name: 'otherDraw',
    mechanism,
    has: drawn,
    edits: config('1e6', '1e7'),
    ...{ truth: 'varies', status: 'uncompared', says: 'task.train.randomSeed differs by itself' },
  },
  {
    name: 'drawBegins',
    mechanism,
    has: 'task.train.randomSeed = 7;',
    edits: config('randomSeed = 7', 'randomSeed = Date.now() % 1e9'),
    ...{ truth: 'differs', status: 'changed', says: 'Another value at each evaluation now' },
  },
  {
    name: 'rowsByChance',
    mechanism,
    decoder,
    files: chanceRows,
    edits: comment,
    ...{ truth: 'varies', status: 'unchanged', says: 'rowsByChance.Planted' },
  },
  {
    name: 'fieldBesideChance',
    mechanism,
    decoder,
    files: chanceRows,
    edits: config('learningRate: 0.1', 'learningRate: 0.2'),
    ...{ truth: 'varies', status: 'changed', says: 'learningRate : 0.1 → 0.2' },
  },
  {
    name: 'valuesByChance',
    mechanism,
    has: 'task.model.paramsInit = Ramp.config();',
    files: chanceValues,
    edits: comment,
    ...{ truth: 'varies', status: 'unchanged', says: 'valuesByChance.Planted' },
  },
  {
    name: 'updateBesideChance',
    mechanism,
    has: 'task.model.paramsInit = Ramp.config();',
    files: chanceValues,
    edits: part('default(0.5)', 'default(0.25)'),
    ...{ truth: 'varies', status: 'changed', says: 'share' },
  },
  {
    name: 'counter',
    mechanism,
    files: {
      'experiments/NAME.ts': experiment('NAME', 'task.train.randomSeed = next();').replace(
        'import',
        "import { next } from '../lib/NAME/numbers.js';\nimport",
      ),
      'lib/NAME/numbers.ts':
        'export const scale = 1;\nexport const helper = (step: number): number => 1 / (1 + step);\nlet made = 0;\n/** A number. */\nexport const next = (): number => made++;\n',
    },
    edits: { 'lib/NAME/numbers.ts': [['/** A number. */', '/** The next number. */']] },
    ...{ truth: 'same', status: 'unchanged' },
  },
];

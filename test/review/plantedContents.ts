/** @file Planted changes of files that experiments read, by whatever way, and of some that they do not. */
import { config, csv, experiment, type Plant } from './plantedProject.js';

/** An experiment whose module reads before it, and whose task says more. */
const reading = (before: string, more: string): Record<string, string> => ({
  'experiments/NAME.ts': `import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
${experiment('NAME', more).replace('\nexport class', `\n${before}\nvoid [existsSync, readdirSync, readFileSync, fileURLToPath];\n\nexport class`)}`,
});

const mechanism = 'contents';
const rate = 'optimizer.learningRate = rate;';
const comment = config('export class Planted', '/** It reads. */\nexport class Planted');

export const plantedContents: readonly Plant[] = [
  {
    name: 'label77',
    mechanism,
    files: {
      ...reading(
        "const labels = JSON.parse(readFileSync(new URL('../data/NAME.json', import.meta.url), 'utf8'));",
        'task.train.randomSeed = labels[3];',
      ),
      'data/NAME.json': JSON.stringify(Array.from({ length: 100 }, (_, i) => i)),
    },
    edits: { 'data/NAME.json': [[',77,', ',777,']] },
    ...{ truth: 'same', status: 'changed', says: 'data/label77.json differs' },
  },
  {
    name: 'readNumber',
    mechanism,
    files: {
      ...reading("const { rate } = JSON.parse(readFileSync('data/NAME.json', 'utf8'));", rate),
      'data/NAME.json': '{ "rate": 0.01 }\n',
    },
    edits: { 'data/NAME.json': [['0.01', '0.03']] },
    ...{ truth: 'differs', status: 'changed', says: 'learningRate : 0.01 → 0.03' },
  },
  {
    name: 'heldOutRow',
    mechanism,
    files: {
      'experiments/NAME.ts': experiment('NAME').replace(
        "Points.config({ ...csv, name: 'held_out'",
        "Points.config({ ...csv, source: source('data/NAME.held.csv'), name: 'held_out'",
      ),
      'data/NAME.held.csv': csv,
    },
    edits: { 'data/NAME.held.csv': [['2,6,1\n', '2,6,1.5\n']] },
    ...{ truth: 'differs', status: 'changed', says: "'held_out'" },
  },
  {
    name: 'lastRow',
    mechanism,
    edits: { 'data/NAME.csv': [['3,6,1.5', '3,6,2.5']] },
    ...{ truth: 'differs', status: 'changed', says: 'price 1.5, weights 1 → sizes 3 6, price 2.5' },
  },
  {
    name: 'environment',
    mechanism,
    files: {
      ...reading(
        "process.loadEnvFile(fileURLToPath(new URL('../data/NAME.env', import.meta.url)));\nconst rate = Number(process.env.NAME_RATE);",
        rate,
      ),
      'data/NAME.env': 'NAME_RATE=0.01\n',
    },
    edits: { 'data/NAME.env': [['0.01', '0.03']] },
    ...{ truth: 'differs', status: 'changed', says: 'learningRate : 0.01 → 0.03' },
  },
  {
    name: 'besideModule',
    mechanism,
    files: {
      'experiments/NAME.ts': experiment('NAME')
        .replace(
          "source('data/NAME.csv')",
          "source(fileURLToPath(new URL('../data/NAME.csv', import.meta.url)))",
        )
        .replace('import', "import { fileURLToPath } from 'node:url';\nimport"),
    },
    edits: { 'data/NAME.csv': [['2,6,1\n', '2,6,1.5\n']] },
    ...{ truth: 'differs', status: 'changed', says: 'the input gives different rows' },
  },
  {
    name: 'absolutePath',
    mechanism,
    files: {
      'experiments/NAME.ts': experiment('NAME')
        .replace(
          "source('data/NAME.csv')",
          "source(fileURLToPath(new URL('../data/NAME.csv', import.meta.url)))",
        )
        .replace('import', "import { fileURLToPath } from 'node:url';\nimport"),
    },
    edits: comment,
    ...{ truth: 'same', status: 'unchanged' },
  },
  {
    name: 'unreadFile',
    mechanism,
    files: { 'data/NAME.txt': 'one\n' },
    edits: { 'data/NAME.txt': [['one', 'two']] },
    ...{ truth: 'same', status: 'unchanged' },
  },
  {
    name: 'missingFlag',
    mechanism,
    files: {
      ...reading("const rate = existsSync('data/NAME.flag') ? 0.01 : 0.03;", rate),
      'data/NAME.flag': '',
    },
    edits: { 'data/NAME.flag': null },
    ...{ truth: 'differs', status: 'changed', says: 'learningRate : 0.01 → 0.03' },
  },
  {
    name: 'listedFolder',
    mechanism,
    files: {
      ...reading("const rate = 0.01 * readdirSync('data/NAME').length;", rate),
      'data/NAME/a': 'a',
      'data/NAME/b': 'b',
    },
    edits: { 'data/NAME/b': null },
    ...{ truth: 'differs', status: 'changed', says: 'learningRate : 0.02 → 0.01' },
  },
  {
    name: 'goneNumber',
    mechanism,
    files: {
      ...reading("const { rate } = JSON.parse(readFileSync('data/NAME.json', 'utf8'));", rate),
      'data/NAME.json': '{ "rate": 0.01 }\n',
    },
    edits: { 'data/NAME.json': null },
    ...{ truth: 'fails', status: 'broken', says: 'data/goneNumber.json' },
  },
];

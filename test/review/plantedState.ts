/** @file Planted changes of code that changes what other modules see, and of data that no record of reads tells of. */
import { config, experiment, lib, type Plant } from './plantedProject.js';

/** An experiment whose module begins with other statements. */
const beginning = (before: string, more = ''): Record<string, string> => ({
  'experiments/NAME.ts': experiment('NAME', more).replace('\nexport class', `\n${before}\n\nexport class`),
});

const patch = `import { tf } from 'luthier';
import { Bias } from 'luthier/layers';

const { fprop } = Bias.prototype;
/** All biases of the process. */
export function install(): void {
  Bias.prototype.fprop = function (this: any, x: any): any {
    return tf.mul(2, fprop.call(this, x)) as any;
  };
}
`;
const rate = 'optimizer.learningRate = (globalThis as any).RATE ?? 0.03;';
const rowOf = (i: number): number[] => [i % 5, i % 7, i % 3];
/** The text of many rows, to be told from those before. */
const rowsFrom = (first: number): string =>
  JSON.stringify(Array.from({ length: 50 }, (_, i) => rowOf(first + i))).slice(1, -1);
const rows = JSON.stringify(Array.from({ length: 400 }, (_, i) => rowOf(i)));

/** An own input that a process of another program reads for. */
const read = (program: string) => `import { execFileSync } from 'node:child_process';
import { RowInput } from 'luthier/inputs';

export class Read extends RowInput {
  #rows?: number[][];
  protected override get numRows(): number {
    return 400;
  }
  protected override identity() {
    return {};
  }
  protected override emptyBatch(): any {
    const array = (...shape: number[]) => ({ shape, dtype: 'float32', data: new Float32Array(shape.reduce((a, b) => a * b, 1)) });
    const { batchSize } = this.hp;
    return { sizes: array(batchSize, 2), price: array(batchSize), weights: array(batchSize) };
  }
  protected override fillRow(row: number, batch: any, b: number): void {
    this.#rows ??= JSON.parse(execFileSync(${program}, { encoding: 'utf8' })) as number[][];
    const [width, height, price] = this.#rows[row]!;
    batch.sizes.data.set([width, height], 2 * b);
    batch.price.data[b] = price;
    batch.weights.data[b] = 1;
  }
}
`;
const readBy = (program: string): Record<string, string> => ({
  'lib/NAME/read.ts': read(program),
  'data/NAME.json': rows,
  'experiments/NAME.ts': experiment('NAME')
    .replace('import', "import { Read } from '../lib/NAME/read.js';\nimport")
    .replace(
      "Points.config({ ...csv, isTraining: true, split: 'all' } as any)",
      'Read.config({ batchSize: 8, isTraining: true })',
    ),
});

/** A factor of the loss by an expression, and what it needs. */
const factor = (expression: string, needs = ''): Record<string, string> => ({
  'lib/NAME/parts.ts': lib
    .replace('export class Line', `${needs}\nexport class Line`)
    .replace('0.01 * scale', `0.01 * ${expression}`),
});
const other = {
  truth: 'differs',
  status: 'changed',
  says: 'the training step computes different values',
} as const;
const replaced = (old: string, text: string) => ({ 'lib/NAME/parts.ts': [[old, text]] as const });

export const plantedState: readonly Plant[] = [
  {
    name: 'patchedLibrary',
    mechanism: 'state',
    isApart: true,
    files: {
      'lib/NAME/patch.ts': patch,
      'experiments/NAME.ts': experiment('NAME', 'install();').replace(
        'import',
        "import { install } from '../lib/NAME/patch.js';\nimport",
      ),
    },
    edits: { 'lib/NAME/patch.ts': [['tf.mul(2,', 'tf.mul(3,']] },
    ...other,
  },
  {
    name: 'rateOfProcess',
    mechanism: 'state',
    isApart: true,
    files: beginning('(globalThis as any).RATE ??= 0.01;', rate),
    edits: config('??= 0.01', '??= 0.02'),
    ...{ truth: 'differs', status: 'changed', says: 'learningRate : 0.01 → 0.02' },
  },
  {
    name: 'readsRate',
    mechanism: 'state',
    isApart: true,
    files: beginning('/** One. */', rate),
    edits: config('/** One. */', '/** Two. */'),
    ...{ truth: 'same', status: 'unchanged' },
  },
  {
    name: 'rowOfProgram',
    mechanism: 'state',
    files: readBy("'cat', ['data/NAME.json']"),
    // A row that no sample has.
    edits: { 'data/NAME.json': [[rowsFrom(82), rowsFrom(82).replace('],', '1],')]] },
    ...{
      truth: 'differs',
      status: 'uncompared',
      says: 'lib/rowOfProgram/read.ts starts a process or thread, whose reads are not seen: data/',
    },
  },
  {
    name: 'defaultParameter',
    mechanism: 'numerics',
    files: factor('factor()', 'function factor(of = 2): number {\n  return of;\n}'),
    edits: replaced('of = 2', 'of = 3'),
    ...other,
  },
  {
    name: 'getter',
    mechanism: 'numerics',
    files: factor('new By().by', 'class By {\n  get by(): number {\n    return 2;\n  }\n}'),
    edits: replaced('return 2;', 'return 3;'),
    ...other,
  },
  {
    name: 'enumOrder',
    mechanism: 'numerics',
    files: factor('[1, 2][Kind.low]!', 'enum Kind {\n  low,\n  high,\n}'),
    edits: replaced('  low,\n  high,', '  high,\n  low,'),
    ...other,
  },
  {
    name: 'madeClass',
    mechanism: 'numerics',
    files: factor(
      'new Made().by',
      'const make = (by: number) => class {\n  readonly by = by;\n};\nconst Made = make(2);',
    ),
    edits: replaced('make(2)', 'make(3)'),
    ...other,
  },
  {
    name: 'decorator',
    mechanism: 'numerics',
    files: factor(
      'new Dressed().by',
      'const scaled = (cls: any, _context: unknown): any =>\n  class extends cls {\n    by = 2;\n  };\n@scaled\nclass Dressed {\n  by = 1;\n}',
    ),
    edits: replaced('by = 2', 'by = 3'),
    ...other,
  },
  {
    name: 'staticBlock',
    mechanism: 'numerics',
    files: factor('By.by', 'class By {\n  static by = 1;\n  static {\n    By.by = 2;\n  }\n}'),
    edits: replaced('By.by = 2', 'By.by = 3'),
    ...other,
  },
  {
    name: 'lastDigit',
    mechanism: 'numerics',
    edits: config('learningRate: 0.01', 'learningRate: 0.010000000000000002'),
    ...{ truth: 'differs', status: 'changed', says: 'learningRate : 0.01 → 0.010000000000000002' },
  },
  {
    name: 'commentedJson',
    mechanism: 'contents',
    files: {
      ...beginning(
        "import { readFileSync } from 'node:fs';\nconst { rate } = JSON.parse(readFileSync('data/NAME.jsonc', 'utf8').replace(/\\/\\/.*/g, ''));",
        'optimizer.learningRate = rate;',
      ),
      'data/NAME.jsonc': '{\n  // The rate.\n  "rate": 0.01\n}\n',
    },
    edits: { 'data/NAME.jsonc': [['The rate', 'The learning rate']] },
    ...{ truth: 'same', status: 'changed', says: 'config same, data/commentedJson.jsonc differs' },
  },
];

/** @file Times the operations on configs; prints one line of JSON for each, as peers/fiddle_configs.py does. */
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { Small } from '../experiments/lm.js';
import {
  applyDiff,
  build,
  buildDiff,
  type Config,
  Configurable,
  codegen,
  deepCopy,
  derive,
  fromJSON,
  instance,
  isEqual,
  iterate,
  print,
  select,
  toJSON,
} from '../src/index.js';
import { median } from './results.js';

const [budgetMs = 500, sizesText = '100,1000,10000'] = [
  Number(process.argv[2] ?? 500),
  process.argv[3] ?? '100,1000,10000',
];

class Node extends Configurable.with({
  a: z.number().default(1),
  b: z.number().default(2),
  c: z.string().default('x'),
  child: z
    .lazy((): z.ZodType => instance(Node, null))
    .nullable()
    .default(null),
  kids: z.array(z.lazy((): z.ZodType => instance(Node, null))).default([]),
}) {}
type NodeConfig = Config<Node>;

const shapes: Record<string, (size: number) => NodeConfig> = {
  wide: (size) =>
    Node.config({
      kids: Array.from({ length: size }, (_, i) => Node.config({ a: i, b: i * 0.5, c: String(i) })),
    }),
  chain: (size) => {
    let root = Node.config();
    for (let i = 1; i < size; i++) root = Node.config({ a: i, child: root });
    return root;
  },
  diamond: (size) => {
    let root = Node.config();
    for (let i = 1; i < size; i++) root = Node.config({ a: i, child: root, kids: [root] });
    return root;
  },
};

function report(shape: string, size: number, operation: string, ms: number): void {
  process.stdout.write(`${JSON.stringify({ shape, size, operation, ms })}\n`);
}

/**
 * Runs `action`, which does its operation `repeats` times, for the budget, the first time apart (it compiles); reports the
 * median of the others.
 */
function measure(shape: string, size: number, operation: string, action: () => unknown, repeats = 1): void {
  const times: number[] = [];
  for (const end = performance.now() + budgetMs; times.length < 2 || performance.now() < end; ) {
    const start = performance.now();
    action();
    times.push(performance.now() - start);
  }
  report(shape, size, operation, median(times.slice(1)) / repeats);
}

function operationsOn(shape: string, size: number): void {
  const make = () => shapes[shape]!(size);
  const [first, second, changed] = [make(), make(), make()];
  const edited = shape === 'wide' ? (changed.kids as NodeConfig[])[size >> 1]! : changed;
  edited.a = -1;
  const text = JSON.stringify(toJSON(first));
  const diff = buildDiff(first, changed);
  const operations: Record<string, () => unknown> = {
    create: make,
    build: () => build(first),
    equal: () => isEqual(first, second),
    'deep copy': () => deepCopy(first),
    print: () => print(first),
    'to JSON': () => JSON.stringify(toJSON(first)),
    'from JSON': () => fromJSON(text, { classes: [Node] }),
    diff: () => buildDiff(first, changed),
    'apply diff': () => applyDiff(diff, first),
    derive: () => derive(first, (draft) => void (draft.a = -2)),
    codegen: () => codegen(first, { modules: { './configOperations.js': { Node } } }),
    'select and set': () => select(second, Node).set({ b: 3 }),
  };
  for (const [operation, action] of Object.entries(operations)) measure(shape, size, operation, action);
}

/** Creating a config, and setting each of its 20 fields; and the writes that the peer's loop makes. */
function writes(): void {
  const names = Array.from({ length: 20 }, (_, i) => `field${i}`);
  const fields = Object.fromEntries(names.map((name) => [name, z.int().default(0)]));
  class Twenty extends Configurable.with(fields) {}
  const createAndSet = () => {
    const config = Twenty.config() as Record<string, number>;
    for (const name of names) config[name] = 1;
  };
  const many = 1000;
  const createMany = () => {
    for (let i = 0; i < many; i++) createAndSet();
  };
  measure('writes', 20, 'create, set all fields', createMany, many);
  const node = Node.config();
  measure('writes', 1000, 'set', () => {
    for (let i = 0; i < 1000; i++) node.a = i;
  });
}

process.stdout.write(
  `${JSON.stringify({ version: `Luthier ${JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')).version}, Node ${process.versions.node}` })}\n`,
);
writes();
const task = () => new Small().task();
measure('lm.Small', iterate(task(), { defaults: true }).length, 'configure and build the task', () =>
  build(task()),
);
for (const size of sizesText.split(',').map(Number)) operationsOn('wide', size);
for (const size of sizesText.split(',').map(Number)) operationsOn('chain', size);
for (const size of [10, 60]) operationsOn('diamond', size);

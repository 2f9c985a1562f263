/**
 * @file Times the operations on configs; prints one line of JSON for each, like peers/fiddle_configs.py. Requires
 * node's --expose-gc. Arguments: milliseconds per operation, sizes, and the total number of configs: with 100000, size
 * 1,000 is measured on 100 graphs, so that small graphs profit from the processor's caches no more than large ones. The
 * results of all 100 are kept until the last is made; otherwise those of small graphs would die before garbage
 * collection, which copies those of large ones.
 */
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { Small } from '../experiments/lm.js';
import { iterate } from '../src/hparams/index.js';
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
  print,
  select,
  toJSON,
} from '../src/index.js';
import { median } from './results.js';

const [budgetMs, sizes, inAll] = [
  Number(process.argv[2] ?? 500),
  (process.argv[3] ?? '100,1000,10000').split(',').map(Number),
  Number(process.argv[4] ?? 1),
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
 * Repeats `action`, which performs its operation `repeats` times, for the budget; reports the median without the first
 * call, which includes compilation. Collects earlier garbage first.
 */
function measure(shape: string, size: number, operation: string, action: () => unknown, repeats = 1): void {
  gc!();
  const times: number[] = [];
  for (const end = performance.now() + budgetMs; times.length < 4 || performance.now() < end; ) {
    const start = performance.now();
    action();
    times.push(performance.now() - start);
  }
  report(shape, size, operation, median(times.slice(1)) / repeats);
}

/** Every operation makes its own input: a full heap would slow down later ones. */
const operations: Readonly<Record<string, (make: () => NodeConfig) => () => unknown>> = {
  create: (make) => make,
  build: (make) => on(make(), build),
  equal: (make) => {
    const [first, second] = [make(), make()];
    return () => isEqual(first, second);
  },
  'deep copy': (make) => on(make(), deepCopy),
  print: (make) => on(make(), print),
  'to JSON': (make) => on(make(), (config) => JSON.stringify(toJSON(config))),
  'from JSON': (make) => on(JSON.stringify(toJSON(make())), (text) => fromJSON(text, { classes: [Node] })),
  diff: (make) => {
    const [first, second] = [make(), edited(make())];
    return () => buildDiff(first, second);
  },
  'apply diff': (make) => {
    const first = make();
    const diff = buildDiff(first, edited(make()));
    return () => applyDiff(diff, first);
  },
  derive: (make) => on(make(), (config) => derive(config, (draft) => void (draft.a = -2))),
  codegen: (make) =>
    on(make(), (config) => codegen(config, { modules: { './configOperations.js': { Node } } })),
  'select and set': (make) => on(make(), (config) => select(config, Node).set({ b: 3 })),
};

function on<T>(input: T, operation: (input: T) => unknown): () => unknown {
  return () => operation(input);
}

/** Changes one config in the middle of a list, or else the outermost. */
function edited(root: NodeConfig): NodeConfig {
  const kids = root.kids as NodeConfig[];
  const target = kids.length > 1 ? kids[kids.length >> 1]! : root;
  target.a = -1;
  return root;
}

function operationsOn(shape: string, size: number): void {
  const count = Math.max(1, Math.round(inAll / size));
  for (const [operation, prepare] of Object.entries(operations)) {
    const actions = Array.from({ length: count }, () => prepare(() => shapes[shape]!(size)));
    const act = () => actions.map((action) => action());
    measure(shape, size, operation, act, count);
  }
}

/** Writes to 20 fields by name, as experiments do. */
function setAll(config: Record<`field${number}`, number>): void {
  config.field0 = 1;
  config.field1 = 1;
  config.field2 = 1;
  config.field3 = 1;
  config.field4 = 1;
  config.field5 = 1;
  config.field6 = 1;
  config.field7 = 1;
  config.field8 = 1;
  config.field9 = 1;
  config.field10 = 1;
  config.field11 = 1;
  config.field12 = 1;
  config.field13 = 1;
  config.field14 = 1;
  config.field15 = 1;
  config.field16 = 1;
  config.field17 = 1;
  config.field18 = 1;
  config.field19 = 1;
}

/** Creates a config and sets each of its 20 fields, by literal names or in a loop. */
function writes(): void {
  const names = Array.from({ length: 20 }, (_, i) => `field${i}`);
  const fields = Object.fromEntries(names.map((name) => [name, z.int().default(0)]));
  class Twenty extends Configurable.with(fields) {}
  const setInLoop = (config: Record<string, number>) => {
    for (const name of names) config[name] = 1;
  };
  const many = 1000;
  for (const [operation, set] of Object.entries({
    'create, set all fields': setAll,
    '… in a loop': setInLoop,
  })) {
    const createMany = () => {
      for (let i = 0; i < many; i++) set(Twenty.config() as Record<string, number>);
    };
    measure('writes', 20, operation, createMany, many);
  }
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
for (const shape of ['wide', 'chain']) for (const size of sizes) operationsOn(shape, size);
for (const size of [10, 60]) operationsOn('diamond', size);

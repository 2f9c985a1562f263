/** @file The guide's table of special values: each engine gives what it says, and the page says what the table has. */
import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { compile, type Engine, type HostTensor, type Tree } from '../../../src/compiler/index.js';
import { optimize } from '../../../src/compiler/passes/index.js';
import { compositeOf, opNames, ruleOf } from '../../../src/compiler/rules/index.js';
import { traceProgram } from '../../../src/compiler/trace/tracedProgram.js';
import { engines } from '../engines.js';
import { host, leavesOf, repeatedly, tf } from '../support.js';
import { numericsPage } from './page.js';
import { SECTIONS, type SpecialRow, type Values } from './table.js';

const rows = SECTIONS.flatMap((section) => section.rows);

/** Each operand of a row, over all of its values. */
const inputsOf = ({ dtype, values }: SpecialRow): HostTensor[] =>
  values[0]![0].map((_, i) =>
    host(
      [values.length],
      values.map(([operands]) => operands[i]!),
      dtype,
    ),
  );

/** Subnormal results may be 0. */
const SUBNORMAL = 2 ** -126;

function agrees(got: number, want: number): boolean {
  if (Object.is(want, -0)) return Object.is(got, -0);
  if (got === want || (Number.isNaN(got) && Number.isNaN(want))) return true;
  return Math.abs(got - want) <= 1e-6 * Math.abs(want) + SUBNORMAL;
}

/** What is not as the table says. */
const differences = (
  { call, dtype, values }: SpecialRow,
  { data }: HostTensor,
  expected: (v: Values) => number,
) =>
  values.flatMap((value, i) => {
    const want = expected(value);
    const [got] = [data[i]!];
    return agrees(got, want) ? [] : [`${call} of ${dtype} ${value[0].join(', ')}: ${got}, expected ${want}`];
  });

/**
 * Whether an operation computes numbers of its own. Those without FLOPs move values or fill with them; draws have a key,
 * gradients are differentiated results; composites consist of operations that have rows.
 */
function computes(op: string): boolean {
  const { flops, inputs } = ruleOf(op);
  const isDrawn = inputs.includes('key');
  const isGradient = inputs.includes('dy');
  return flops !== undefined && !isDrawn && !isGradient && compositeOf(op) === undefined;
}

test('the table has a row for every operation that computes', () => {
  const listed = rows.flatMap((row) => {
    const { nodes } = traceProgram(
      ((tensors: any[]) => row.f(...tensors)) as any,
      inputsOf(row) as any,
    ).graph;
    // A row also stands for the kernel of its name, which tf.logSoftmax spells out.
    const [name] = row.call.split('(') as [string];
    return [...nodes.map(({ op }) => op), `${name.charAt(0).toUpperCase()}${name.slice(1)}`];
  });
  expect(opNames().filter((op) => computes(op) && !listed.includes(op))).toEqual([]);
});

/** All rows in one program, which is compiled once. */
async function runAll(engine: Engine): Promise<HostTensor[]> {
  const inputs = rows.map(inputsOf);
  const program = (lists: any[][]) => rows.map(({ f }, i) => f(...lists[i]!));
  const executable = await compile(program as any, inputs as any, { engine, numThreads: 1 });
  const results = leavesOf((await repeatedly(executable, inputs as any)) as Tree<HostTensor>);
  await executable.dispose();
  return results;
}

describe.each(engines)('%s', (_, { engine, available }) => {
  test.skipIf(!available)('gives what the table says', async () => {
    const results = await runAll(engine);
    expect(rows.flatMap((row, i) => differences(row, results[i]!, ([, result]) => result))).toEqual([]);
  });
});

test('constant folding agrees with the table', async () => {
  const constants = ({ f, ...row }: SpecialRow) =>
    f(...inputsOf({ f, ...row }).map(({ data, shape, dtype }) => tf.tensor(data as any, [...shape], dtype)));
  const { graph } = traceProgram(() => rows.map(constants), []);
  const folded = optimize(graph).outputs;
  const results = rows.flatMap((row, i) => {
    const { data, shape, dtype } = folded[i]!;
    return data === undefined ? [] : differences(row, { data, shape, dtype }, ([, result]) => result);
  });
  expect(results).toEqual([]);
  expect(folded.filter(({ data }) => data !== undefined).length).toBeGreaterThan(30);
});

test('tfjs agrees with the table, except where the table notes a difference', async () => {
  const results = await runAll('eager');
  expect(
    rows.flatMap((row, i) => differences(row, results[i]!, ([, result, tfjs]) => tfjs ?? result)),
  ).toEqual([]);
});

test('the page has the table', () => {
  const file = new URL('../../../docs/guide/numerics.md', import.meta.url);
  const [, rest] = readFileSync(file, 'utf8').split(/(?=## Empty tensors)/);
  const page = `${numericsPage()}\n${rest}`;
  if (process.env.WRITE_PAGES === '1') writeFileSync(file, page);
  expect(readFileSync(file, 'utf8')).toBe(page);
});

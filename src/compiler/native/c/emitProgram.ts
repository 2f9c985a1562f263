/** @file C text of a program: its functions, and tables of steps and their memory. */
import type { Group } from '../../rules/collectiveRules.js';
import type { ProductUnit } from '../plan/products.js';
import { type Packing, type Schedule, samePacking } from '../plan/stages.js';
import { keptPackings, type Plan } from '../plan/threadSteps.js';
import { Functions, type Needs } from './cFunctions.js';
import { precisionName, typeName } from './cNames.js';
import { StepWriter } from './emitStep.js';
import { LoopTable } from './loopTable.js';
import { type Place, placeOf } from './pointers.js';

/** Results of memory planning. */
export interface MemoryPlan {
  readonly arenaBytes: number;
  readonly scratchBytes: number;
  readonly packedPlaces: readonly number[];
}

const SPACES: Readonly<Record<Place['space'], string>> = {
  arena: 'LT_ARENA',
  input: 'LT_INPUT',
  output: 'LT_OUTPUT',
  constant: 'LT_CONSTANT',
  packed: 'LT_PACKED',
  workspace: 'LT_WORKSPACE',
};

/** The largest of several C expressions. */
const largest = (expressions: Iterable<string>): string =>
  [...expressions].reduce((bytes, expression) => `lt_larger(${bytes}, ${expression})`, '0');

/** A C array; an empty one gets a placeholder element, since C has no empty arrays. */
const table = (declaration: string, rows: readonly string[], none: string): string =>
  `static const ${declaration}[] = {\n${(rows.length === 0 ? [none] : rows).map((row) => `  ${row},\n`).join('')}};\n`;

/** Macros of program.h for compiling a program in two sections; the second calls functions of the first. */
const [LOOPS, STEPS] = ['LT_LOOPS', 'LT_STEPS'];
export const PROGRAM_SECTIONS: readonly string[] = [LOOPS, STEPS];

/** A row of the table of packed operands. Programs share those that persist, of matrices in inputs. */
function packingRow({ unit: { b, k, n }, precision }: Packing, packedPlace: number, isKept: boolean): string {
  const place = isKept ? placeOf(b.buffer, b.offset) : undefined;
  const input =
    place?.space === 'input'
      ? [1, place.index, typeName(b.buffer), place.offset, b.rs, b.cs]
      : [0, 0, 0, 0, 0, 0];
  return `{${[precisionName(precision, isKept), k, n, packedPlace, ...input].join(', ')}}`;
}

/** The text of a program, and the groups of ranks that it names by number. */
export interface ProgramText {
  readonly source: string;
  readonly groups: readonly Group[];
}

/** Writes the program. Only numbers reach the text: names of variables and layers stay out. */
export function writeProgram({ packings }: Schedule, plan: Plan, memory: MemoryPlan): ProgramText {
  const loops = new Functions('loop');
  const steps = new Functions('step');
  const needs: Needs = { work: new Set(), workspace: new Set(), rowBytes: 0, groups: [] };
  const packingIndex = (unit: ProductUnit): number =>
    packings.findIndex((packing) => samePacking(packing.unit, unit));
  const kept = keptPackings(plan);
  const isKept = (unit: ProductUnit): boolean => kept.has(packings[packingIndex(unit)]!);
  const places: Place[] = [];
  let oncePlaces = 0;
  const loopTable = new LoopTable(plan.loops, places);
  const rows = plan.steps.map((step, i) => {
    loopTable.reach(i);
    const writer = new StepWriter({ loops, steps, needs, plan, packingIndex, isKept });
    const { name, pointers } = writer.write(step);
    const first = places.length;
    places.push(...pointers.places);
    if (i < plan.onceSteps) oncePlaces = places.length;
    const waits = i > 0 && plan.steps[i - 1]!.epoch !== step.epoch;
    return `{${name}, ${first}, ${waits ? 1 : 0}}`;
  });
  const turns = loopTable.rows();
  const packingRows = packings.map((packing, i) =>
    packingRow(packing, memory.packedPlaces[i]!, kept.has(packing)),
  );
  const lines = [
    '#include "program.h"\n',
    `#ifdef ${LOOPS}\n`,
    loops.text,
    `#else\n${loops.declarations}#endif`,
    `#ifdef ${STEPS}\n`,
    steps.text,
    table(
      'lt_place places',
      places.map(({ space, index, offset }) => `{${SPACES[space]}, ${index}, ${offset}}`),
      '{LT_ARENA, 0, 0}',
    ),
    table('lt_step steps', rows, '{NULL, 0, 0}'),
    table('lt_loop program_loops', turns.loops, '{0, 0, 0, 0, 0, 0, 0}'),
    table('lt_term terms', turns.terms, '{0, 0, 0, 0, 0}'),
    table('lt_packing packings', packingRows, '{0, 0, 0, 0, 0, 0, 0, 0, 0, 0}'),
    `static int64_t work_bytes(void) { return ${largest(needs.work)}; }`,
    `static int64_t workspace_bytes(void) { return ${largest(needs.workspace)}; }\n`,
    'static const lt_program_text text = {',
    `  places, steps, packings, program_loops, terms, ${places.length}, ${rows.length}, ${packings.length}, ${turns.loops.length},`,
    `  ${memory.arenaBytes}, ${memory.scratchBytes}, ${needs.rowBytes}, ${plan.onceSteps}, ${oncePlaces}, work_bytes, workspace_bytes, LT_PROFILED};\n`,
    'void *lt_program_create(int threads, const void *const *constants, const lt_group *groups) { return lt_open(&text, threads, constants, groups); }',
    'int lt_program_run(void *program, void *const *inputs, void *const *outputs, const lt_request *request) { return lt_run(program, inputs, outputs, request); }',
    'void lt_program_destroy(void *program) { lt_close(program); }',
    'int64_t lt_program_spans(void *program, double *spans, int64_t capacity) { return lt_spans(program, spans, capacity); }',
    '#endif',
    '',
  ];
  return { source: lines.join('\n'), groups: needs.groups };
}

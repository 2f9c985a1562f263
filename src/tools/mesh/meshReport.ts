/** @file Report of `luthier mesh` as text, Markdown and JSON. */
import type { MeshPlan, MeshPlans, PlannedDevice } from '../../analysis/index.js';
import { codeSpan, counted, escapeMarkdown, formatBytes, markdownTable } from '../../review/text/index.js';
import {
  formatCount,
  formatGrouped,
  formatSeconds,
  headedTable,
  type Paint,
  shellWord,
} from '../../system/text/index.js';
import type { Report } from '../command.js';

/** Plans, with the options of their display. */
export interface PlannedMeshes {
  /** Full name of the experiment. */
  readonly experiment: string;
  readonly device: PlannedDevice;
  readonly plans: MeshPlans;
  /** Those that no other beats. */
  readonly front: readonly MeshPlan[];
  /** Whether the others are shown as well. */
  readonly all: boolean;
}

const shapeText = ({ iciMeshShape, dcnMeshShape }: MeshPlan): string =>
  dcnMeshShape === null ? `[${iciMeshShape}]` : `[${iciMeshShape}] × [${dcnMeshShape}]`;

/** `AllGather over ici 11.2 ms`. */
const collectivesText = ({ time: { collectives } }: MeshPlan): string =>
  Object.entries(collectives)
    .sort(([, a], [, b]) => b - a)
    .map(([kind, seconds]) => `${kind} ${formatSeconds(seconds)}`)
    .join(', ');

type Column = readonly [head: string, cell: (plan: MeshPlan) => string];

/** Columns of the table; those of what is the same in all plans are left out. */
function columnsFor({ plans, front, all }: PlannedMeshes): Column[] {
  const several = (of: (plan: MeshPlan) => unknown) => new Set(plans.plans.map(of)).size > 1;
  const given = (isShown: boolean, ...column: Column): Column[] => (isShown ? [column] : []);
  return [
    ...given(all, '', (plan) => (front.includes(plan) ? '*' : '')),
    [`mesh (${plans.axisNames.join(', ')})`, shapeText],
    ...given(
      several(({ rows }) => rows),
      'rows',
      ({ rows }) => formatGrouped(rows),
    ),
    ...given(
      several(({ policy }) => policy),
      'policy',
      ({ policy }) => policy ?? '',
    ),
    ['memory', ({ memory, fits }) => `${formatBytes(memory)}${fits ? '' : ' (too much)'}`],
    ['step', ({ time }) => formatSeconds(time.total)],
    ['compute', ({ time }) => formatSeconds(time.compute)],
    ...given(
      plans.plans.some(({ time }) => time.bubble > 0),
      'bubble',
      ({ time }) => formatSeconds(time.bubble),
    ),
    ['update', ({ time }) => formatSeconds(time.update)],
    ['collectives', ({ time }) => formatSeconds(time.exposed)],
    ['MFU', ({ mfu }) => `${(100 * mfu).toFixed(1)} %`],
  ];
}

/** The command that trains by a plan. */
function commandOf({ experiment, plans }: PlannedMeshes, plan: MeshPlan): string {
  const { devices, policyPaths, policy, rows } = plans;
  const sets = [
    `task.mesh.iciMeshShape=[${plan.iciMeshShape}]`,
    ...(plan.policy === policy ? [] : policyPaths.map((path) => `task.${path}=${plan.policy}`)),
    ...(plan.rows === rows ? [] : [`datasets[0].batchSize=${plan.rows}`]),
  ];
  const words = sets.flatMap((set) => ['--set', shellWord(set)]);
  return `mpirun -np ${devices} npx luthier train ${shellWord(experiment)} ${words.join(' ')}`;
}

/** What the table leaves out, a line each. */
function notes({ plans, front, all, device }: PlannedMeshes): string[] {
  const others = plans.plans.length - front.length;
  const [least] = [...plans.plans].sort((a, b) => a.memory - b.memory);
  const fitting = plans.plans.filter(({ fits }) => fits).length;
  return [
    'Times are predictions. Collectives count where no computation hides them; all of them are in --format=json.',
    ...(all && front.length > 0 ? ['No other plan beats those marked * in both time and memory.'] : []),
    ...(!all && others > 0
      ? [
          `Of ${counted(plans.plans.length, 'plan')}, ${fitting} fit into ${device.name}; --all shows those, too, that others beat in time and memory.`,
        ]
      : []),
    ...(fitting === 0 && least !== undefined
      ? [
          `No mesh fits: ${shapeText(least)} takes the least memory, ${formatBytes(least.memory)} of ${formatBytes(device.memoryBytes)}.`,
        ]
      : []),
    ...[...plans.refused].map(([why, shapes]) => {
      const shown = shapes.slice(0, 3).map((shape) => `[${shape}]`);
      const more = shapes.length > shown.length ? ` and ${shapes.length - shown.length} more` : '';
      return `Not planned: ${shown.join(', ')}${more}: ${why.replace(/\.$/, '')}.`;
    }),
  ];
}

/** Lines of what stands above the table and below it. */
function aroundTable(planned: PlannedMeshes): { readonly above: string; readonly below: [string, string][] } {
  const { plans, device, front } = planned;
  const { devices, rows, tokensPerRow, unit } = plans;
  const [best] = front;
  return {
    above:
      `${formatGrouped(devices)} × ${device.name} (${device.file}); ${formatGrouped(rows)} rows a step, ` +
      `${formatCount(rows * tokensPerRow)} ${unit}${plans.policy === undefined ? '' : `; ${plans.policy}`}`,
    below:
      best === undefined
        ? []
        : [
            ['Fastest', `${shapeText(best)}; ${collectivesText(best) || 'no collectives'}`],
            ['Run', commandOf(planned, best)],
          ],
  };
}

function textOf(planned: PlannedMeshes, shown: readonly MeshPlan[], paint: Paint): string {
  const { above, below } = aroundTable(planned);
  const columns = columnsFor(planned);
  const rows = shown.map((plan) => columns.map(([, cell]) => cell(plan)));
  const head = columns.map(([name]) => name);
  return [
    `${paint('bold', planned.experiment)}\n${above}`,
    ...(rows.length > 0 ? [headedTable(rows, head, paint)] : []),
    notes(planned)
      .map((line) => paint('dim', line))
      .join('\n'),
    ...(below.length > 0 ? [below.map(([name, text]) => `${name.padEnd(9)}${text}`).join('\n')] : []),
  ].join('\n\n');
}

function markdownOf(planned: PlannedMeshes, shown: readonly MeshPlan[]): string {
  const { above, below } = aroundTable(planned);
  const columns = columnsFor(planned);
  const rows = shown.map((plan) => columns.map(([, cell]) => cell(plan)));
  const head = columns.map(([name]) => name);
  return [
    `### ${escapeMarkdown(planned.experiment)}`,
    escapeMarkdown(above),
    ...(rows.length > 0 ? [markdownTable(rows, head)] : []),
    notes(planned).map(escapeMarkdown).join('\n'),
    ...below.map(
      ([name, text]) => `- **${name}:** ${name === 'Run' ? codeSpan(text) : escapeMarkdown(text)}`,
    ),
  ].join('\n\n');
}

/** The report on an experiment's meshes; its JSON has all plans. */
export function meshReport(planned: PlannedMeshes): Report {
  const { experiment, device, plans, front, all } = planned;
  const shown = all ? plans.plans : front;
  return {
    text: (paint) => textOf(planned, shown, paint),
    further: { markdown: () => markdownOf(planned, shown) },
    json: () => ({
      experiment,
      device,
      ...plans,
      plans: plans.plans.map((plan) => ({ ...plan, isOnFront: front.includes(plan) })),
      refused: [...plans.refused].map(([why, shapes]) => ({ why, shapes })),
    }),
    exitCode: front.length > 0 ? 0 : 1,
  };
}

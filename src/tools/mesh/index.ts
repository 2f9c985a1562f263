/** @file `luthier mesh`: the meshes of a number of devices, with memory, time and MFU of a training on each. */
import { paretoFront, planMeshes, plannedDevice, readDevice } from '../../analysis/index.js';
import { nonEmpty, positive } from '../../cli/commandLine/index.js';
import { enterForeignCode } from '../../system/index.js';
import { UsageError } from '../../system/text/index.js';
import type { Command } from '../command.js';
import { configureFor } from '../commandExperiment.js';
import { meshReport } from './meshReport.js';

/** A parser of `[1,4,2]` or `1,4,2`. */
function meshShape(text: string, flag: string): readonly number[] {
  const sizes = text.replace(/^\[(.*)\]$/, '$1').split(',');
  const shape = sizes.map(Number);
  if (shape.every((size, i) => Number.isSafeInteger(size) && size > 0 && sizes[i]!.trim() !== ''))
    return shape;
  throw new UsageError(`${flag}: expected devices along each axis, such as [1,4,2]; got '${text}'.`);
}

/** A parser of numbers of rows. */
function rowCounts(text: string, flag: string): readonly number[] {
  const counts = text.split(',').map(Number);
  if (counts.every((count) => Number.isSafeInteger(count) && count > 0)) return counts;
  throw new UsageError(`${flag}: expected rows of a global batch, such as 64 or 64,128; got '${text}'.`);
}

export const meshCommand: Command = {
  usage: 'EXP',
  positionals: [1, 1],
  flags: {
    devices: {
      key: 'devices',
      value: 'N',
      about: "Devices in all. Default: those of the experiment's mesh.",
      parse: positive(true),
    },
    device: {
      key: 'device',
      value: 'FILE',
      about: 'Device file (JSON or YAML) with peak, memory and mesh: what a device computes, and its links.',
      parse: nonEmpty,
    },
    shape: {
      key: 'shape',
      value: '[SIZES]',
      about: 'One mesh alone: devices of a slice along each axis.',
      parse: meshShape,
    },
    rows: {
      key: 'rows',
      value: 'N,…',
      about: 'Rows of a global batch, several to compare them. Default: those of the training data.',
      parse: rowCounts,
    },
    policies: {
      key: 'policies',
      about: 'Tries other checkpoint policies on the fastest meshes, where layers recompute.',
      parse: () => true,
    },
    all: {
      key: 'all',
      about: 'Shows every plan; by default, those that fit and that no other beats in time and memory.',
      parse: () => true,
    },
  },
  changes: true,
  formats: ['markdown'],
  details: [
    'The step of one device is traced and partitioned for each mesh: its FLOPs, its memory as the native engine plans it, and what',
    'its collectives send. Computation takes the efficiency that the device file says; a collective takes the latency and the',
    'bandwidth of its links, in rings; collectives of weights and gradients hide behind the overlap that the file says.',
    '',
    '  npx luthier mesh lmCloud.LmCloudSpmd2B --devices=8 --device=devices/tpu-v5p.yaml',
    '  npx luthier mesh c4.C4Spmd1BAdam4Replicas --device=devices/tpu-v4.yaml --policies --format=markdown',
    '',
    'Exit codes: 0; 1 if no mesh fits; 2 for a wrong command line, config or device file.',
  ].join('\n'),
  async run({ positionals: [name], values, changes, warn }) {
    const { devices, shape, rows, policies = false, all = false } = values;
    if (values.device === undefined)
      throw new UsageError(
        '--device: expected a device file with mesh; devices/ has some, such as devices/tpu-v4.yaml.',
      );
    const device = plannedDevice(readDevice(values.device as string));
    const configured = await configureFor(name!, { changes, warn });
    const done = enterForeignCode(configured.name, 'analysed');
    const plans = planMeshes(configured, {
      device,
      devices: devices as number | undefined,
      shape: shape as readonly number[] | undefined,
      rows: rows as readonly number[] | undefined,
      policies: policies as boolean,
    });
    done();
    const front = paretoFront(plans.plans);
    return meshReport({ experiment: configured.name, device, plans, front, all: all as boolean });
  },
};

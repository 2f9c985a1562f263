/** @file Device files: peak, memory and price of a training's hardware, and the training's cost there. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { z } from 'zod';
import { PRECISION_NAMES, type Precision } from '../compiler/index.js';
import { explain } from '../files/index.js';
import { issueText, yamlPackage } from '../hparams/index.js';
import type { Peak } from '../programs/index.js';
import { UsageError } from '../system/text/index.js';
import { Train } from '../tasks/index.js';
import type { Analysis } from './analyze.js';

const above0 = z.number().positive();

/** FLOP/s by precision. */
const peaks = Object.fromEntries(PRECISION_NAMES.map((name) => [name, above0.exactOptional()])) as Record<
  Precision,
  z.ZodExactOptional<typeof above0>
>;

/** A network between devices. */
const link = z.strictObject({
  /** That a device sends, and receives at the same time, in a collective. */
  bytesPerSecond: above0,
  /** Until the first byte of a message arrives. */
  latencySeconds: z.number().nonnegative(),
});

const deviceSchema = z
  .strictObject({
    name: z.string().min(1),
    peakFlops: z.strictObject(peaks),
    assumedMfu: above0.max(1),
    memoryBytes: above0,
    count: z.int().positive().default(1),
    pricePerHour: above0.exactOptional(),
    currency: z.string().min(1).exactOptional(),
    /** What plans of meshes are made from. */
    mesh: z
      .strictObject({
        /** FLOP/s that a step's computation reaches, of the peak. */
        efficiency: above0.max(1),
        memoryBytesPerSecond: above0,
        /** Between the devices of a slice, and between slices. */
        links: z.strictObject({ ici: link, dcn: link.exactOptional() }),
        /** Share of the computation behind which collectives of weights and their gradients can hide. */
        overlap: z.number().nonnegative().max(1),
      })
      .exactOptional(),
  })
  .refine(({ pricePerHour, currency }) => (pricePerHour === undefined) === (currency === undefined), {
    error: 'expected pricePerHour and currency, or neither',
  });

/** Hardware of a training. */
export interface Device extends Readonly<z.infer<typeof deviceSchema>> {
  /** The file that says so. */
  readonly file: string;
}

/** Fields of a device file. */
const fields =
  `A device file has name, peakFlops (FLOP/s, by ${PRECISION_NAMES.join(' and ')}), assumedMfu, memoryBytes, count (default: 1), ` +
  'pricePerHour (of one device) with currency or neither, and mesh (efficiency, memoryBytesPerSecond, links, overlap) where plans ' +
  'are made; devices/ has examples.';

/** Reads a device file of `folder`, JSON or YAML. @throws UsageError for a file that can't be read or is no device's */
export function readDevice(file: string, folder = ''): Device {
  let value: unknown;
  try {
    value = yamlPackage().parse(readFileSync(resolve(folder, file), 'utf8'));
  } catch (cause) {
    throw new UsageError(`${file}: ${explain(cause)}`, { cause });
  }
  const { success, data, error } = deviceSchema.safeParse(value);
  if (success) return { file, ...data };
  throw new UsageError(`${file}: ${issueText('device', deviceSchema, value, error.issues[0]!)}. ${fields}`);
}

/** How many devices train: those of the mesh, if there is one. */
export const devicesOf = ({ count }: Device, { mesh }: Pick<Analysis, 'mesh'>): number =>
  mesh.devices > 1 ? mesh.devices : count;

/** Peak of all devices that train. @throws UsageError where the file lacks the precision */
export function peakOf(device: Device, analysis: Pick<Analysis, 'mesh' | 'precision'>): Peak {
  const { file, name, peakFlops } = device;
  const { precision } = analysis;
  const peak = peakFlops[precision];
  if (peak === undefined)
    throw new UsageError(`${file}: peakFlops lacks ${precision}, in which most products multiply.`);
  const count = devicesOf(device, analysis);
  return { flops: count * peak, source: `${count} × ${name}` };
}

/** Hours of one device for so many FLOPs of a precision; undefined where the file lacks it. */
export function hoursOn(
  { peakFlops, assumedMfu }: Device,
  flops: number,
  precision: Precision,
): number | undefined {
  const peak = peakFlops[precision];
  return peak && flops / (peak * assumedMfu) / 3600;
}

/** Tokens, or examples, and FLOPs of a whole training. */
export interface TrainingCost {
  readonly steps: number;
  readonly tokens: number;
  readonly flops: number;
}

/** The cost of the whole training, of all its tasks; undefined where the task does not say how long it is, which Pax's default means. */
export function trainingCost({
  numTrainSteps: steps,
  tokensPerStep,
  flopsPerStep,
  auxiliary = {},
}: Pick<Analysis, 'numTrainSteps' | 'tokensPerStep' | 'flopsPerStep' | 'auxiliary'>):
  | TrainingCost
  | undefined {
  if (steps === Train.config().numTrainSteps) return undefined;
  const others = Object.values(auxiliary);
  const share = others.reduce((rest, each) => rest - each.share, 1);
  const tasks = [{ share, tokensPerStep, flopsPerStep }, ...others];
  const mean = (cost: 'tokensPerStep' | 'flopsPerStep') =>
    tasks.reduce((sum, each) => sum + each.share * each[cost], 0);
  return { steps, tokens: steps * mean('tokensPerStep'), flops: steps * mean('flopsPerStep') };
}

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

const deviceSchema = z
  .strictObject({
    name: z.string().min(1),
    peakFlops: z.strictObject(peaks),
    assumedMfu: above0.max(1),
    memoryBytes: above0,
    count: z.int().positive().default(1),
    pricePerHour: above0.exactOptional(),
    currency: z.string().min(1).exactOptional(),
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
  `A device file has name, peakFlops (FLOP/s, by ${PRECISION_NAMES.join(' and ')}), assumedMfu, memoryBytes, count (default: 1), and ` +
  'pricePerHour (of one device) with currency or neither; devices/ has examples.';

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

/** @file Effects of a change on a device: hours and price of training, and models that its memory does not hold. */

import { type Device, hoursOn, readDevice } from '../../analysis/index.js';
import { UsageError } from '../../system/text/index.js';
import type { DiffReport, Effects, Figure } from '../reports/diffReport.js';
import { formatBytes, formatFlops } from '../text/reportFormat.js';
import { bothSides } from './effects.js';

/**
 * The report with costs of training on a device, if there is one, and notes on the device and on experiments beyond
 * its memory.
 */
export function onDevice(report: DiffReport, device: Device | undefined): DiffReport {
  if (device === undefined) return report;
  const experiments = report.experiments.map((each) =>
    each.effects === undefined
      ? each
      : { ...each, effects: { ...each.effects, ...costOf(each.effects, device) } },
  );
  const tooLarge = experiments.flatMap(({ name, effects }) => {
    const bytes = effects?.peakMemory.new;
    return bytes !== undefined && bytes > device.memoryBytes ? [`${name} (${formatBytes(bytes)})`] : [];
  });
  const notes = [
    ...(experiments.some(({ effects }) => effects !== undefined) ? [termsOf(device)] : []),
    ...(tooLarge.length > 0
      ? [`Too large for the ${formatBytes(device.memoryBytes)} of ${device.name}: ${tooLarge.join(', ')}.`]
      : []),
  ];
  return { ...report, experiments, notes: [...report.notes, ...notes] };
}

/** The given device, else that of a base's settings, or a note with the reason for its absence. */
export function deviceFor(
  given: Device | undefined,
  file: string | undefined,
  folder: string,
): { readonly device?: Device; readonly notes: readonly string[] } {
  if (given !== undefined) return { device: given, notes: [] };
  if (file === undefined) return { notes: [] };
  try {
    return { device: readDevice(file, folder), notes: [] };
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    return { notes: [`The cost of training on the base's device is unknown: ${error.message}`] };
  }
}

function costOf(effects: Effects, device: Device): Pick<Effects, 'deviceHours' | 'price'> {
  const hours: Figure = bothSides((side) => {
    const [flops, precision] = [effects.trainingFlops[side], effects.precision[side]];
    return flops === undefined || precision === undefined ? undefined : hoursOn(device, flops, precision);
  });
  const { pricePerHour } = device;
  const priceOf = (deviceHours: number | undefined) =>
    deviceHours === undefined || pricePerHour === undefined ? undefined : deviceHours * pricePerHour;
  return { deviceHours: hours, price: bothSides((side) => priceOf(hours[side])) };
}

/** Terms of the figures. */
function termsOf({ name, file, peakFlops, assumedMfu, pricePerHour, currency }: Device): string {
  const peaks = Object.entries(peakFlops).map(
    ([precision, peak]) => `${formatFlops(peak)}/s in ${precision}`,
  );
  const price = pricePerHour === undefined ? '' : `, ${pricePerHour} ${currency} an hour`;
  return `Device-hours are those of ${name} (${file}): ${peaks.join(', ')}, at MFU ${assumedMfu}${price}.`;
}

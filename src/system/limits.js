/** @file Refusal of limits of the system under which nothing could be run, before the modules that would fail at them. */
import { readFileSync } from 'node:fs';
import { getHeapStatistics } from 'node:v8';

const LEAST_HANDLES = 128;
const LEAST_HEAP = 112 * 2 ** 20;
/** Each memory of WebAssembly reserves 10 GB of addresses: node and tsx have three, and libraries may have more. */
const [LEAST_ADDRESSES, ENOUGH_ADDRESSES] = [48e9, 96e9];

/** The soft limits of this process as Linux tells them; '' where there is no such file. */
function readLimits() {
  try {
    return readFileSync('/proc/self/limits', 'utf8');
  } catch {
    return '';
  }
}

/** What is too little, and how much is needed. */
function shortage() {
  const limits = readLimits();
  /** @param {string} name */
  const limitOf = (name) =>
    Number(new RegExp(`^${name} +(\\d+)`, 'm').exec(limits)?.[1] ?? Number.POSITIVE_INFINITY);
  const handles = limitOf('Max open files');
  if (handles < LEAST_HANDLES)
    return `${LEAST_HANDLES} file handles or more, and the limit is ${handles}: ulimit -n ${LEAST_HANDLES}`;
  const addresses = limitOf('Max address space');
  if (addresses < LEAST_ADDRESSES)
    return `${ENOUGH_ADDRESSES / 1e9} GB of addresses, which WebAssembly reserves, and the limit is ${Math.round(addresses / 1e9)} GB: ulimit -v ${ENOUGH_ADDRESSES / 1e3}`;
  const { heap_size_limit: heap } = getHeapStatistics();
  if (heap < LEAST_HEAP)
    return `a heap of ${LEAST_HEAP / 2 ** 20} MiB or more, and the limit is ${Math.floor(heap / 2 ** 20)} MiB: --max-old-space-size=96, in NODE_OPTIONS say`;
  return undefined;
}

const short = shortage();
if (short !== undefined) {
  process.stderr.write(`Luthier needs ${short}.\n`);
  process.exit(1);
}

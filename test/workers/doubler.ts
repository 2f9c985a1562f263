/** @file A worker that doubles what it is given, through a TypeScript-only import. */

import { parentPort, workerData } from 'node:worker_threads';
import { Factor } from './factor.js';

parentPort?.postMessage({ doubled: (workerData as number) * Factor.Two, url: import.meta.url });

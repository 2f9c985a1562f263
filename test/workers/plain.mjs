/** @file A worker in plain JavaScript. */

import { parentPort, workerData } from 'node:worker_threads';

parentPort.postMessage(workerData + 1);

/** @file Worker threads: the one way in which every room starts them. */

export { HashThread } from './hashThread.js';
export { type StartWorkerOptions, startWorker } from './startWorker.js';

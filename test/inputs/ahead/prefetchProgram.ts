/** @file A program that reads ahead and ends without closing its input. */

import { setTimeout as sleep } from 'node:timers/promises';
import { openInput, TextInput } from '../../../src/inputs/index.js';

const files = ['pkg:typescript/lib/lib.es5.d.ts'];
const config = TextInput.config({ files, seqLen: 32, batchSize: 4, isTraining: true, prefetchBatches: 2 });
const input = openInput(config);
while (!(input as unknown as { readers: number }).readers) {
  await input.getNext();
  await sleep(10);
}
for (let i = 0; i < 10; i++) await input.getNext();
console.log('the worker reads ahead');

/** @file Mutants of safetensors files, read as published weights are. */

import { encodePrefix, placeTensors, type SafetensorsDtype } from '../../../src/checkpoints/safetensors.js';
import { SafetensorsFile } from '../../../src/checkpoints/safetensorsFile.js';
import { integerSite, type MutantKind, textSite } from './mutantKind.js';

const TENSORS = [
  { name: 'embedding', dtype: 'F32', shape: [16, 8] },
  { name: 'layers.0.weight', dtype: 'BF16', shape: [8, 8] },
  { name: 'layers.0.bias', dtype: 'F16', shape: [8] },
  { name: 'ids', dtype: 'I64', shape: [3] },
  { name: 'step', dtype: 'I32', shape: [] },
  { name: 'mask', dtype: 'BOOL', shape: [5] },
  { name: 'empty', dtype: 'F32', shape: [0, 4] },
] as const satisfies readonly { name: string; dtype: SafetensorsDtype; shape: readonly number[] }[];

export const safetensors: MutantKind = {
  name: 'safetensors',
  seeds() {
    const layout = placeTensors(TENSORS, { format: 'pt' });
    const prefix = Buffer.from(encodePrefix(layout));
    const data = Uint8Array.from({ length: layout.byteLength }, (_, i) => (i * 7) % 60);
    const bytes = Buffer.concat([prefix, data]);
    const header = bytes.toString('latin1', 8, prefix.length);
    // An empty tensor has any other size of the same number of elements.
    const numbers = [...header.matchAll(/(?<=[[,])\d+(?=[\],])/g)].map(({ 0: text, index }, i) =>
      textSite(bytes, `number ${i}`, 8 + index, 8 + index + text.length, true),
    );
    return [
      { name: 'a.safetensors', bytes, sites: [integerSite(bytes, 'length of the header', 0, 8), ...numbers] },
    ];
  },
  read(path) {
    const file = new SafetensorsFile(path);
    try {
      return file.layout.tensors.map(({ name, shape }) => [name, shape, file.read(name)]);
    } finally {
      file.close();
    }
  },
  errors: ['CheckpointError'],
  problemOf(values) {
    for (const [name, shape, { length }] of values as [string, number[], { length: number }][])
      if (length !== shape.reduce((a, b) => a * b, 1)) return `${name} of [${shape}] has ${length} elements`;
    return undefined;
  },
  tries: 2000,
  short: 100,
};

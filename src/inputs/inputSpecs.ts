/** @file Providers of input specs: the shapes of batches that a model is made for (praxis' BaseInputSpecsProvider). */
import type { TensorSpec } from '../compiler/program/index.js';
import { build, Configurable, sub } from '../hparams/index.js';
import { BaseInput } from './baseInput.js';
import type { Batch, BatchSpecs } from './batch.js';
import { InputError } from './inputErrors.js';

/** Declares the batches that an experiment expects, whatever its datasets say. */
export abstract class BaseInputSpecsProvider extends Configurable.with({}) {
  static override readonly isAbstract = true;

  /** Names, dtypes and shapes of what a batch has at least; the first dimension is that of its rows. */
  abstract getInputSpecs(): BatchSpecs;
}

/** The specs of an input (praxis' DatasetInputSpecsProvider). */
export class DatasetInputSpecsProvider extends BaseInputSpecsProvider.with({
  input: sub(BaseInput, null).describe('The input; its data is not read.'),
}) {
  override getInputSpecs(): BatchSpecs {
    return build(this.hp.input).paddedBatchSpecs();
  }
}

const isTensor = (spec: object): spec is TensorSpec => Array.isArray((spec as Partial<TensorSpec>).shape);
const textOf = ({ dtype, shape }: TensorSpec): string => `${dtype} [${shape.slice(1).join(', ')}]`;

/** Differences between declared specs and those of a batch, by path: the number of rows is free, and a batch may have more. */
function differences(declared: BatchSpecs, found: BatchSpecs | Batch, path = ''): string[] {
  return Object.entries(declared).flatMap(([name, spec]) => {
    const at = `${path}${name}`;
    const part = (found as BatchSpecs)[name];
    if (part === undefined) return [`${at} is missing`];
    if (isTensor(spec) !== isTensor(part)) return [`${at} is ${isTensor(part) ? 'a tensor' : 'a group'}`];
    if (!isTensor(spec)) return differences(spec, part as BatchSpecs, `${at}.`);
    const [wanted, got] = [textOf(spec), textOf(part as TensorSpec)];
    return wanted === got ? [] : [`${at} has rows of ${got}, not ${wanted}`];
  });
}

/**
 * Compares the specs that an experiment declares with a batch of an input, or with the input's own specs.
 *
 * @param input its name, for messages. @throws InputError with every difference
 */
export function checkInputSpecs(declared: BatchSpecs, batch: BatchSpecs | Batch, input: string): void {
  const found = differences(declared, batch);
  if (found.length === 0) return;
  throw new InputError(
    `Input '${input}' does not fit the specs of inputSpecsProvider(): ${found.join('; ')}.`,
  );
}

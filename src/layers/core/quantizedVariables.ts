/** @file Variables of weights in few bits, in the place of a layer's own. */
import type { OwnVariables } from './ownVariables.js';
import { type CodeForm, codeForm, type Quantization, scaleName } from './quantization.js';
import { constantInit } from './weightInit.js';
import { type Variable, WeightCollection, type WeightHParams } from './weights.js';

/** Whether a pattern matches a whole path. */
const matches = (path: string, pattern: string): boolean => new RegExp(`^(?:${pattern})$`).test(path);

/** Of weights that are not rounded, which their factors are. */
const WHOLE_ROWS = { precision: 8, blockSize: 0 } as const;

/** Storage of codes; those of 4 bits are pairs. */
const STORAGE = { 8: 'int8', 4: 'uint8' } as const;

/**
 * Declares a weight as `quantization` says.
 *
 * @param variable as it is without.
 * @param fail makes the layer's error.
 * @throws what `fail` makes where groups do not fit the weight
 */
export function declareQuantized(
  variables: OwnVariables,
  name: string,
  variable: Variable,
  { shape, contracting }: WeightHParams,
  { mode, quantizationType, weightParams, actParams, skip }: Quantization['hp'],
  fail: (detail: string) => Error,
): void {
  const isPlain = mode === 'training' && quantizationType === 'PTQ';
  if (isPlain || skip.some((pattern) => matches(variable.path, pattern))) {
    variables.declare(name, variable);
    return;
  }
  const form = codeForm(shape, contracting!, weightParams ?? WHOLE_ROWS);
  const block = actParams?.blockSize ?? 0;
  const fitting =
    typeof form !== 'string' && block > 0 && form.depth % block !== 0
      ? `blockSize ${block} of actParams does not divide the ${form.depth} factors of a row`
      : form;
  if (typeof fitting === 'string')
    throw fail(
      `variable '${variable.path}' can't be quantized: ${fitting}. Choose another blockSize, or list the variable in quantization.skip.`,
    );
  if (weightParams === null && mode === 'inference')
    throw fail(`quantization has the mode 'inference', whose weights are codes: set weightParams.`);
  if (weightParams === null) variables.declareMultiplied(name, variable, fitting);
  else if (mode !== 'inference') variables.declareRounded(name, variable, fitting);
  else
    variables.declareCodes(name, codesVariable(variable, fitting), scaleVariable(variable, fitting), fitting);
}

/** What codes and scales have of a weight: they are trained by nothing. */
const frozen = ({ path, repeatPrefix, collections }: Variable) => ({
  ...{ path, repeatPrefix, init: constantInit(0), fanInAxes: undefined, fanOutAxes: undefined },
  collections: [...new Set([...collections, WeightCollection.FROZEN])],
});

const codesVariable = (weight: Variable, { bits, codesShape }: CodeForm): Variable => ({
  ...frozen(weight),
  shape: [...weight.repeatPrefix, ...codesShape],
  dtype: 'int32',
  storage: STORAGE[bits],
});

const scaleVariable = (weight: Variable, { scaleShape, hasBlocks }: CodeForm): Variable => ({
  ...frozen(weight),
  path: scaleName(weight.path),
  shape: [...weight.repeatPrefix, ...scaleShape],
  dtype: 'float32',
  ...(hasBlocks && { storage: 'bfloat16' }),
});

/** @file Settings that change a network's numbers and not the shapes of its weights, compared with a published config.json. */
import { type AnyConfig, type Config, classOf, getPath, isConfig, showValue } from '../../hparams/index.js';
import type { TransformerLm } from '../../layers/index.js';

const stack = 'stackedTransformerTpl';
const layer = `${stack}.transformerLayerParamsTpl`;
const attention = `${layer}.trAttenTpl`;
const feedForward = `${layer}.trFflayerTpl`;
const norms = [`${layer}.lnTpl`, `${feedForward}.lnTpl`, 'finalLnTpl'];
const rotation = `${attention}.rotaryPositionEmbTpl`;

/** Paths in a `TransformerLm`; of a config, its class. */
const SETTINGS: readonly string[] = [
  'modelType',
  'positionEmbTpl',
  'separateEmbeddingTpl.scaleSqrtDepth',
  'softmaxTpl.scaleSqrtDepth',
  'softmaxTpl.softCapLogits',
  `${stack}.numHeads`,
  `${layer}.normPolicy`,
  ...norms.flatMap((norm) => [norm, `${norm}.epsilon`, `${norm}.directScale`]),
  `${attention}.internalEnableQueryScale`,
  `${attention}.internalEnablePerDimScale`,
  `${attention}.scaleQueryByDimPerHead`,
  `${attention}.scaleLogitsByHeadDims`,
  `${attention}.attenLogitCap`,
  `${attention}.useRotaryPositionEmb`,
  `${feedForward}.activationTpl`,
  `${feedForward}.activationTpl.approximate`,
  `${feedForward}.useGatedActivation`,
  `${feedForward}.residualWeight`,
];

const ROTATIONS = ['minTimescale', 'maxTimescale', 'factor', 'lowFrequencyFactor', 'highFrequencyFactor'];

/** The settings in which a network is not the published one, each as `path is X, there Y`. */
export function networkDifferences(ours: Config<TransformerLm>, published: Config<TransformerLm>): string[] {
  const rotates = read(published, `${attention}.useRotaryPositionEmb`) === true;
  const rotations = rotates ? [rotation, ...ROTATIONS.map((name) => `${rotation}.${name}`)] : [];
  return [...SETTINGS, ...rotations].flatMap((path) => {
    const [here, there] = [read(ours, path), read(published, path)];
    const isOfBoth = here !== undefined && there !== undefined;
    return isOfBoth && here !== there ? [`${path} is ${shown(here)}, there ${shown(there)}`] : [];
  });
}

/** A setting, the class of a config, or undefined where the network has no such field. */
function read(lm: AnyConfig, path: string): unknown {
  try {
    const value = getPath(lm, path);
    return isConfig(value) ? classOf(value) : value;
  } catch {
    return undefined;
  }
}

const shown = (value: unknown): string => (typeof value === 'function' ? value.name : showValue(value));

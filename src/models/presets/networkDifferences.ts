/** @file Settings that change a network's numbers and not the shapes of its weights, compared with a published config.json. */
import {
  type AnyConfig,
  type Config,
  classOf,
  getPath,
  isConfig,
  print,
  showValue,
} from '../../hparams/index.js';
import type { TransformerLm } from '../../layers/index.js';

const stack = 'stackedTransformerTpl';
const kinds = `${stack}.transformerLayerParamsTpls`;

/** Paths in a `TransformerLm`; of a config, its class. */
const SETTINGS: readonly string[] = [
  'modelType',
  'positionEmbTpl',
  'separateEmbeddingTpl.scaleSqrtDepth',
  'softmaxTpl.scaleSqrtDepth',
  'softmaxTpl.softCapLogits',
  `${stack}.numHeads`,
  `${kinds}.length`,
  ...settingsOfNorm('finalLnTpl'),
];

/** Paths of a layer's settings. */
function settingsOfLayer(layer: string): string[] {
  const [attention, feedForward] = [`${layer}.trAttenTpl`, `${layer}.trFflayerTpl`];
  return [
    `${layer}.mixerTpl`,
    `${layer}.normPolicy`,
    ...settingsOfNorm(`${layer}.lnTpl`),
    `${attention}.internalEnableQueryScale`,
    `${attention}.internalEnablePerDimScale`,
    `${attention}.scaleQueryByDimPerHead`,
    `${attention}.scaleLogitsByHeadDims`,
    `${attention}.attenLogitCap`,
    `${attention}.windowSize`,
    `${attention}.useSinks`,
    ...settingsOfNorm(`${attention}.lnTpl`),
    `${attention}.normBeforeRotary`,
    `${attention}.normAllHeads`,
    `${attention}.useRotaryPositionEmb`,
    ...settingsOfNorm(`${feedForward}.lnTpl`),
    `${feedForward}.activationTpl`,
    `${feedForward}.activationTpl.approximate`,
    `${feedForward}.useGatedActivation`,
    `${feedForward}.residualWeight`,
  ];
}

function settingsOfNorm(norm: string): string[] {
  return [norm, `${norm}.epsilon`, `${norm}.directScale`];
}

const ROTATIONS = ['minTimescale', 'maxTimescale', 'rotaryFraction', 'pairs', 'scalingTpl'];

/** Paths of the settings of a layer's rotations. */
function settingsOfRotations(layer: string): string[] {
  const rotation = `${layer}.trAttenTpl.rotaryPositionEmbTpl`;
  return [rotation, ...ROTATIONS.map((name) => `${rotation}.${name}`)];
}

/** Fields without a say in the numbers of an evaluation: of training, initial values, memory and names. */
const OF_TRAINING =
  /(Prob|Init|LossWeight|UpdateRate|SplitDimsMapping|Dtype|Regularization|Checkpoint\w*)$|^(name|dtype)$/;

/** All settings below a config that stands for a part with many of its own, as `path : value`. */
function settingsBelow(lm: AnyConfig, path: string): Map<string, string> {
  let part: unknown;
  try {
    part = getPath(lm, path);
  } catch {
    return new Map();
  }
  const lines = isConfig(part) ? print(part).split('\n') : [];
  return new Map(
    lines.flatMap((line) => {
      const [name = '', ...value] = line.split(' : ');
      const isShown = name.split(/[.[]/).every((field) => !OF_TRAINING.test(field));
      return isShown && name !== '<root>' ? [[`${path}.${name}`, value.join(' : ')]] : [];
    }),
  );
}

/** Differences of parts of one class. */
function differencesBelow(ours: AnyConfig, published: AnyConfig, path: string): string[] {
  const [here, there] = [settingsBelow(ours, path), settingsBelow(published, path)];
  if (here.size === 0 || there.size === 0 || read(ours, path) !== read(published, path)) return [];
  return [...new Set([...here.keys(), ...there.keys()])]
    .filter((name) => here.get(name) !== there.get(name))
    .map((name) => `${name} is ${here.get(name) ?? 'absent'}, there ${there.get(name) ?? 'absent'}`);
}

/** The settings in which a network is not the published one, each as `path is X, there Y`. */
export function networkDifferences(ours: Config<TransformerLm>, published: Config<TransformerLm>): string[] {
  const count = published.stackedTransformerTpl.transformerLayerParamsTpls.length;
  const layers =
    count === 0
      ? [`${stack}.transformerLayerParamsTpl`]
      : Array.from({ length: count }, (_, i) => `${kinds}[${i}]`);
  const ofLayers = layers.flatMap((layer) => {
    const rotates = read(published, `${layer}.trAttenTpl.useRotaryPositionEmb`) === true;
    return [...settingsOfLayer(layer), ...(rotates ? settingsOfRotations(layer) : [])];
  });
  const hasExperts = published.stackedTransformerTpl.moeLayers.length > 0;
  const whole = [
    ...(hasExperts ? [`${stack}.moeLayerTpl`] : []),
    ...layers.flatMap((layer) => [
      `${layer}.mixerTpl`,
      `${layer}.trAttenTpl.rotaryPositionEmbTpl.scalingTpl`,
    ]),
  ].flatMap((path) => differencesBelow(ours, published, path));
  const listed = [...SETTINGS, ...ofLayers].flatMap((path) => {
    const [here, there] = [read(ours, path), read(published, path)];
    const isOfBoth = here !== undefined && there !== undefined;
    return isOfBoth && here !== there ? [`${path} is ${shown(here)}, there ${shown(there)}`] : [];
  });
  return [...listed, ...whole];
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

/** @file Configs: typed, checked at once, shared, edited by copy, printed, built. */
export { describeField, getPath, listPaths, type PathInfo, setPath, unsetPath } from './access.js';
export { build } from './build.js';
export { coerce } from './coerce.js';
export { withOrigin } from './config.js';
export { Configurable } from './configurable.js';
export { type ContainerHandler, registerContainer } from './containerTypes.js';
export { copy, deepCopy } from './copy.js';
export { derive } from './derive.js';
export { describeSchema, showValue } from './describe.js';
export { fromJSON, type JsonDocument, toJSON } from './documents/json.js';
export { isEqual } from './equal.js';
export { ConfigError, type ConfigErrorOptions } from './errors.js';
export { registerClass } from './fields.js';
export { type ConfigurableOptions, configurable } from './functions.js';
export { type HistoryEntry, history } from './history.js';
export { factory, instance, sub } from './holders.js';
export { didYouMean, nearest } from './names.js';
export { formatPath, parsePath, type Segment } from './paths.js';
export { asDictFlattened, type FlattenOptions } from './printing/dict.js';
export { type GrepOptions, grep } from './printing/grep.js';
export { type PrintHistoryOptions, printHistory } from './printing/history.js';
export { type PrintOptions, print } from './printing/print.js';
export { printTree, type TreeOptions } from './printing/tree.js';
export { assign, classOf, isConfig, isSet, unset } from './queries.js';
export type { Place } from './source.js';
export { type Child, type State, type TraverseOptions, traverse, type Visitor } from './states.js';
export { iterate, pathOf, type Visit } from './traverse.js';
export type {
  AbstractClass,
  AnyConfig,
  BuiltOf,
  CallConfig,
  CallPartial,
  ConcreteClass,
  Config,
  ConfigOf,
  ConfigurableClass,
  ConfigurableFunction,
  ConfigValues,
  Factory,
  Fields,
  HpOf,
  PartialConfig,
} from './types.js';

/** @file Configs: typed, checked at once, shared, edited by copy, printed, built. */

export { didYouMean, nearest } from '../system/text/index.js';
export { build } from './building/build.js';
export { validate } from './building/validate.js';
export type { Reading, Violation } from './building/violations.js';
export { type CodegenClassOptions, type CodegenOptions, codegen, codegenClass } from './codegen/codegen.js';
export { type CodegenDiffOptions, codegenDiff } from './codegen/codegenDiff.js';
export type { Modules } from './codegen/imports.js';
export { Configurable } from './configurable.js';
export { type ApplyOptions, applyDiff } from './diff/apply.js';
export { buildDiff } from './diff/buildDiff.js';
export {
  AddedPart,
  type Change,
  type Diff,
  type DiffPlace,
  type DiffValue,
  ignoringChanges,
  ignoringPaths,
  OldPart,
  type PartConfig,
} from './diff/changes.js';
export { type FormatDiffOptions, formatDiff } from './diff/formatDiff.js';
export { alignLists } from './diff/lists.js';
export { skeletonFromDiff } from './diff/skeleton.js';
export { type Assignment, Section } from './documents/assignments.js';
export type { DocumentProblem, JsonDocument, ReadOptions } from './documents/document.js';
export { registerConstant } from './documents/document.js';
export {
  applyAssignments,
  applyConfigFile,
  loadConfigFile,
  loadFileModules,
  readConfigFile,
  saveConfigFile,
} from './documents/files.js';
export {
  checkSerializable,
  configFromString,
  configToString,
  fromJSON,
  toJSON,
} from './documents/json.js';
export {
  importModule,
  type LoadModulesOptions,
  loadModules,
  registerExports,
  unloadableClasses,
  untranslated,
} from './documents/modules.js';
export { yamlPackage } from './documents/parse.js';
export { fromYAML, toYAML } from './documents/yaml.js';
export { getPath, setPath, unsetPath } from './editing/access.js';
export { derive } from './editing/derive.js';
export {
  assign,
  cast,
  classOf,
  copy,
  copyWith,
  deepCopy,
  deepCopyWith,
  isConfig,
  isSet,
  materializeDefaults,
  unset,
  updateCallable,
} from './editing/edit.js';
export { describeField, listPaths, type PathInfo, taggedPaths } from './editing/listPaths.js';
export { PresentNames } from './editing/presentNames.js';
export {
  type ClassQuery,
  type Replacement,
  type ReplaceOptions,
  type Selection,
  select,
  type TagQuery,
  type TagSelection,
} from './editing/select.js';
export {
  listTags,
  type MaterializeOptions,
  materializeTags,
  type SetTaggedOptions,
  setTagged,
} from './editing/tagged.js';
export { type TrimOptions, trimmed, withDefaultsTrimmed } from './editing/trim.js';
export { ConfigError, type ConfigErrorOptions, refusePromise } from './errors.js';
export { issueText } from './fields/check.js';
export { formerNamesOf, registerAlias, registerClass, UNNAMED } from './fields/classNames.js';
export { coerce, coerceLiteral, plainValue } from './fields/coerce.js';
export { type Declared, lineageOf, markLibrary } from './fields/declaringModule.js';
export { describeSchema, showLong, showValue } from './fields/describe.js';
export { builds, container, factory, instance, sub, template } from './fields/holders.js';
export {
  type Argument,
  type Call,
  formatLiteral,
  type Literal,
  parseCall,
  parseLiteral,
  problemAt,
} from './fields/literals.js';
export {
  formerFieldsOf,
  givenTwice,
  isFieldName,
  type OldNames,
  oldNameNotice,
  presentNameHint,
  renamed,
  withOldNames,
} from './fields/renamed.js';
export { type ConfigurableOptions, configurable } from './functions.js';
export { type DiffGraphOptions, diffToDot, diffToSvg } from './graphs/diff.js';
export { type GraphOptions, toDot, toSvg } from './graphs/dot.js';
export type { Cell, Direction } from './graphs/html.js';
export {
  type BaselineStyle,
  checkBaselineStyle,
  clearHistory,
  type HistoryEntry,
  history,
  type PrintHistoryOptions,
  printHistory,
} from './history.js';
export { narrow } from './narrow.js';
export { append } from './nodes/containers.js';
export { type ContainerHandler, registerContainer } from './nodes/containerTypes.js';
export { suspendTracking, withOrigin } from './nodes/record.js';
export { oneLine } from './printing/items.js';
export {
  asDictFlattened,
  describeDifferences,
  type FlattenOptions,
  type GrepOptions,
  grep,
  type PrintOptions,
  print,
} from './printing/print.js';
export { printTree, type TreeOptions } from './printing/tree.js';
export { excludeFromPlaces, type Place } from './source.js';
export {
  addTag,
  clearTags,
  defineTag,
  findTag,
  getTags,
  removeTag,
  setTags,
  tagged,
} from './tags.js';
export type {
  AbstractClass,
  AnyConfig,
  BuiltOf,
  CallConfig,
  CallPartial,
  ConcreteClass,
  Config,
  ConfigBuilding,
  ConfigOf,
  ConfigurableClass,
  ConfigurableFunction,
  ConfigValues,
  Factory,
  Fields,
  HpFrom,
  HpOf,
  PartialConfig,
  Report,
  Rules,
  RuleValues,
  Tag,
} from './types.js';
export { isEqual } from './walking/equal.js';
export { iterate, pathOf, type Visit } from './walking/iterate.js';
export { formatPath, parsePath, type Segment } from './walking/paths.js';
export { shortPaths } from './walking/shortPaths.js';
export { type Child, type State, type TraverseOptions, traverse, type Visitor } from './walking/states.js';

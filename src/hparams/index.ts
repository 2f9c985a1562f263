/** @file Configs: typed, checked at once, shared, edited by copy, printed, built. */

export { didYouMean, nearest } from '../system/text/index.js';
export { build } from './building/build.js';
export { validate } from './building/validate.js';
export type { Reading } from './building/violations.js';
export { type CodegenClassOptions, codegen, codegenClass } from './codegen/codegen.js';
export { codegenDiff } from './codegen/codegenDiff.js';
export type { Modules } from './codegen/imports.js';
export { Configurable } from './configurable.js';
export { applyDiff } from './diff/apply.js';
export { buildDiff } from './diff/buildDiff.js';
export {
  AddedPart,
  type Change,
  type Diff,
  type DiffValue,
  ignoringChanges,
  ignoringPaths,
  OldPart,
  type PartConfig,
} from './diff/changes.js';
export { formatDiff } from './diff/formatDiff.js';
export { alignLists } from './diff/lists.js';
export { skeletonFromDiff } from './diff/skeleton.js';
export { type Assignment, Section } from './documents/assignments.js';
export type { JsonDocument, ReadOptions } from './documents/document.js';
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
export { listPaths, taggedPaths } from './editing/listPaths.js';
export { isPathPattern, pathsLike } from './editing/pathPatterns.js';
export { PresentNames } from './editing/presentNames.js';
export {
  type Selection,
  select,
} from './editing/select.js';
export {
  listTags,
  materializeTags,
  setTagged,
} from './editing/tagged.js';
export { trimmed, withDefaultsTrimmed } from './editing/trim.js';
export { ConfigError, refusePromise } from './errors.js';
export { issueText } from './fields/check.js';
export { formerNamesOf, registerAlias, UNNAMED } from './fields/classNames.js';
export { coerce, coerceLiteral, plainValue } from './fields/coerce.js';
export { type Declared, lineageOf, markLibrary } from './fields/declaringModule.js';
export { describeSchema, showLong, showValue } from './fields/describe.js';
export { builds, container, factory, instance, sub, template } from './fields/holders.js';
export {
  type Argument,
  type Call,
  formatLiteral,
  parseCall,
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
export { configurable } from './functions.js';
export { diffToDot, diffToSvg } from './graphs/diffGraph.js';
export { type GraphOptions, toDot, toSvg } from './graphs/dot.js';
export type { Direction } from './graphs/html.js';
export {
  checkBaselineStyle,
  clearHistory,
  history,
  printHistory,
} from './history.js';
export { narrow } from './narrow.js';
export { append } from './nodes/containers.js';
export { registerContainer } from './nodes/containerTypes.js';
export { suspendTracking, withOrigin } from './nodes/record.js';
export { oneLine } from './printing/items.js';
export {
  asDictFlattened,
  describeDifferences,
  grep,
  type PrintOptions,
  print,
} from './printing/print.js';
export { printTree } from './printing/tree.js';
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
  ConcreteClass,
  Config,
  ConfigBuilding,
  ConfigOf,
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
export { iterate, pathOf } from './walking/iterate.js';
export { formatPath, parsePath, type Segment } from './walking/paths.js';
export { shortPaths } from './walking/shortPaths.js';
export { type Child, type State, traverse } from './walking/states.js';

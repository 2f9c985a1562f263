/** @file What code calls the classes of configs, and the types of their configs. */
import { Configurable } from '../configurable.js';
import { derive } from '../editing/derive.js';
import type { ClassInfo } from '../fields/fields.js';
import type { NodeKind } from '../nodes/node.js';
import type { PathLink } from '../walking/paths.js';
import type { Imports } from './imports.js';

/** The local name of a class, or of what `configurable` made. @throws ConfigError where no module exports it. */
export function targetName(imports: Imports, info: ClassInfo, path?: PathLink, isType = false): string {
  const what = info.cls.prototype instanceof Configurable ? 'class' : 'target';
  return imports.require(info.cls, what, info.name, path, isType);
}

/** The type of the configs of a class. */
export function configType(imports: Imports, info: ClassInfo, kind: NodeKind): string {
  const target = targetName(imports, info, undefined, true);
  // What the config of a configurable function is called is known to its own types alone.
  if (!(info.cls.prototype instanceof Configurable)) return `ReturnType<typeof ${target}.${kind}>`;
  return `${imports.type(derive, kind === 'partial' ? 'PartialConfig' : 'Config')}<${target}>`;
}

/** @file Reading a field: its value, or a view of the container there, whose edits are those of the field. */
import { ConfigError, NotSetError } from '../errors.js';
import { describeSchema } from '../fields/describe.js';
import type { FieldInfo } from '../fields/fields.js';
import { carriedBy, carrierOf, carrierTags, hasCarried } from './carriers.js';
import { type ConfigNode, nodeOf, type Origin } from './configNode.js';
import { isContainer, keyProblem, type Owner, shownPart, showPart, viewOf } from './containers.js';
import { handlerOf } from './containerTypes.js';
import { copyAlone, storedValue } from './fieldValues.js';
import { makeExplicit } from './held.js';
import { accept, assertWritable, checkValue, fieldTags, presentPlace, readable, writeField } from './node.js';
import { origin, record } from './record.js';

/** Description of the field's values, with its tags, which may lead to the code that sets it. */
export function wantedOf(node: ConfigNode, field: FieldInfo): string {
  const tags = fieldTags(node, field);
  const tagged = tags.length === 0 ? '' : `, tagged ${tags.join(', ')}`;
  return `${describeSchema(field.check)}${tagged}`;
}

/** Reads the field. */
export function readField(node: ConfigNode, field: FieldInfo): unknown {
  if (!(field.name in node.values) && field.default.kind === 'none') {
    throw new NotSetError(
      `${node.info.name}.${field.name} is not set and has no default: expected ${wantedOf(node, field)}.`,
      { path: field.name },
    );
  }
  const value = storedValue(node, field);
  if (typeof value !== 'object' || value === null) return value;
  if (nodeOf(value) !== undefined) return value;
  if (isContainer(value)) return viewOf(value, () => ownerOf(node, field));
  return handlerOf(value) === undefined ? value : shownPart(value, ownerOf(node, field));
}

function ownerOf(node: ConfigNode, field: FieldInfo): Owner {
  let newlyHeld: ConfigNode[] = [];
  const owner: Owner = {
    handOut(value, isRemoved) {
      const carrier = carrierOf(value);
      if (carrier === undefined) return value;
      if (hasCarried(carrier)) return showPart(carriedBy(carrier), owner);
      if (isRemoved) return undefined;
      throw new NotSetError(
        `${node.info.name}.${field.name}: the part tagged ${carrierTags(carrier).join(', ')} is not set.`,
        { path: field.name },
      );
    },
    takeIn(value, before) {
      try {
        const carrier = carrierOf(before);
        if (carrier === undefined) {
          return readable(node, field.name, origin(), () => accept(value, newlyHeld));
        }
        const next = copyAlone(carrier);
        writeField(next, 'value', value, origin());
        return next.proxy;
      } catch (error) {
        newlyHeld = [];
        throw error;
      }
    },
    refuseKey(key) {
      return readable(node, field.name, origin(), () => {
        throw new ConfigError(keyProblem(key));
      });
    },
    edited(container) {
      const held = newlyHeld;
      newlyHeld = [];
      const writer = origin();
      assertWritable(node, field.name, writer);
      const root = storedValue(node, field);
      if (!isPartOf(root, container)) throw detached(node, field, container, writer);
      checkValue(node, field, root, writer);
      makeExplicit(held);
      node.values[field.name] = root;
      node.defaults?.delete(field.name);
      record(node, field.name, 'edit', root, writer);
    },
  };
  return owner;
}

/** Whether `value` is or contains `container`. */
function isPartOf(value: unknown, container: object): boolean {
  if (value === container) return true;
  const carrier = carrierOf(value);
  if (carrier !== undefined) return isPartOf(carriedBy(carrier), container);
  return isContainer(value) && Object.values(value).some((part) => isPartOf(part, container));
}

function detached(node: ConfigNode, field: FieldInfo, container: object, origin: Origin): ConfigError {
  const what = Array.isArray(container) ? 'array' : 'record';
  const name = `${node.info.name}.${field.name}`;
  return new ConfigError(
    `This ${what} is no longer part of ${name}: another value was written there since. Read ${name} again.`,
    { path: field.name, place: presentPlace(origin) },
  );
}

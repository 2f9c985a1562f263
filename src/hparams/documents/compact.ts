/** @file A config on one line, to hand to another process. */
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { ConfigError } from '../errors.js';
import { showValue } from '../fields/describe.js';
import { origin } from '../nodes/config.js';
import { longestJson, type ReadOptions } from './format.js';
import { readJsonText, toJSON } from './json.js';
import { checkText } from './text.js';

/** What every such line begins with, the version of its packing included. */
const prefix = 'luthier-config:1:';

/** `root` as one line of letters, digits, `-`, `_` and `:`: its JSON, compressed. @throws ConfigError as `toJSON` does. */
export function configToString(root: unknown): string {
  return prefix + deflateRawSync(JSON.stringify(toJSON(root))).toString('base64url');
}

/** What `configToString` was given. @throws ConfigError as `fromJSON` does, and for text that is cut off or changed. */
export function configFromString(text: string, options: ReadOptions = {}): unknown {
  const packed = text.trim();
  if (!packed.startsWith(prefix)) {
    throw new ConfigError(`A packed config begins with '${prefix}', got ${showValue(text)}.`);
  }
  const body = packed.slice(prefix.length);
  if (!/^[\w-]+$/.test(body))
    throw new ConfigError('The packed config holds characters that do not belong to it.');
  const maxBytes = options.maxBytes ?? longestJson;
  let json: string;
  try {
    // A few bytes can unpack to gigabytes.
    json = inflateRawSync(Buffer.from(body, 'base64url'), { maxOutputLength: maxBytes }).toString('utf8');
  } catch (cause) {
    const isLong = (cause as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE';
    const problem = isLong
      ? `unpacks to more than ${maxBytes} bytes, which the option maxBytes may allow`
      : 'is cut off or was changed';
    throw new ConfigError(`The packed config ${problem}.`, { cause });
  }
  return readJsonText(checkText(json, maxBytes), origin(), options, undefined);
}

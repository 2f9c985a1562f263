/** @file Formats of strings in JSON schemas, as regular expressions. */

import { regularExpression } from './regularExpressions.js';
import type { Expression } from './textExpressions.js';

const DATE =
  '\\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|02-(?:0[1-9]|1\\d|2[0-8]))';
const TIME = '(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d{1,6})?(?:Z|[+-](?:0\\d|1[0-4]):[0-5]\\d)';
const BYTE = '(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)';

/** Formats that values are held to; all others are annotations. */
export const FORMATS: Readonly<Record<string, Expression>> = {
  // February 29 is left out: whether a year has it is not regular to say.
  date: regularExpression(DATE),
  time: regularExpression(TIME),
  'date-time': regularExpression(`${DATE}T${TIME}`),
  uuid: regularExpression('[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}'),
  ipv4: regularExpression(`${BYTE}(?:\\.${BYTE}){3}`),
  email: regularExpression(
    '[a-z0-9]+(?:[._+-][a-z0-9]+)*@[a-z0-9]+(?:-[a-z0-9]+)*(?:\\.[a-z0-9]+(?:-[a-z0-9]+)*)+',
  ),
};
